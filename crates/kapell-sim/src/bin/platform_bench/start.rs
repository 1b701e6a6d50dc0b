//! From nothing to a platform that is ready.

use std::path::Path;
use std::time::Instant;

use kapell_sim::figure::figure;

use crate::Plan;
use kapell_sim::bench::parts::ms;
use kapell_sim::bench::site::Site;

pub(crate) async fn measure(kapell: &Path, dir: &Path, plan: Plan) -> anyhow::Result<()> {
    let mut samples = Vec::new();
    // The first start of a program reads it from disk.
    for round in 0..=plan.starts {
        let mut site = Site::new(kapell, dir.join(format!("start-{round}")))?;
        let begun = Instant::now();
        site.start()?;
        site.ready().await?;
        samples.push(ms(begun.elapsed()));
        site.kill().await?;
    }
    figure("start in an empty directory until ready", &samples[1..], "ms", Some(300.0));
    Ok(())
}
