use kapell_core::board::JobId;
use kapell_core::run::RunState;

use super::fakes::Manner;
use super::stage::{Stage, job, secs};
use crate::board::tests::theatre::pass;

const HOUR_MS: i64 = 3_600_000;
const HOURLY: &str = r#", "schedule": ["0 * * * *"], "overlap": "queue", "catch_up": {"policy": "all", "window": "1d"}"#;

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_back_repeats_nothing_and_one_that_is_set_forward_is_noticed_at_once() {
    let stage = Stage::new();
    let lead = stage.open().await;
    lead.apply(job("hourly", HOURLY)).await;
    let until_hour = u64::try_from(HOUR_MS - stage.wall().0 % HOUR_MS).unwrap() / 1_000;
    pass(secs(until_hour + 1)).await;
    assert_eq!(stage.fake.state().launches.len(), 1);
    stage.theatre.clock.set_wall(-HOUR_MS);
    pass(secs(7_190)).await;
    stage.fake.assert_launched_once();
    let count = stage.fake.state().launches.len();
    assert_eq!(count, 1, "an hour was lived twice, and nothing was run twice");
    stage.theatre.clock.set_wall(HOUR_MS);
    pass(secs(3)).await;
    let launched = stage.fake.state().launches.len();
    assert_eq!(launched, 3, "two hours were passed over, and are made up for");
    stage.fake.assert_launched_once();
}

#[tokio::test(start_paused = true)]
async fn waits_for_a_length_of_time_do_not_depend_on_the_clock_on_the_wall() {
    let stage = Stage::new();
    stage.fake.state().manner = Manner::Ends(&[1, 0]);
    let lead = stage.open().await;
    lead.apply(job("once", r#", "retry": {"max_retries": 1, "initial_delay": "1m"}"#)).await;
    for (drawn, ahead) in [(1, -HOUR_MS), (2, HOUR_MS), (3, 0)] {
        let run_id = lead.trigger("once", drawn, stage.wall()).await;
        lead.until(&run_id, RunState::Retrying, secs(5)).await;
        stage.theatre.clock.set_wall(ahead);
        let took = lead.until(&run_id, RunState::Completed, secs(63)).await;
        assert!(took >= secs(57), "{took:?} after the clock was set by {ahead} ms");
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_begins_when_the_clock_on_the_wall_says_so() {
    let stage = Stage::new();
    let lead = stage.open().await;
    lead.apply(job("once", "")).await;
    let run_id = lead.trigger("once", 1, stage.wall().after(secs(1_800))).await;
    pass(secs(5)).await;
    assert!(stage.fake.state().launches.is_empty());
    stage.theatre.clock.set_wall(HOUR_MS);
    lead.until(&run_id, RunState::Completed, secs(3)).await;
}

#[tokio::test(start_paused = true)]
async fn a_job_that_is_made_after_the_clock_was_set_begins_by_the_clock_on_the_wall() {
    let stage = Stage::new();
    let lead = stage.open().await;
    for ahead in [HOUR_MS, -HOUR_MS] {
        stage.theatre.clock.set_wall(ahead);
        let id = format!("job{}", ahead > 0);
        lead.apply(job(&id, HOURLY)).await;
        let job_id = JobId::new(id.as_str());
        let mark = lead.show.board.look(&id, |records| records.jobs[&job_id].mark);
        assert_eq!(mark, stage.wall());
    }
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_was_ahead_for_a_moment_does_not_leave_a_job_standing_ahead() {
    let stage = Stage::new();
    let lead = stage.open().await;
    lead.apply(job("often", r#", "schedule": ["* * * * *"], "overlap": "allow""#)).await;
    pass(secs(180)).await;
    stage.theatre.clock.set_wall(24 * HOUR_MS);
    pass(secs(3)).await;
    stage.theatre.clock.set_wall(0);
    let before = stage.fake.state().launches.len();
    pass(secs(600)).await;
    let after = stage.fake.state().launches.len();
    assert!((9..=10).contains(&(after - before)), "{} in ten minutes", after - before);
    stage.fake.assert_launched_once();
}
