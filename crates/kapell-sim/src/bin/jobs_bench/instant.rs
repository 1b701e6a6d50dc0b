//! Very many runs that are due at one instant: until the last is decided, and until the last intent is on disk.

use std::path::Path;

use kapell_sim::bench::usage::thousands;
use kapell_sim::figure::{figure, share};

use crate::Plan;
use crate::crowd::Crowd;

pub(crate) async fn measure(dir: &Path, plan: Plan) -> anyhow::Result<()> {
    let crowd = Crowd::gather(&dir.join("instant"), plan, None).await?;
    let (mut decided, mut durable, mut median) = (Vec::new(), Vec::new(), Vec::new());
    for (round, moment) in crowd.moments.iter().enumerate() {
        let late = crowd.round(round, *moment).await?;
        decided.push(late.iter().map(|it| it.decided).fold(0.0, f64::max));
        let launched: Vec<f64> = late.iter().map(|it| it.launched / 1_000.0).collect();
        durable.push(share(&launched, 1_000));
        median.push(share(&launched, 500));
    }
    crowd.stage.close().await?;
    let name = format!("{} runs due at one instant", thousands(plan.due));
    figure(&format!("{name}: all decided"), &decided, "ms", Some(100.0));
    figure(&format!("{name}: all durable and launched"), &durable, "s", Some(1.5));
    figure(&format!("{name}: launched, median"), &median, "s", None);
    Ok(())
}
