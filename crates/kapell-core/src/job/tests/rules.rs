//! Jobs come, change and are paused; runs are made.

use std::collections::BTreeMap;

use super::world::*;
use crate::board::{RecordKey, Refusal, Reply};
use crate::job::{
    ActionId, JobDefinition, JobRequest, MOST_RUNS, PassReason, Passed, PauseCause, SchedulerNews,
};
use crate::run::record::MOST_KICKS;
use crate::run::{RunId, RunState, StopKind, Trigger};
use crate::seams::Timestamp;

fn version(version: u64) -> RecordKey {
    RecordKey::Definition(id(), version)
}

fn other() -> JobDefinition {
    JobDefinition { tags: vec!["b".to_owned()], ..definition() }
}

fn ada() -> PauseCause {
    PauseCause::Person { who: "ada".to_owned() }
}

#[test]
fn a_new_job_begins_now() {
    let mut world = World::new();
    let Ok(Reply::Job { job, created: true }) = world.apply(&definition()) else {
        panic!("not made")
    };
    assert_eq!((job.mark, job.revision, job.version), (NOW, 1, 1));
    assert_eq!((world.stands(), world.written), (NOW, 2));
    assert_eq!(world.told(), [SchedulerNews::Applied { job_id: id() }]);
}

#[test]
fn the_same_again_changes_nothing() {
    let mut world = World::with(&definition());
    world.told();
    assert!(matches!(world.apply(&definition()), Ok(Reply::Job { created: false, .. })));
    assert_eq!((world.written, world.told()), (0, vec![]));
}

#[test]
fn a_change_makes_a_revision_and_drops_the_former_one() {
    let mut world = World::with(&definition());
    world.apply(&other()).unwrap();
    assert_eq!((world.job().revision, world.job().mark), (2, NOW));
    assert!(world.has(&version(2)) && !world.has(&version(1)));
}

#[test]
fn definitions_stay_for_as_long_as_a_run_may_go_by_them() {
    let mut world = World::with(&definition());
    let runs = world.advance(2);
    for _ in 0..2 {
        world.apply(&other()).unwrap();
        world.apply(&definition()).unwrap();
    }
    // What waits for its time may be reached by any of the later ones.
    assert!((1..=5).all(|revision| world.has(&version(revision))));
    let intent = |revision| crate::run::RunUpdate {
        revision,
        ..update(crate::run::UpdateKind::Intent, 0, RunState::ContainerCreating)
    };
    world.update(&runs[0], intent(3));
    world.update(&runs[1], intent(5));
    let left: Vec<u64> = (1..=5).filter(|revision| world.has(&version(*revision))).collect();
    assert_eq!(left, [3, 5]);
    world.end(&runs[0], RunState::Completed);
    assert!(!world.has(&version(3)) && world.has(&version(5)));
}

#[test]
fn another_schedule_begins_now_and_what_was_planned_by_the_former_is_refused() {
    let mut world = World::with(&definition());
    let stands = world.stands();
    world.now = NOW.after(seconds(600));
    world
        .apply(&JobDefinition { schedule: vec!["* * * * * *".to_owned()], ..definition() })
        .unwrap();
    assert_eq!(world.stands(), world.now);
    let at = Timestamp(stands.0 + 60_000);
    let runs = vec![scheduled(at)];
    let late = JobRequest::Advance { job_id: id(), from: stands, to: at, runs, passed: Vec::new() };
    assert!(matches!(world.ask(late), Err(Refusal::State { .. })));
}

#[test]
fn a_run_costs_one_record_and_says_where_the_job_stands() {
    let mut world = World::with(&definition());
    let runs = world.advance(3);
    assert_eq!(world.written, 3);
    assert_eq!(world.job().version, 1);
    assert_eq!(world.stands(), NOW.after(seconds(180)));
    let run = world.run(&runs[0]);
    assert_eq!((run.state, run.revision, run.attempt), (RunState::PreRun, 1, 0));
    let of_job: Vec<_> = world.records.runs_of(&id()).map(|run| run.run_id.clone()).collect();
    assert_eq!(of_job, runs);
}

#[test]
fn moments_are_dealt_with_from_where_the_job_stands_only() {
    let mut world = World::with(&definition());
    let at = |minute: i64| Timestamp(NOW.0 + minute * 60_000);
    let ask = |world: &mut World, from, to, runs| {
        world.ask(JobRequest::Advance { job_id: id(), from, to, runs, passed: Vec::new() })
    };
    assert!(ask(&mut world, at(-1), at(1), vec![scheduled(at(1))]).is_err());
    assert!(ask(&mut world, NOW, at(1), vec![scheduled(at(2))]).is_err());
    assert!(ask(&mut world, NOW, at(2), vec![scheduled(at(2)), scheduled(at(1))]).is_err());
    assert!(ask(&mut world, NOW, at(1), vec![asked_for(at(1), 7)]).is_err());
    let many: Vec<_> = (1..=15).map(|minute| scheduled(at(minute))).collect();
    assert!(ask(&mut world, NOW, at(15), many.clone()).is_err());
    assert!(ask(&mut world, NOW, at(14), many[..MOST_RUNS].to_vec()).is_ok());
    assert!(ask(&mut world, NOW, at(14), many[..MOST_RUNS].to_vec()).is_err());
    assert_eq!(world.records.count_active_runs(), MOST_RUNS);
}

