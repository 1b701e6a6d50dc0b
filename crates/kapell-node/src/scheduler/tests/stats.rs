use std::collections::BTreeSet;

use kapell_core::board::JobId;
use kapell_core::run::{RunMetrics, RunState};

use super::fakes::Manner;
use super::stage::{Stage, job, secs};
use crate::board::tests::theatre::pass;
use crate::scheduler::histogram::Histogram;
use crate::scheduler::stats::{Collector, Ended, Now};

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
    for drawn in 200..205 {
        let run_id = lead.trigger("once", drawn, stage.wall()).await;
        lead.until(&run_id, RunState::Completed, secs(5)).await;
    }
    pass(secs(31)).await;
    let snapshot = lead.scheduler.stats();
    let figures = &snapshot.jobs()[&JobId::new("once")];
    assert_eq!((figures.completed, figures.failed, figures.skipped), (20, 0, 5));
    // Three calls for each first attempt, four for each second one.
    assert_eq!((figures.retries, figures.kubernetes_api_calls), (20, 20 * 7));
    assert!((10_000..=11_250).contains(&figures.retry_wait.p50_ms), "{figures:?}");
    assert!(figures.last.success && figures.last.retry_attempt == 0, "the last was skipped");
    assert_eq!(snapshot.all.completed, 20);
    let value = |name: &str, label: &str| {
        let found = snapshot.figures().iter().find(|figure| {
            figure.name == name
                && (label.is_empty() || figure.labels.iter().any(|(_, text)| text == label))
        });
        found.unwrap_or_else(|| panic!("no {name} {label}")).value
    };
    assert!((value("kapell_runs_total", "Completed") - 20.0).abs() < 0.1);
    assert!((value("kapell_runs_total", "Skipped") - 5.0).abs() < 0.1);
    assert!((value("kapell_run_retries_total", "") - 20.0).abs() < 0.1);
    assert!((value("kapell_run_kubernetes_calls_total", "") - 140.0).abs() < 0.1);
    assert!((value("kapell_runs_active", "Running") - 1.0).abs() < 0.1);
    assert!((value("kapell_scheduler_begun_total", "") - 26.0).abs() < 0.1);
    let labels: BTreeSet<&str> = snapshot
        .figures()
        .iter()
        .flat_map(|figure| figure.labels.iter().map(|(name, _)| *name))
        .collect();
    assert_eq!(labels, BTreeSet::from(["phase", "quantile", "state", "what"]));
}

/// Runs that were skipped or never started are not runs that took no time.
#[test]
fn a_phase_that_was_never_entered_is_no_short_one() {
    let mut collector = Collector::default();
    let job_id = JobId::new("j");
    let worked = RunMetrics {
        execution_ms: 1_000,
        pod_start_latency_ms: 40,
        total_ms: 1_040,
        ..RunMetrics::default()
    };
    let ended = |metrics, skipped, launched, started| Ended {
        state: RunState::Completed,
        skipped,
        launched,
        started,
        metrics,
    };
    for _ in 0..10 {
        collector.ended(job_id.clone(), &ended(&worked, false, true, true));
    }
    let nothing = RunMetrics::default();
    for _ in 0..45 {
        collector.ended(job_id.clone(), &ended(&nothing, true, false, false));
        collector.ended(job_id.clone(), &ended(&nothing, false, true, false));
    }
    let figures = collector.snapshot(&Now::default()).jobs().remove(&job_id).unwrap();
    assert_eq!((figures.completed, figures.skipped), (55, 45));
    assert!((1_000..=1_125).contains(&figures.execution.p50_ms), "{figures:?}");
    assert_eq!(figures.pod_start.p50_ms, 0, "most launches were so short");
    assert_eq!((figures.retry_wait.p99_ms, figures.constraint_check.p99_ms), (0, 0));
    assert_eq!(figures.total.p50_ms, 0);
    let short = RunMetrics { retry_attempt: 1, ..nothing };
    collector.ended(job_id.clone(), &ended(&short, false, true, true));
    let figures = collector.snapshot(&Now::default()).jobs().remove(&job_id).unwrap();
    assert_eq!(figures.retries, 1);
    assert!(figures.execution.p50_ms >= 1_000, "one of eleven took no time");
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
