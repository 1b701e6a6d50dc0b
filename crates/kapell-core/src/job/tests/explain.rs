//! Why a job did or did not run; what a backfill and a simulation come to.

use super::world::*;
use crate::board::JobId;
use crate::job::backfill::{self, Refused};
use crate::job::explain::{About, Explained, JobFacts, at, job, next_due};
use crate::job::simulate::simulate;
use crate::job::{
    ActionId, Job, JobDefinition, JobRequest, Length, PassReason, Passed, PauseCause,
};
use crate::run::{Entry, Noted, Run, RunId, RunState, RunUpdate, SkippedBy, Trigger, UpdateKind};
use crate::schedule::{ClockChange, Moments, Occurrence};
use crate::seams::Timestamp;

const MINUTE: Every = Every::new(60);

fn minute(number: u64) -> Timestamp {
    NOW.after(seconds(60 * number))
}

fn asked(world: &World, definition: &JobDefinition, moment: Option<Timestamp>) -> Explained {
    let runs: Vec<&Run> = world.records.runs_of(&id()).collect();
    let facts = JobFacts { job: world.job(), definition, stands: world.stands(), runs: &runs };
    match moment {
        None => job(&facts, &MINUTE, world.now),
        Some(moment) => at(&facts, &MINUTE, moment, world.now),
    }
}

fn pass(world: &mut World, to: Timestamp, why: PassReason) {
    let from = world.stands();
    let passed = vec![Passed::new(to, to, 1, why)];
    world.ask(JobRequest::Advance { job_id: id(), from, to, runs: Vec::new(), passed }).unwrap();
}

#[test]
fn every_reason_why_a_moment_came_to_nothing_is_said() {
    let note = || "why".to_owned();
    let reasons = [
        (PassReason::Suspended { note: note() }, About::Suspend, "suspended: why"),
        (PassReason::Paused { note: String::new() }, About::Suspend, "the job was paused"),
        (PassReason::Excluded { calendar: "off".to_owned() }, About::Calendar, "calendar `off`"),
        (PassReason::NotCaughtUp { policy: "none".to_owned() }, About::CatchUp, "catch_up: none"),
        (PassReason::TooOld { window_ms: 60_000 }, About::CatchUp, "than the 60 s"),
        (
            PassReason::DeadlineMissed { late_ms: 1500, deadline_ms: 1000 },
            About::Deadline,
            "1.5 s late",
        ),
        (PassReason::SkippedByAction, About::Skip, "skipNextInstance"),
        (PassReason::SameInstant, About::ClockChange, "another moment"),
    ];
    for (why, about, text) in reasons {
        let mut world = World::with(&definition());
        pass(&mut world, minute(1), why);
        let explained = asked(&world, &definition(), Some(minute(1)));
        assert!(
            explained.summary.contains("came to nothing") && explained.summary.contains(text),
            "{explained:?}"
        );
        assert_eq!(explained.decisions.last().map(|it| it.about), Some(about));
        let whole = asked(&world, &definition(), None);
        assert!(whole.decisions[0].text.contains(text), "{whole:?}");
        assert_eq!(whole.next, Some(minute(2)));
    }
}

#[test]
fn a_moment_that_the_schedule_has_not_any_more_is_explained_by_what_became_of_it() {
    let mut world = World::with(&definition());
    let run = world.advance(1).remove(0);
    world.end(&run, RunState::Failed);
    pass(&mut world, minute(2), PassReason::NotCaughtUp { policy: "none".to_owned() });
    world.now = minute(3);
    let hourly = Every::new(3_600);
    let runs: Vec<&Run> = world.records.runs_of(&id()).collect();
    let definition = definition();
    let facts =
        JobFacts { job: world.job(), definition: &definition, stands: world.stands(), runs: &runs };
    let of_run = at(&facts, &hourly, minute(1), world.now);
    assert!(
        of_run.summary.starts_with(&format!("run `{run}` of that moment failed")),
        "{of_run:?}"
    );
    assert!(of_run.decisions[0].text.contains("as it was then"), "{of_run:?}");
    let of_passed = at(&facts, &hourly, minute(2).after(seconds(0)), world.now);
    assert!(of_passed.summary.contains("came to nothing"), "{of_passed:?}");
    let of_none = at(&facts, &hourly, minute(2).after(seconds(20)), world.now);
    assert!(of_none.summary.contains("still to come"), "{of_none:?}");
}

