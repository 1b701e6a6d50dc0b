//! Another schedule reaches runs that were made ahead.

use kapell_core::run::{Noted, RunId, RunState};
use kapell_core::seams::Timestamp;

use super::fakes::Manner;
use super::stage::{Lead, Stage, job, secs};
use crate::board::tests::theatre::pass;

const EVERY_MINUTE: &str = r#", "schedule": ["* * * * *"]"#;

/// A leader, a job of every minute, and its next run, which was made eight seconds ahead.
async fn ahead(more: &str) -> (Stage, Lead, RunId) {
    let stage = Stage::new();
    let lead = stage.open().await;
    lead.apply(job("minutely", &format!("{EVERY_MINUTE}{more}"))).await;
    let next = Timestamp((stage.wall().0 / 60_000 + 1) * 60_000);
    pass(next.before(secs(8)).since(stage.wall())).await;
    let run_id = lead.runs("minutely")[0].run_id.clone();
    (stage, lead, run_id)
}

#[tokio::test(start_paused = true)]
async fn moments_that_are_gone_are_withdrawn_and_those_that_came_are_run() {
    let (stage, lead, gone) = ahead("").await;
    lead.apply(job("minutely", r#", "schedule": ["57 * * * * *"]"#)).await;
    lead.until(&gone, RunState::Completed, secs(20)).await;
    let run = lead.run(&gone);
    let why = "the schedule of its job does not have its moment any more (revision 2)";
    assert_eq!((run.skipped, run.reason.as_str()), (true, why));
    assert!(run.timeline.iter().any(|it| it.noted == Noted::Revision { revision: 2 }));
    let launched: Vec<Timestamp> =
        stage.fake.state().launches.iter().map(|(it, _)| it.run_id.moment().unwrap()).collect();
    assert_eq!(launched, [gone.moment().unwrap().before(secs(3))], "within the ten seconds");
    let failures =
        lead.show.board.look("minutely", |records| records.jobs[&gone.job_id()].failures_in_a_row);
    assert_eq!(failures, 0);
}

#[tokio::test(start_paused = true)]
async fn a_change_that_is_undone_in_time_changes_nothing_over_a_failover_too() {
    let (stage, lead, run_id) = ahead("").await;
    lead.apply(job("minutely", r#", "schedule": ["@daily"]"#)).await;
    lead.die().await;
    let lead = stage.open().await;
    lead.apply(job("minutely", EVERY_MINUTE)).await;
    lead.until(&run_id, RunState::Completed, secs(20)).await;
    assert!(!lead.run(&run_id).skipped);
    stage.fake.assert_launched_once();
}

#[tokio::test(start_paused = true)]
async fn what_is_withdrawn_stays_so_over_a_failover() {
    let (stage, lead, run_id) = ahead("").await;
    lead.apply(job("minutely", r#", "schedule": ["@daily"]"#)).await;
    lead.die().await;
    let lead = stage.open().await;
    lead.until(&run_id, RunState::Completed, secs(20)).await;
    assert!(lead.run(&run_id).skipped);
    assert!(stage.fake.state().launches.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_run_that_waits_for_its_turn_is_not_reached_by_a_failover_either() {
    let (stage, lead, first) = ahead(r#", "overlap": "queue""#).await;
    stage.fake.state().manner = Manner::Held;
    lead.until(&first, RunState::Running, secs(20)).await;
    pass(secs(62)).await;
    let second = lead.runs("minutely")[1].run_id.clone();
    assert_eq!(lead.scheduler.state(second.clone()).await.unwrap().state, RunState::Pending);
    lead.apply(job("minutely", r#", "overlap": "queue", "schedule": ["@daily"]"#)).await;
    lead.die().await;
    let lead = stage.open().await;
    let attempt = stage.fake.state().launches[0].0.clone();
    stage.fake.end(&attempt, 0);
    lead.until(&second, RunState::Running, secs(20)).await;
    assert_eq!(lead.run(&second).revision, 1);
}
