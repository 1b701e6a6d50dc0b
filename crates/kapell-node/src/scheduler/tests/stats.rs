use std::collections::BTreeSet;

use kapell_core::board::JobId;
use kapell_core::run::RunState;

use super::fakes::Manner;
use super::stage::{Stage, job, secs};
use crate::board::tests::theatre::pass;
use crate::scheduler::histogram::Histogram;

#[tokio::test(start_paused = true)]
async fn figures_are_made_every_half_minute_with_percentiles_a_job_and_no_run_in_their_names() {
    let stage = Stage::new();
    stage.fake.state().manner = Manner::Ends(&[1, 0]);
    let lead = stage.open().await;
    lead.apply(job("once", r#", "retry": {"max_retries": 1}"#)).await;
    for drawn in 0..20 {
        let run_id = lead.trigger("once", drawn, stage.wall()).await;
        lead.until(&run_id, RunState::Completed, secs(15)).await;
    }
    stage.fake.state().manner = Manner::Held;
    let held = lead.trigger("once", 99, stage.wall()).await;
    lead.until(&held, RunState::Running, secs(5)).await;
    pass(secs(31)).await;
    let snapshot = lead.scheduler.stats();
    let figures = &snapshot.jobs()[&JobId::new("once")];
    assert_eq!((figures.completed, figures.failed), (20, 0));
    assert!((10_000..=11_250).contains(&figures.retry_wait.p50_ms), "{figures:?}");
    assert!(figures.last.success && figures.last.retry_attempt == 1);
    assert_eq!(snapshot.all.completed, 20);
    let value = |name: &str, label: &str| {
        let found = snapshot.figures().iter().find(|figure| {
            figure.name == name
                && (label.is_empty() || figure.labels.iter().any(|(_, text)| text == label))
        });
        found.unwrap_or_else(|| panic!("no {name} {label}")).value
    };
    assert!((value("kapell_runs_total", "Completed") - 20.0).abs() < 0.1);
    assert!((value("kapell_runs_active", "Running") - 1.0).abs() < 0.1);
    assert!((value("kapell_scheduler_begun_total", "") - 21.0).abs() < 0.1);
    let labels: BTreeSet<&str> = snapshot
        .figures()
        .iter()
        .flat_map(|figure| figure.labels.iter().map(|(name, _)| *name))
        .collect();
    assert_eq!(labels, BTreeSet::from(["phase", "quantile", "state", "what"]));
}

#[test]
fn percentiles_are_right_to_an_eighth() {
    let mut histogram = Histogram::default();
    for millis in 1..=100_000 {
        histogram.add(millis);
    }
    for (permille, want) in
        [(1, 100), (500, 50_000), (950, 95_000), (990, 99_000), (1_000, 100_000)]
    {
        let got = histogram.permille(permille);
        assert!((want..=want + want / 8).contains(&got), "{permille}: {got} for {want}");
    }
    assert_eq!(Histogram::default().permille(500), 0);
    let mut odd = Histogram::default();
    odd.add(u64::MAX);
    odd.add(0);
    assert_eq!((odd.permille(1), odd.permille(1_000), odd.count()), (0, u64::MAX, 2));
}