/// What a moment came to was decided by what the job was then.
#[test]
fn a_calendar_that_came_later_is_not_why_a_moment_came_to_nothing() {
    let mut world = World::with(&definition());
    let run = world.advance(1).remove(0);
    world.end(&run, RunState::Completed);
    pass(&mut world, minute(2), PassReason::Paused { note: "stock-taking".to_owned() });
    world.now = minute(5);
    let runs: Vec<&Run> = world.records.runs_of(&id()).collect();
    let of = definition();
    let facts = JobFacts { job: world.job(), definition: &of, stands: world.stands(), runs: &runs };
    let excluding = Every { excluded: 1, ..MINUTE };
    let paused = at(&facts, &excluding, minute(2), world.now);
    assert_eq!(paused.summary, "that moment came to nothing: the job was paused: stock-taking");
    let ran = at(&facts, &excluding, minute(1), world.now);
    for explained in [&paused, &ran] {
        let told = explained.decisions.iter().any(|it| it.about == About::Calendar);
        assert!(!told, "{explained:?}");
    }
    let to_come = at(&facts, &excluding, minute(7), world.now);
    assert_eq!(to_come.summary, "that moment is excluded by calendar `days off`");
    assert!(to_come.decisions.iter().any(|it| it.about == About::Calendar), "{to_come:?}");
}

#[test]
fn an_old_run_is_not_explained_by_what_its_job_is_now() {
    let mut world = World::with(&definition());
    let run = world.advance(1).remove(0);
    let notes = [
        Noted::State { to: RunState::Pending, why: "its time has come".into() },
        Noted::State { to: RunState::ContainerCreating, why: "no constraints to check".into() },
    ];
    let deadline = Some(Length::new(seconds(600)));
    let changed = JobDefinition { starting_deadline: deadline, ..definition() };
    let tells = |world: &World, revision: u64| {
        let mut run = world.run(&run).clone();
        run.revision = revision;
        for noted in notes.clone() {
            run.timeline.push(Entry { at: minute(1), attempt: 0, noted });
        }
        let (runs, stands) = ([&run], world.stands());
        let facts = JobFacts { job: world.job(), definition: &changed, stands, runs: &runs };
        let explained = at(&facts, &MINUTE, minute(1), world.now);
        let about = |it: About| explained.decisions.iter().filter(|of| of.about == it).count();
        (about(About::Deadline), about(About::Overlap))
    };
    world.apply(&changed).unwrap();
    let now = world.job().revision;
    assert_eq!(tells(&world, now), (1, 1));
    assert_eq!(tells(&world, now - 1), (0, 0));
}

#[test]
fn a_time_within_what_a_former_schedule_passed_over_is_explained_by_that() {
    let mut world = World::with(&definition());
    let from = world.stands();
    let why = PassReason::Paused { note: "holiday".to_owned() };
    let passed = vec![Passed::new(minute(1), minute(9), 9, why)];
    let to = minute(9);
    world.ask(JobRequest::Advance { job_id: id(), from, to, runs: Vec::new(), passed }).unwrap();
    world.now = minute(12);
    let odd = Every::new(7_200);
    let asks = |world: &World, at_what: Timestamp| {
        let of = definition();
        let stands = world.stands();
        let facts = JobFacts { job: world.job(), definition: &of, stands, runs: &[] };
        at(&facts, &odd, at_what, world.now).summary
    };
    let inside = minute(4);
    assert!(!asks(&world, inside).contains("former schedule"), "it was never changed");
    let changed = JobDefinition { schedule: vec!["0 0 * * *".to_owned()], ..definition() };
    world.apply(&changed).unwrap();
    assert_eq!(
        asks(&world, inside),
        "that time is within a range that the former schedule passed over: the job was paused: holiday"
    );
    assert!(!asks(&world, minute(11)).contains("former schedule"));
    // The minutes are moments still: then it is explained as one of them.
    let of = asked(&world, &changed, Some(inside.after(seconds(20))));
    assert!(of.summary.starts_with("that moment came to nothing"), "{of:?}");
}

