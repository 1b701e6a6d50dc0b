//! What becomes of runs.

use std::sync::Arc;

use arcstr::ArcStr;

use super::world::*;
use crate::board::{Refusal, Reply};
use crate::job::{JobDefinition, JobRequest, PauseCause, SchedulerNews};
use crate::run::record::TIMELINE_KEPT;
use crate::run::{Entry, Noted, RunState, RunUpdate, UpdateKind, update_id};

fn all() -> [(UpdateKind, u32, RunState); 7] {
    [
        (UpdateKind::Intent, 0, RunState::ContainerCreating),
        (UpdateKind::Started, 0, RunState::Running),
        (UpdateKind::Retry, 0, RunState::Retrying),
        (UpdateKind::Intent, 1, RunState::ContainerCreating),
        (UpdateKind::Started, 1, RunState::Running),
        (UpdateKind::Ended, 1, RunState::Failed),
        (UpdateKind::Ended, 1, RunState::Completed),
    ]
}

#[test]
fn updates_are_stored_in_their_order() {
    let mut world = World::with(&definition());
    let run = world.advance(1).remove(0);
    for (kind, attempt, state) in &all()[..6] {
        let reply = world.update(&run, update(*kind, *attempt, *state));
        assert!(matches!(reply, Reply::Run { .. }), "{kind:?} {attempt}");
        let stored = world.run(&run);
        let next = u32::from(*kind == UpdateKind::Retry);
        assert_eq!((stored.state, stored.attempt), (*state, attempt + next));
        assert_eq!(stored.update_id, Some(update_id(&run, *attempt, *kind)));
        assert_eq!(stored.completed_at.is_some(), state.is_final());
    }
}

/// Whatever is sent again, and whenever, what was stored stays.
#[test]
fn what_comes_late_or_again_changes_nothing() {
    let mut world = World::with(&definition());
    let run = world.advance(1).remove(0);
    for (at, (kind, attempt, state)) in all().into_iter().enumerate() {
        world.update(&run, update(kind, attempt, state));
        let stands = world.run(&run).clone();
        for (kind, attempt, state) in &all()[..=at] {
            let reply = world.update(&run, update(*kind, *attempt, *state));
            assert_eq!((reply, world.written), (Reply::Done, 0), "{kind:?} {attempt} after {at}");
            assert_eq!(*world.run(&run), stands);
        }
    }
    assert_eq!(world.run(&run).state, RunState::Failed, "the first end counts");
}

#[test]
fn updates_that_were_put_together_leave_none_behind() {
    let mut world = World::with(&definition());
    let run = world.advance(1).remove(0);
    world.update(&run, update(UpdateKind::Started, 2, RunState::Running));
    assert_eq!(world.run(&run).attempt, 2);
    assert_eq!(world.update(&run, update(UpdateKind::Retry, 1, RunState::Retrying)), Reply::Done);
}

#[test]
fn an_update_that_does_not_lead_to_its_state_is_refused() {
    let mut world = World::with(&definition());
    let run_id = world.advance(1).remove(0);
    let update = Arc::new(update(UpdateKind::Ended, 0, RunState::Running));
    let bad = JobRequest::Update { run_id, update: Arc::clone(&update) };
    assert!(matches!(world.ask(bad), Err(Refusal::Invalid { .. })));
    let run_id = crate::run::RunId::parse("j:1").unwrap();
    let none = JobRequest::Update { run_id, update };
    assert!(matches!(world.ask(none), Err(Refusal::NotFound { .. })));
}

