//! How late runs start that are due one after the other, beside a thread that sleeps to the same instants.

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use kapell_core::seams::Timestamp;
use kapell_sim::bench::usage::{Stopwatch, thousands};
use kapell_sim::figure::{figure, share};

use crate::Plan;
use crate::crowd::{Crowd, Lateness, millis};
use crate::held::wall_ns;

/// What a start may be late by, besides what a sleep is.
const GOAL_MS: f64 = 5.0;

pub(crate) async fn measure(dir: &Path, plan: Plan) -> anyhow::Result<()> {
    let crowd = Crowd::gather(&dir.join("spread"), plan, Some(plan.spread)).await?;
    let mut rows: [Vec<f64>; 6] = Default::default();
    for (round, moment) in crowd.moments.iter().enumerate() {
        let due = crowd.made(*moment).await?;
        let control = std::thread::spawn(move || sleeps(due));
        let watch = until(*moment).await;
        let late = crowd.round(round, *moment).await?;
        let used = watch.used();
        let sleeps = control.join().ok().context("the control ended")?;
        let launched = pick(&late, |it| it.launched);
        let decided = pick(&late, |it| it.decided);
        let control = share(&sleeps, 990);
        let of = [
            share(&launched, 990) - control,
            control,
            share(&launched, 990),
            share(&launched, 500),
            share(&decided, 990),
            used.cpu.as_secs_f64() / used.wall.as_secs_f64() * 100.0,
        ];
        rows.iter_mut().zip(of).for_each(|(row, value)| row.push(value));
    }
    crowd.stage.close().await?;
    let name = format!("{} starts over {:?}", thousands(plan.due), plan.spread);
    let [above, control, p99, median, decided, cpu] = rows;
    figure(&format!("{name}: lateness p99 above that of sleeping"), &above, "ms", Some(GOAL_MS));
    figure(&format!("{name}: sleeping to the same instants, p99"), &control, "ms", None);
    figure(&format!("{name}: lateness p99, from due to launched"), &p99, "ms", None);
    figure(&format!("{name}: lateness median, from due to launched"), &median, "ms", None);
    figure(&format!("{name}: lateness p99, from due to decided"), &decided, "ms", None);
    figure(&format!("{name}: CPU meanwhile"), &cpu, "%", None);
    Ok(())
}

/// Waits until it is time, and begins to count.
async fn until(moment: Timestamp) -> Stopwatch {
    let wait = u64::try_from(moment.0 * 1_000_000 - wall_ns()).unwrap_or(0);
    tokio::time::sleep(Duration::from_nanos(wait)).await;
    Stopwatch::start()
}

fn pick(late: &[Lateness], of: fn(&Lateness) -> f64) -> Vec<f64> {
    late.iter().map(of).collect()
}

/// How late a thread is that sleeps to each of these, in milliseconds.
fn sleeps(mut due: Vec<Timestamp>) -> Vec<f64> {
    due.sort_unstable();
    let mut late = Vec::with_capacity(due.len());
    for at in due {
        let at_ns = at.0 * 1_000_000;
        let mut now = wall_ns();
        while now < at_ns {
            std::thread::sleep(Duration::from_nanos(u64::try_from(at_ns - now).unwrap_or(0)));
            now = wall_ns();
        }
        late.push(millis(now - at_ns));
    }
    late
}