#[test]
fn the_next_run_is_due_when_it_begins_and_not_if_it_does_not() {
    let mut world = World::with(&definition());
    let run = world.advance(1).remove(0);
    let put_off = Every { off: seconds(7), ..MINUTE };
    let next = |world: &World, definition: &JobDefinition| {
        let mut run = world.run(&run).clone();
        run.due_at = put_off.put_off(run.scheduled_at);
        let (runs, stands) = ([&run], world.stands());
        let facts = JobFacts { job: world.job(), definition, stands, runs: &runs };
        next_due(&facts, &put_off, world.now)
    };
    let made = world.run(&run).scheduled_at.after(seconds(7));
    assert_eq!(next(&world, &definition()), Some(made));
    world.now = made.before(seconds(3));
    assert_eq!(next(&world, &definition()), Some(made), "its moment is past, its time is to come");
    assert_eq!(next(&world, &JobDefinition { suspend: true, ..definition() }), None);
    world.ask(JobRequest::SkipNext { job_id: id(), action: ActionId(1), count: 1 }).unwrap();
    // By the board it is due at its moment, which is past.
    assert_eq!(world.job().skip_next, 1);
    let later = made.after(seconds(120));
    world.now = made.after(seconds(1));
    assert_eq!(next(&world, &definition()), Some(later), "one is passed over");
}

#[test]
fn a_moment_with_a_run_shows_what_was_decided_about_it() {
    let mut world = World::with(&definition());
    let run = world.advance(1).remove(0);
    let notes = [
        Noted::State { to: RunState::Pending, why: "its time has come".into() },
        Noted::Waits { why: "run `j:1` is under way".to_owned() },
        Noted::Constraint {
            name: "time_window".to_owned(),
            met: false,
            message: "it is night".to_owned(),
        },
        Noted::Action { name: "log".to_owned(), ok: true, message: "said".to_owned() },
        Noted::Cancel { why: "enough".to_owned() },
        Noted::Adopted { evidence: "its work runs".to_owned() },
    ];
    let timeline = notes.map(|noted| Entry { at: NOW, attempt: 0, noted }).into();
    let reason = "exit code 3".to_owned();
    world.update(
        &run,
        RunUpdate { reason, timeline, ..update(UpdateKind::Ended, 0, RunState::Failed) },
    );
    let explained = asked(&world, &definition(), Some(Timestamp(minute(1).0 + 400)));
    assert_eq!(explained.summary, format!("run `{run}` of that moment failed: exit code 3"));
    let about: Vec<About> = explained.decisions.iter().map(|it| it.about).collect();
    let expected = [
        About::Due,
        About::Due,
        About::State,
        About::Overlap,
        About::Constraint,
        About::Action,
        About::Cancel,
        About::Adoption,
    ];
    assert_eq!(about, expected);
    assert_eq!(explained.decisions[4].text, "`time_window` is not met: it is night");
}

#[test]
fn passed_moments_are_told_between_the_runs_between_them() {
    let mut world = World::with(&definition());
    let excluded = || PassReason::Excluded { calendar: "off".to_owned() };
    pass(&mut world, minute(1), excluded());
    pass(&mut world, minute(2), excluded());
    world.now = minute(3);
    let run = world.advance(1).remove(0);
    pass(&mut world, minute(4), excluded());
    assert_eq!(world.job().passed.len(), 1, "they are kept as one");
    let told: Vec<String> = asked(&world, &definition(), None)
        .decisions
        .iter()
        .map(|it| format!("{} {}", (it.at.0 - NOW.0) / 60_000, it.text))
        .collect();
    let expected = [
        "1 2 moments within 60 s: excluded by calendar `off`".to_owned(),
        format!("3 run `{run}` waits for its time"),
        "4 excluded by calendar `off`".to_owned(),
    ];
    assert_eq!(told, expected);
}

#[test]
fn passed_moments_that_the_schedule_does_not_know_any_more_are_told_as_one() {
    let mut world = World::with(&definition());
    pass(&mut world, minute(1), PassReason::SkippedByAction);
    world.now = minute(2);
    world.advance(1);
    pass(&mut world, minute(5), PassReason::SkippedByAction);
    let whole = asked(&world, &definition(), None);
    assert!(whole.decisions[0].text.ends_with("(with runs between them)"), "{whole:?}");
}

/// A run of the first minute, with what was noted of it.
fn decided(definition: &JobDefinition, notes: &[(i64, Noted)]) -> Vec<(About, String)> {
    let mut world = World::with(definition);
    let run = world.advance(1).remove(0);
    let timeline = notes.iter().map(|(after_ms, noted)| Entry {
        at: Timestamp(minute(1).0 + after_ms),
        attempt: 0,
        noted: noted.clone(),
    });
    let timeline = timeline.collect();
    world.update(&run, RunUpdate { timeline, ..update(UpdateKind::Ended, 0, RunState::Failed) });
    let explained = asked(&world, definition, Some(minute(1)));
    explained.decisions.into_iter().map(|it| (it.about, it.text)).collect()
}

