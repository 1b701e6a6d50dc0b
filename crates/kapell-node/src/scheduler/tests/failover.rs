use std::time::Duration;

use kapell_core::board::{RecordKey, shard_of};
use kapell_core::run::{Entry, Noted, RunId, RunState, StopKind};
use kapell_core::seams::Timestamp;
use kapell_core::seat::Seat;
use kapell_store::Shards as _;
use kapell_store::model::{Commit, Key, Op, SHARDS, Shard};

use super::fakes::{Known, Manner};
use super::stage::{Lead, Stage, job, secs, triggered};
use crate::board::tests::theatre::pass;
use crate::scheduler::backend::Attempt;
use crate::scheduler::checker::Wants;

/// Everything that a run can wait for on its way, and more: the leader dies there.
#[tokio::test(start_paused = true)]
async fn a_leader_may_die_at_any_time_and_no_attempt_is_launched_twice() {
    let more = r#", "retry": {"max_retries": 2, "initial_delay": "20ms"}"#;
    for manner in [Manner::Ends(&[1, 0]), Manner::Slow(1), Manner::Ends(&[1])] {
        for after in (0..60_u64).chain([100, 500, 1_000, 1_100]) {
            let (stage, lead, run_id) = triggered(manner, more).await;
            stage.checker.set(|script| script.wants = Wants { before: true, after: true });
            pass(Duration::from_millis(after)).await;
            lead.die().await;
            let lead = stage.open().await;
            pass(Duration::from_millis(after)).await;
            lead.die().await;
            let lead = stage.open().await;
            pass(secs(3)).await;
            if manner == Manner::Slow(1) {
                let works = stage.fake.state().works.clone();
                for (attempt, known) in &works {
                    if matches!(known, Known::Running(_)) {
                        stage.fake.end(attempt, 0);
                    }
                }
            }
            let fails = manner == Manner::Ends(&[1]);
            let want = if fails { RunState::Failed } else { RunState::Completed };
            lead.until(&run_id, want, secs(10)).await;
            stage.fake.assert_launched_once();
            lead.close().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn moments_are_run_once_each_over_changes_of_leader() {
    let stage = Stage::new();
    let mut lead = stage.open().await;
    lead.apply(job("often", r#", "schedule": ["*/5 * * * * *"], "catch_up": {"policy": "all"}"#))
        .await;
    for round in 0..20_u64 {
        pass(Duration::from_millis(1_700 * round)).await;
        lead.die().await;
        pass(Duration::from_millis(700 * (round % 3))).await;
        lead = stage.open().await;
    }
    pass(secs(60)).await;
    stage.fake.assert_launched_once();
    let mut moments: Vec<i64> =
        stage.fake.state().launches.iter().map(|(it, _)| it.run_id.moment().unwrap().0).collect();
    moments.sort_unstable();
    let gaps: Vec<i64> = moments.windows(2).map(|two| two[1] - two[0]).collect();
    assert!(moments.len() > 70 && gaps.iter().all(|gap| *gap == 5_000), "{gaps:?}");
}

#[tokio::test(start_paused = true)]
async fn work_that_ended_while_nobody_led_is_found_with_its_outcome() {
    let (stage, lead, run_id) = triggered(Manner::Held, "").await;
    lead.until(&run_id, RunState::Running, secs(5)).await;
    lead.die().await;
    stage.fake.state().mute = true;
    let attempt = stage.fake.state().launches[0].0.clone();
    stage.fake.end(&attempt, 7);
    let lead = stage.open().await;
    lead.until(&run_id, RunState::Failed, secs(5)).await;
    assert_eq!(lead.run(&run_id).exit_code, Some(7));
}

#[tokio::test(start_paused = true)]
async fn work_that_nobody_can_account_for_is_a_lost_host() {
    let (stage, lead, run_id) = triggered(Manner::Held, "").await;
    lead.until(&run_id, RunState::Running, secs(5)).await;
    lead.die().await;
    stage.fake.state().works.clear();
    let lead = stage.open().await;
    lead.until(&run_id, RunState::Failed, secs(5)).await;
    assert_eq!(lead.run(&run_id).reason, "host lost: its work is gone");
}

#[tokio::test(start_paused = true)]
async fn work_that_no_run_needs_is_ended_and_forgotten_and_what_is_needed_is_not() {
    let (stage, lead, run_id) = triggered(Manner::Held, "").await;
    lead.until(&run_id, RunState::Running, secs(5)).await;
    lead.die().await;
    let stranger = RunId::parse("once:1700000000-ff").unwrap();
    let leftover = Attempt { run_id: stranger, number: 0 };
    let at = stage.wall();
    stage.fake.state().works.insert(leftover.clone(), Known::Running(at));
    let lead = stage.open().await;
    pass(secs(3)).await;
    assert_eq!(stage.fake.state().stops, [(leftover.clone(), StopKind::AtOnce)]);
    assert_eq!(stage.fake.state().released, [leftover]);
    assert_eq!(lead.run(&run_id).state, RunState::Running);
}

#[tokio::test(start_paused = true)]
async fn what_no_run_knows_is_left_alone_where_that_is_wished_and_told_of_once() {
    let (stage, lead, run_id) = triggered(Manner::Held, "").await;
    lead.until(&run_id, RunState::Running, secs(5)).await;
    lead.die().await;
    let stranger = RunId::parse("once:1700000000-ff").unwrap();
    let leftover = Attempt { run_id: stranger, number: 0 };
    // Its run has gone on: it is known, and merely late to go.
    let late = Attempt { run_id: run_id.clone(), number: 0 };
    let at = stage.wall();
    stage.fake.state().works.insert(leftover.clone(), Known::Running(at));
    stage.fake.state().keeps = true;
    let lead = stage.open().await;
    pass(secs(200)).await;
    assert_eq!(stage.fake.state().stops, []);
    assert_eq!(stage.fake.state().released, []);
    let told = |lead: &Lead| {
        let figures = lead.scheduler.stats();
        let found =
            figures.figures().iter().find(|it| it.name == "kapell_scheduler_leftovers_total");
        found.map(|it| it.value)
    };
    assert_eq!(told(&lead), Some(1.0));
    stage.fake.end(&late, 0);
    lead.until(&run_id, RunState::Completed, secs(5)).await;
    pass(secs(5)).await;
    assert_eq!(stage.fake.state().released, [late]);
    stage.fake.state().keeps = false;
    pass(secs(65)).await;
    assert_eq!(stage.fake.state().stops, [(leftover.clone(), StopKind::AtOnce)]);
    assert_eq!(stage.fake.state().released.last(), Some(&leftover));
    assert_eq!(told(&lead), Some(1.0));
}

#[tokio::test(start_paused = true)]
async fn a_cancel_outlives_the_leader_that_took_it() {
    let (stage, lead, run_id) = triggered(Manner::Held, "").await;
    lead.until(&run_id, RunState::Running, secs(5)).await;
    let cancelled =
        lead.scheduler.cancel(run_id.clone(), StopKind::Graceful, "asked by ann".to_owned());
    cancelled.await.unwrap().unwrap();
    lead.die().await;
    let lead = stage.open().await;
    lead.until(&run_id, RunState::Cancelled, secs(5)).await;
    assert_eq!(lead.run(&run_id).reason, "asked by ann");
}

#[tokio::test(start_paused = true)]
async fn work_that_nobody_needs_and_that_could_not_be_ended_is_looked_for_again() {
    let stage = Stage::new();
    let stranger = RunId::parse("once:1700000000-ff").unwrap();
    let leftover = Attempt { run_id: stranger, number: 0 };
    let at = stage.wall();
    stage.fake.state().works.insert(leftover.clone(), Known::Running(at));
    stage.fake.state().unstoppable = true;
    let _lead = stage.open().await;
    pass(secs(30)).await;
    assert!(!stage.fake.state().stops.is_empty() && stage.fake.state().released.is_empty());
    stage.fake.state().unstoppable = false;
    pass(secs(60)).await;
    assert_eq!(stage.fake.state().released, [leftover]);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_asked_for_by_a_clock_that_was_ahead_begins_at_once_under_the_next_leader() {
    let (stage, lead, _) = triggered(Manner::Held, r#", "overlap": "queue""#).await;
    stage.theatre.clock.set_wall(86_400_000);
    let waits = lead.trigger("once", 2, stage.wall()).await;
    lead.die().await;
    stage.theatre.clock.set_wall(0);
    stage.fake.state().works.clear();
    let lead = stage.open().await;
    lead.until(&waits, RunState::Running, secs(5)).await;
}

/// A run is made ahead, nobody leads when its time comes, and somebody does long after.
async fn left(more: &str, away: u64) -> (Stage, Lead, RunId) {
    let stage = Stage::new();
    let lead = stage.open().await;
    lead.apply(job("daily", more)).await;
    let hour = 3_600_000;
    let next = Timestamp((stage.wall().0 / hour + 1) * hour);
    pass(next.before(secs(5)).since(stage.wall())).await;
    let made = lead.runs("daily").pop().unwrap().run_id;
    assert_eq!(made.moment(), Some(next));
    lead.die().await;
    pass(secs(away)).await;
    let lead = stage.open().await;
    pass(secs(20)).await;
    (stage, lead, made)
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_made_ahead_goes_by_catch_up_when_nobody_led_at_its_time() {
    let hourly = r#", "schedule": ["0 * * * *"], "catch_up": "#;
    let table = [
        (r#"{"policy": "none"}"#, 600, Some("(catch_up: none)"), 0),
        (r#"{"policy": "none"}"#, 30, None, 1),
        (r#"{"policy": "last", "window": "5m"}"#, 600, Some("300 s"), 0),
        (r#"{"policy": "last", "window": "1h"}"#, 600, None, 1),
        // Another one was missed besides, and is the last.
        (r#"{"policy": "last", "window": "1d"}"#, 4_000, Some("(catch_up: last)"), 1),
        (r#"{"policy": "all", "window": "1d"}"#, 4_000, None, 2),
    ];
    for (policy, away, skipped, launches) in table {
        let (stage, lead, made) = left(&format!("{hourly}{policy}"), away).await;
        let run = lead.run(&made);
        assert_eq!(run.state, RunState::Completed, "{policy} {away}");
        assert_eq!(run.skipped, skipped.is_some(), "{policy} {away}: {run:?}");
        assert!(run.reason.contains(skipped.unwrap_or_default()), "{policy}: {}", run.reason);
        assert_eq!(stage.fake.state().launches.len(), launches, "{policy} {away}");
        stage.fake.assert_launched_once();
        let says = |it: Entry| matches!(it.noted, Noted::Adopted { evidence } if evidence.contains("(catch_up)"));
        let is_made_up = skipped.is_none() && away > 30;
        assert_eq!(run.timeline.iter().any(says), is_made_up, "{policy} {away}: {run:?}");
    }
}

/// What waits for its turn is stored as what waits for its time.
#[tokio::test(start_paused = true)]
async fn a_run_that_waited_for_its_turn_was_not_missed() {
    let stage = Stage::new();
    stage.fake.state().manner = Manner::Held;
    let lead = stage.open().await;
    let more = r#", "schedule": ["0 * * * *"], "overlap": "queue", "catch_up": {"policy": "none"}"#;
    lead.apply(job("daily", more)).await;
    let first = lead.trigger("daily", 1, stage.wall()).await;
    lead.until(&first, RunState::Running, secs(5)).await;
    let hour = 3_600_000;
    let next = Timestamp((stage.wall().0 / hour + 1) * hour);
    pass(next.after(secs(120)).since(stage.wall())).await;
    let second = RunId::scheduled(&"daily".into(), next);
    assert_eq!(lead.scheduler.state(second.clone()).await.unwrap().state, RunState::Pending);
    lead.die().await;
    let lead = stage.open().await;
    pass(secs(3)).await;
    assert_eq!(lead.scheduler.state(second.clone()).await.unwrap().state, RunState::Pending);
    let attempt = stage.fake.state().launches[0].0.clone();
    stage.fake.end(&attempt, 0);
    lead.until(&second, RunState::Running, secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_definition_cannot_be_read_any_more_ends_and_so_does_its_work() {
    let (stage, lead, run_id) = triggered(Manner::Held, "").await;
    lead.until(&run_id, RunState::Running, secs(5)).await;
    let waits = lead.trigger("once", 2, stage.wall().after(secs(3_600))).await;
    lead.close().await;
    let job_id = run_id.job_id();
    let shard = Shard { seat: Seat::FIRST, number: shard_of(job_id.as_str(), SHARDS) };
    let garbage = Key::new(RecordKey::Definition(job_id, 1).encode());
    let store = &stage.theatre.mem;
    let fence = store.fence(shard).await.unwrap();
    let spoilt = [Op::Put(garbage, b"?".to_vec())];
    assert_eq!(store.commit(shard, fence, &spoilt).await.unwrap(), Commit::Done);
    let lead = stage.open().await;
    for run_id in [&run_id, &waits] {
        lead.until(run_id, RunState::Orphaned, secs(5)).await;
        let reason = lead.run(run_id).reason.clone();
        assert!(reason.starts_with("what its job does could not be read"), "{reason}");
    }
    pass(secs(5)).await;
    assert_eq!(stage.fake.state().stops.len(), 1, "its work is not left alone");
}