#[test]
fn what_came_to_nothing_is_remembered_and_the_newest_of_it_kept() {
    let mut world = World::with(&definition());
    for minute in 1..=200_i64 {
        let (from, to) = (world.stands(), Timestamp(NOW.0 + minute * 60_000));
        let calendar = format!("c{}", minute % 2);
        let passed = vec![Passed::new(to, to, 1, PassReason::Excluded { calendar })];
        world
            .ask(JobRequest::Advance { job_id: id(), from, to, runs: Vec::new(), passed })
            .unwrap();
        assert_eq!(world.stands(), to);
    }
    let passed = &world.job().passed;
    assert_eq!((passed.len(), passed[49].to), (50, world.stands()));
}

#[test]
fn what_is_passed_over_by_an_action_is_used_up() {
    let mut world = World::with(&definition());
    world.ask(JobRequest::SkipNext { job_id: id(), action: ActionId(1), count: 3 }).unwrap();
    let to = NOW.after(seconds(120));
    let why = PassReason::SkippedByAction;
    let passed = vec![Passed::new(NOW.after(seconds(60)), to, 2, why)];
    world
        .ask(JobRequest::Advance { job_id: id(), from: NOW, to, runs: Vec::new(), passed })
        .unwrap();
    assert_eq!(world.job().skip_next, 1);
}

#[test]
fn a_paused_job_makes_no_runs_by_schedule_but_when_it_is_asked() {
    let mut world = World::with(&definition());
    let pause = JobRequest::Pause { job_id: id(), cause: ada(), note: "n".to_owned() };
    world.ask(pause.clone()).unwrap();
    assert_eq!(world.told().last(), Some(&SchedulerNews::Paused { job_id: id(), cause: ada() }));
    world.ask(pause).unwrap();
    assert_eq!(world.written, 0);
    let to = NOW.after(seconds(60));
    let advance =
        |runs| JobRequest::Advance { job_id: id(), from: NOW, to, runs, passed: Vec::new() };
    assert!(world.ask(advance(vec![scheduled(to)])).is_err());
    let run = world.trigger(1);
    assert_eq!(world.run(&run).state, RunState::PreRun);
    world.now = NOW.after(seconds(600));
    world.ask(JobRequest::Resume { job_id: id() }).unwrap();
    assert_eq!((world.stands(), world.job().paused.clone()), (world.now, None));
    assert_eq!(world.job().passed[0].why, PassReason::Paused { note: "n".to_owned() });
    world.ask(JobRequest::Resume { job_id: id() }).unwrap();
    assert_eq!(world.written, 0);
}

#[test]
fn a_suspended_job_that_goes_on_has_missed_nothing() {
    let mut world = World::with(&JobDefinition { suspend: true, ..definition() });
    world.now = NOW.after(seconds(600));
    world.apply(&definition()).unwrap();
    assert_eq!(world.stands(), world.now);
    assert_eq!(world.job().passed[0].why, PassReason::Suspended { note: String::new() });
}

#[test]
fn a_run_that_is_asked_for_is_made_once_and_moves_no_moment() {
    let mut world = World::with(&definition());
    let run = world.trigger(7);
    assert_eq!(world.stands(), NOW);
    let again = JobRequest::Trigger { job_id: id(), run: asked_for(NOW, 7) };
    assert!(matches!(world.ask(again), Err(Refusal::Exists { .. })));
    assert_eq!(world.told().last(), Some(&SchedulerNews::Made { run_id: run }));
    let none = JobRequest::Trigger { job_id: "k".into(), run: asked_for(NOW, 8) };
    assert!(matches!(world.ask(none), Err(Refusal::NotFound { .. })));
}

#[test]
fn what_may_not_be_asked_for_is_refused_with_all_problems() {
    let text = r#"{"job_id":"j","manual":false,"command":{"command":"true"},"parameters":[
        {"name":"fixed","default":"1","changeable":false},{"name":"kind","options":["a","b"]}]}"#;
    let mut world = World::with(&serde_json::from_str(text).unwrap());
    let pairs = [("fixed", "2"), ("kind", "c"), ("other", "x")];
    let parameters = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let run = crate::job::NewRun { parameters: BTreeMap::from(parameters), ..asked_for(NOW, 1) };
    let Err(Refusal::Invalid { problems }) = world.ask(JobRequest::Trigger { job_id: id(), run })
    else {
        panic!("not refused")
    };
    assert_eq!(problems.len(), 4, "{problems:?}");
    let by_schedule = JobRequest::Trigger { job_id: id(), run: scheduled(NOW) };
    assert!(matches!(world.ask(by_schedule), Err(Refusal::Invalid { .. })));
    for (problem, says) in
        problems.iter().zip(["by hand", "no parameter `other`", "`fixed`", "`kind`"])
    {
        assert!(problem.contains(says), "{problem}");
    }
}