#[test]
fn each_decision_about_a_moment_is_told_with_what_it_goes_by() {
    let mut definition = definition();
    definition.starting_deadline = Some(Length::new(seconds(60)));
    let state = |to, why: &str| Noted::State { to, why: why.to_owned().into() };
    let told = decided(
        &definition,
        &[
            (200, state(RunState::Pending, "its time has come")),
            (200, Noted::Waits { why: "run `j:1` is under way".to_owned() }),
            (1_500, state(RunState::ConditionPending, "constraints are to be checked")),
            (1_500, state(RunState::ConditionRunning, "checking constraints")),
        ],
    );
    let told: Vec<(About, &str)> =
        told.iter().map(|(about, text)| (*about, text.as_str())).collect();
    let expected = [
        (About::Due, "a moment of its schedule"),
        (About::Due, "a run was made for it"),
        (About::State, "Pending: its time has come"),
        (About::Overlap, "it waits: run `j:1` is under way"),
        (About::Deadline, "1.5 s after its moment, and 1m are allowed (starting_deadline)"),
        (About::Overlap, "its turn has come (overlap: skip, at most 1 at once)"),
        (About::State, "ConditionPending: constraints are to be checked"),
        (About::State, "ConditionRunning: checking constraints"),
    ];
    assert_eq!(told, expected);
}

#[test]
fn a_run_that_is_skipped_says_by_what_and_not_every_state_on_the_way() {
    for (by, about) in [
        (SkippedBy::Schedule, About::Due),
        (SkippedBy::Deadline, About::Deadline),
        (SkippedBy::Overlap, About::Overlap),
        (SkippedBy::Constraint, About::Constraint),
        (SkippedBy::CatchUp, About::CatchUp),
        (SkippedBy::Action, About::Skip),
    ] {
        let way = [
            RunState::ConditionPending,
            RunState::ConditionRunning,
            RunState::ActionPending,
            RunState::ActionRunning,
            RunState::Completed,
        ];
        let mut notes = vec![
            (0, Noted::State { to: RunState::Pending, why: "its time has come".into() }),
            (0, Noted::Skipped { by, why: "so it is".to_owned() }),
        ];
        notes.extend(way.map(|to| (0, Noted::State { to, why: "so it is".into() })));
        let told = decided(&definition(), &notes);
        assert_eq!(told[3], (about, "it is skipped: so it is".to_owned()));
        assert_eq!(told[4], (About::State, "Completed: so it is".to_owned()));
        assert_eq!(told.len(), 5, "{told:?}");
    }
}

#[test]
fn moments_that_are_to_come_or_were_never_due_say_so() {
    let mut world = World::with(&definition());
    let said = |world: &World, moment| asked(world, &definition(), Some(moment)).summary;
    assert!(said(&world, minute(3)).contains("its run is made shortly before it"));
    assert!(said(&world, Timestamp(NOW.0 - 60_000)).contains("before the job was there"));
    world.now = minute(10);
    assert!(said(&world, minute(3)).contains("not decided yet"));
    let cause = PauseCause::Person { who: "ada".to_owned() };
    world.ask(JobRequest::Pause { job_id: id(), cause, note: "moving".to_owned() }).unwrap();
    assert!(said(&world, minute(12)).contains("paused by ada: moving"));
    let whole = asked(&world, &definition(), None);
    assert_eq!(
        (whole.next, &*whole.summary),
        (None, "job `j`: nothing is scheduled: paused by ada: moving")
    );
}

#[test]
fn when_it_runs_next_is_said_past_what_is_excluded_and_skipped() {
    let world = World::with(&definition());
    let job_record = Job { skip_next: 2, ..world.job().clone() };
    let moments = Every { excluded: NOW.0 / 60_000 + 1, ..MINUTE };
    let definition = definition();
    let facts = JobFacts { job: &job_record, definition: &definition, stands: NOW, runs: &[] };
    assert_eq!(job(&facts, &moments, NOW).next, Some(minute(4)));
    let suspended = JobDefinition { suspend: true, ..definition.clone() };
    let facts = JobFacts { definition: &suspended, ..facts };
    assert_eq!(job(&facts, &moments, NOW).next, None);
}

fn backfill(from: Timestamp, to: Timestamp) -> Result<backfill::Backfill, Refused> {
    let moments = Every { excluded: NOW.0 / 60_000 - 2, ..MINUTE };
    backfill::plan(&JobId::from("j"), &moments, (from, to), NOW, "ada", 0xab)
}