#[test]
fn a_timeline_keeps_its_first_half_and_the_newest_and_no_long_text() {
    let mut world = World::with(&definition());
    let run = world.advance(1).remove(0);
    let entry = |number: usize| Entry {
        at: NOW,
        attempt: 0,
        noted: Noted::Waits { why: format!("{number} {}", "x".repeat(5000)) },
    };
    let timeline = (0..200).map(entry).collect();
    world.update(
        &run,
        RunUpdate { timeline, ..update(UpdateKind::Intent, 0, RunState::ContainerCreating) },
    );
    let numbers: Vec<usize> = world
        .run(&run)
        .timeline
        .iter()
        .map(|entry| {
            let Noted::Waits { why } = &entry.noted else { panic!("another one") };
            assert!(why.len() <= 1024);
            why.split(' ').next().unwrap().parse().unwrap()
        })
        .collect();
    assert_eq!(numbers.len(), TIMELINE_KEPT);
    assert_eq!((numbers[31], numbers[32], numbers[63]), (31, 168, 199));
}

#[test]
fn why_it_is_to_be_cancelled_is_there_until_it_ends() {
    let mut world = World::with(&definition());
    let run_id = world.advance(1).remove(0);
    let kind = crate::run::StopKind::Graceful;
    world
        .ask(JobRequest::Cancel { run_id: run_id.clone(), kind, why: "enough".to_owned() })
        .unwrap();
    world.update(&run_id, update(UpdateKind::Intent, 0, RunState::ContainerCreating));
    assert_eq!(world.run(&run_id).reason, "enough");
    let reason = "stopped: enough".to_owned();
    world
        .update(&run_id, RunUpdate { reason, ..update(UpdateKind::Ended, 0, RunState::Cancelled) });
    assert_eq!(world.run(&run_id).reason, "stopped: enough");
}

#[test]
fn too_many_failures_in_a_row_pause_the_job() {
    let mut world = World::with(&JobDefinition { pause_after_failures: Some(2), ..definition() });
    let runs = world.advance(7);
    let ends = [
        (RunState::Failed, false, 1),
        (RunState::Completed, false, 0),
        (RunState::Orphaned, false, 1),
        (RunState::Completed, true, 1),
        (RunState::Cancelled, false, 1),
    ];
    for (run, (state, skipped, failures)) in runs.iter().zip(ends) {
        world.update(run, RunUpdate { skipped, ..update(UpdateKind::Ended, 0, state) });
        assert_eq!(world.job().failures_in_a_row, failures, "{state:?}");
        assert!(world.job().paused.is_none());
    }
    world.told();
    world.end(&runs[5], RunState::Failed);
    let cause = PauseCause::Failures { run_id: runs[5].clone() };
    assert_eq!(world.job().paused.as_ref().map(|pause| &pause.cause), Some(&cause));
    assert_eq!(world.told(), [SchedulerNews::Paused { job_id: id(), cause }]);
    world.ask(JobRequest::Resume { job_id: id() }).unwrap();
    world.end(&runs[6], RunState::Failed);
    assert!(world.job().paused.is_none(), "it begins to count anew");
}

#[test]
fn the_hosts_that_may_have_its_log_are_kept_the_newest_last() {
    let mut world = World::with(&definition());
    let run_id = world.trigger(1);
    let by = |log_host: &str, kind, attempt, state| RunUpdate {
        log_host: log_host.into(),
        ..update(kind, attempt, state)
    };
    world.update(&run_id, by("one:1", UpdateKind::Intent, 0, RunState::ContainerCreating));
    world.update(&run_id, by("", UpdateKind::Started, 0, RunState::Running));
    world.update(&run_id, by("two:1", UpdateKind::Retry, 0, RunState::Retrying));
    for attempt in 1..12 {
        let host = if attempt % 2 == 0 { "one:1".to_owned() } else { format!("h{attempt}:1") };
        world.update(&run_id, by(&host, UpdateKind::Intent, attempt, RunState::ContainerCreating));
        world.update(&run_id, by("", UpdateKind::Retry, attempt, RunState::Retrying));
    }
    world.update(&run_id, by("last:1", UpdateKind::Ended, 12, RunState::Failed));
    let hosts = &world.run(&run_id).log_hosts;
    assert_eq!(hosts.last().map(ArcStr::as_str), Some("last:1"));
    assert_eq!(hosts.iter().filter(|host| *host == "one:1").count(), 1, "{hosts:?}");
    assert!(hosts.len() <= 8, "{hosts:?}");
}