/// A run that another one kicks off is made of the job's own rules: it may be asked for although no person may, and it
/// lacks what it is not given. A value that no environment can have is refused here, not by the backend.
#[test]
fn a_run_that_is_kicked_off_has_its_required_parameters_or_is_refused() {
    let text = r#"{"job_id":"j","manual":false,"command":{"command":"true"},"parameters":[
        {"name":"kind","options":["a","b"]},{"name":"note","default":""}]}"#;
    let mut world = World::with(&serde_json::from_str(text).unwrap());
    let mut tail = 1;
    let mut kick = |pairs: &[(&str, &str)]| {
        tail += 1;
        let trigger = Trigger::Action { of: RunId::parse("k:1").unwrap(), depth: 1 };
        let given = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let parameters = given.collect();
        let run = crate::job::NewRun { trigger, parameters, ..asked_for(NOW, tail) };
        match world.ask(JobRequest::Trigger { job_id: id(), run }) {
            Err(Refusal::Invalid { problems }) => problems,
            other => other.map(|_| Vec::new()).unwrap(),
        }
    };
    assert_eq!(
        kick(&[]),
        [
            "parameters of job `j`: parameter `kind` has no value: give one in the `parameters` of its kickOffJob, one of `a`, `b`"
        ]
    );
    let (long, nul) = ("x".repeat(5_000), "a\0b");
    assert_eq!(
        kick(&[("kind", "a"), ("note", &long)]),
        ["parameters of job `j`: parameter `note` must be at most 4 KiB, not 5000 bytes"]
    );
    assert_eq!(
        kick(&[("kind", "a"), ("note", nul)]),
        ["parameters of job `j`: parameter `note` must not contain a NUL byte"]
    );
    assert_eq!(kick(&[("kind", "b")]), [""; 0]);
}

/// By hand is by hand: a backfill and another try are asked for by a person as well.
#[test]
fn a_job_that_nobody_may_run_by_hand_is_neither_backfilled_nor_tried_again() {
    let text = r#"{"job_id":"j","manual":false,"command":{"command":"true"}}"#;
    let mut world = World::with(&serde_json::from_str(text).unwrap());
    let who: arcstr::ArcStr = "ada".into();
    let of = RunId::parse("j:1").unwrap();
    let asked = [
        Trigger::Manual { who: who.clone() },
        Trigger::Backfill { who: who.clone() },
        Trigger::Retry { of, who },
    ];
    for (tail, trigger) in asked.into_iter().enumerate() {
        let run = crate::job::NewRun { trigger, ..asked_for(NOW, tail as u64) };
        let refused = world.ask(JobRequest::Trigger { job_id: id(), run }).unwrap_err();
        let says = "job `j` is not to be run by hand (`manual: false`)";
        assert_eq!(refused, Refusal::Invalid { problems: vec![says.to_owned()] });
    }
}

#[test]
fn a_cancel_is_noted_and_may_only_become_more_urgent() {
    let mut world = World::with(&definition());
    let run_id = world.advance(1).remove(0);
    let ask = |world: &mut World, kind| {
        let why = format!("{kind:?}");
        world.ask(JobRequest::Cancel {
            run_id: RunId::scheduled(&id(), NOW.after(seconds(60))),
            kind,
            why,
        })
    };
    for (kind, stands, written) in [
        (StopKind::Graceful, StopKind::Graceful, 1),
        (StopKind::Graceful, StopKind::Graceful, 0),
        (StopKind::AtOnce, StopKind::AtOnce, 1),
        (StopKind::Graceful, StopKind::AtOnce, 0),
    ] {
        ask(&mut world, kind).unwrap();
        assert_eq!((world.run(&run_id).cancel, world.written), (Some(stands), written));
    }
    assert_eq!(world.run(&run_id).reason, "AtOnce");
    world.end(&run_id, RunState::Cancelled);
    assert!(matches!(ask(&mut world, StopKind::AtOnce), Err(Refusal::State { .. })));
}

#[test]
fn a_chain_of_runs_that_kick_each_other_off_comes_to_an_end() {
    let mut world = World::with(&definition());
    let mut before = Trigger::Schedule;
    for tail in 1..=u64::from(MOST_KICKS) {
        let trigger = Trigger::kicked_off(RunId::parse("k:1").unwrap(), &before);
        let run = crate::job::NewRun { trigger: trigger.clone(), ..asked_for(NOW, tail) };
        world.ask(JobRequest::Trigger { job_id: id(), run }).unwrap();
        before = trigger;
    }
    let trigger = Trigger::kicked_off(RunId::parse("k:1").unwrap(), &before);
    let run = crate::job::NewRun { trigger, ..asked_for(NOW, 999) };
    let Err(Refusal::Invalid { problems }) = world.ask(JobRequest::Trigger { job_id: id(), run })
    else {
        panic!("it was made")
    };
    assert!(problems[0].starts_with("run `k:1` is the last of 64 that kicked each other off"));
    // What was stored before there was a depth.
    let old: Trigger = serde_json::from_str(r#"{"by": "action", "of": "k:1"}"#).unwrap();
    assert_eq!(old, Trigger::Action { of: RunId::parse("k:1").unwrap(), depth: 1 });
}