#[test]
fn a_backfill_makes_a_run_of_each_moment_that_is_not_excluded() {
    let made = backfill(Timestamp(NOW.0 - 240_000), NOW).unwrap();
    let ids: Vec<&RunId> = made.runs.iter().map(|run| &run.run_id).collect();
    let expected =
        [-240, -180, -60].map(|ago| RunId::asked_for(&id(), Timestamp(NOW.0 + ago * 1000), 0xab));
    assert_eq!((ids, made.excluded), (expected.iter().collect(), 1));
    assert_eq!((made.runs[0].scheduled_at, made.runs[0].due_at), (Timestamp(NOW.0 - 240_000), NOW));
    assert_eq!(made.runs[0].trigger, Trigger::Backfill { who: "ada".into() });
    let mut world = World::with(&definition());
    for run in made.runs {
        world.ask(JobRequest::Trigger { job_id: id(), run }).unwrap();
    }
    assert_eq!(world.stands(), NOW, "what the schedule does is not touched");
}

#[test]
fn the_same_backfill_again_asks_for_the_same_runs() {
    let with = |pairs: &[(&str, &str)], key: &str| {
        let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        backfill::tail(&pairs.collect(), key)
    };
    assert_eq!(with(&[("A", "1"), ("B", "2")], ""), with(&[("B", "2"), ("A", "1")], ""));
    let different = [
        with(&[], ""),
        with(&[], "k"),
        with(&[("A", "1")], ""),
        with(&[("A1", "")], ""),
        with(&[("", "A1")], ""),
    ];
    for (number, one) in different.iter().enumerate() {
        assert!(!different[..number].contains(one), "{number}");
    }
    let asked = backfill(Timestamp(NOW.0 - 240_000), NOW).unwrap().runs.remove(0);
    let mut run = Run::unreadable(asked.run_id.clone());
    (run.scheduled_at, run.trigger) = (asked.scheduled_at, Trigger::Backfill { who: "bob".into() });
    assert!(backfill::is_same(&run, &asked), "whoever asked first");
    run.trigger = Trigger::Manual { who: "ada".into() };
    assert!(!backfill::is_same(&run, &asked));
}

#[test]
fn a_backfill_has_its_bounds() {
    let ago = |minutes: i64| Timestamp(NOW.0 - minutes * 60_000);
    assert_eq!(backfill(NOW, NOW), Err(Refused::Backwards));
    assert_eq!(backfill(NOW, minute(1)), Err(Refused::Future));
    assert_eq!(backfill(ago(1001), NOW).unwrap().runs.len(), 1000);
    assert_eq!(backfill(ago(1002), NOW), Err(Refused::TooMany { until: ago(1) }));
}

/// Its second moment does not exist by the clock on the wall.
#[derive(Debug)]
struct Changing;

impl Moments for Changing {
    fn next_after(&self, after: Timestamp) -> Option<Occurrence> {
        let next = MINUTE.next_after(after)?;
        let change = (next.at == minute(1)).then_some(ClockChange::Gap);
        Some(Occurrence { change, ..next })
    }

    fn put_off(&self, at: Timestamp) -> Timestamp {
        if at == minute(2) { at.after(seconds(30)) } else { at }
    }
}

#[test]
fn a_simulation_shows_what_would_run_and_where_the_clock_changes() {
    let starting_deadline = Some(Length::new(seconds(20)));
    let definition = JobDefinition { starting_deadline, ..definition() };
    let shown = simulate(&definition, &Changing, (NOW, minute(10)), 4);
    let ats: Vec<Timestamp> = shown.moments.iter().map(|it| it.at).collect();
    assert_eq!((ats, shown.more_from), ((0..4).map(minute).collect(), Some(minute(4))));
    assert_eq!(shown.moments[1].change, Some(ClockChange::Gap));
    let late = PassReason::DeadlineMissed { late_ms: 30_000, deadline_ms: 20_000 };
    assert_eq!(
        (shown.moments[2].due_at, &shown.moments[2].passed),
        (minute(2).after(seconds(30)), &Some(late))
    );
    let suspended = JobDefinition { suspend: true, ..definition };
    let shown = simulate(&suspended, &Changing, (NOW, minute(2)), 4);
    assert!(shown.more_from.is_none() && shown.moments.iter().all(|it| it.passed.is_some()));
}
