//! An instance, from the call to RUNNING, beside its commits, round trips and its start.

use std::path::Path;

use kapell_sim::bench::instances::{Instances, Samples};
use kapell_sim::bench::parts::Start;
use kapell_sim::bench::site::sleepers;
use kapell_sim::figure::{figure, median, share};

use crate::Plan;

pub(crate) async fn measure(kapell: &Path, dir: &Path, plan: Plan) -> anyhow::Result<()> {
    let mut instances = Instances::open(kapell, &dir.join("instances"), sleepers).await?;
    let mut rounds = Vec::new();
    for round in 0..plan.rounds {
        let mut samples = Samples::default();
        for number in 0..plan.instances_a_round {
            let guid = format!("lrp-{round}-{number}");
            instances.sample(&guid, &Start::SLEEPER, &mut samples).await?;
        }
        rounds.push(samples);
    }
    instances.close().await?;
    report(&rounds);
    Ok(())
}

fn report(rounds: &[Samples]) {
    let each = |of: &dyn Fn(&Samples) -> f64| -> Vec<f64> { rounds.iter().map(of).collect() };
    let ratios = each(&|round| median(&round.whole) / round.parts());
    figure("instance: call to RUNNING / its parts, medians", &ratios, "ratio", Some(1.5));
    figure("instance: call to RUNNING, median", &each(&|it| median(&it.whole)), "ms", None);
    figure("instance: call to RUNNING, p99", &each(&|it| share(&it.whole, 990)), "ms", None);
    figure("instance: four commits, median", &each(&|it| median(&it.commits)), "ms", None);
    figure("instance: five round trips, median", &each(&|it| median(&it.round_trips)), "ms", None);
    figure("instance: shim and program, median", &each(&|it| median(&it.spawn)), "ms", None);
}
