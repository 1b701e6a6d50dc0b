//! Each moment once: random restarts, lost answers, clock jumps and pauses, against a model that looks at every moment.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::world::*;
use crate::job::due::{AHEAD, GRACE, Planned, plan};
use crate::job::{
    ActionId, CatchUp, CatchUpPolicy, History, JobDefinition, JobRequest, Length, PassReason,
    PauseCause,
};
use crate::run::{RunId, RunState, Trigger};
use crate::schedule::Moments;
use crate::seams::Timestamp;

#[derive(Debug, Clone)]
enum Happens {
    /// So many seconds pass, or the clock is put back.
    Time(i64),
    Plan,
    /// It is planned, and the leader is gone before it is committed.
    PlanLost,
    /// It is committed, and whoever asked did not hear of it and asks again.
    AnswerLost,
    Pause,
    Resume,
    Skip,
    /// A run that was made has ended; the history keeps few.
    End,
}

fn arb_happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        6 => (1..200_i64).prop_map(Happens::Time),
        1 => (200..20_000_i64).prop_map(Happens::Time),
        1 => (-5_000..0_i64).prop_map(Happens::Time),
        8 => Just(Happens::Plan),
        1 => Just(Happens::PlanLost),
        2 => Just(Happens::AnswerLost),
        1 => Just(Happens::Pause),
        1 => Just(Happens::Resume),
        1 => Just(Happens::Skip),
        3 => Just(Happens::End),
    ]
}

fn arb_definition() -> impl Strategy<Value = JobDefinition> {
    let policy =
        prop_oneof![Just(CatchUpPolicy::None), Just(CatchUpPolicy::Last), Just(CatchUpPolicy::All)];
    (policy, 1..8_000_u64, prop::option::of(5..4_000_u64), 0..3_u32).prop_map(
        |(policy, window, deadline, kept)| {
            let mut definition = definition();
            definition.catch_up = CatchUp { policy, window: Length::new(seconds(window)) };
            definition.starting_deadline = deadline.map(|deadline| Length::new(seconds(deadline)));
            definition.history =
                History { succeeded: kept, failed: kept, skipped: kept, max_age: None };
            definition
        },
    )
}

/// What becomes of a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Fate {
    Run(Trigger),
    Passed(&'static str),
}

const fn name(why: &PassReason) -> &'static str {
    match why {
        PassReason::Suspended { .. } => "suspended",
        PassReason::Paused { .. } => "paused",
        PassReason::Excluded { .. } => "excluded",
        PassReason::NotCaughtUp { .. } => "not caught up",
        PassReason::TooOld { .. } => "too old",
        PassReason::DeadlineMissed { .. } => "deadline",
        PassReason::SkippedByAction => "skipped",
        PassReason::SameInstant => "same instant",
    }
}

/// Every moment that is due, one by one.
fn model(world: &World, definition: &JobDefinition, moments: &Every) -> BTreeMap<Timestamp, Fate> {
    let (now, mut at) = (world.now, world.stands());
    let mut due = Vec::new();
    while let Some(next) = moments.next_after(at).filter(|next| next.at <= now.after(AHEAD)) {
        at = next.at;
        due.push(next);
    }
    if world.job().paused.is_some() {
        let late = |next: &crate::schedule::Occurrence| now.since(next.at) >= seconds(60);
        let noted = due.first().is_some_and(late);
        let passed = due.into_iter().filter(|next| noted && next.at <= now);
        return passed.map(|next| (next.at, Fate::Passed("paused"))).collect();
    }
    let window = definition.catch_up.window.get();
    let is_missed = |at: Timestamp| now.since(at) > GRACE;
    let could = |next: &&crate::schedule::Occurrence| {
        next.excluded.is_none() && is_missed(next.at) && now.since(next.at) <= window
    };
    let last = due.iter().filter(could).map(|next| next.at).max();
    let mut skips = world.job().skip_next;
    let fate = |next: crate::schedule::Occurrence| {
        let late = now.since(next.at);
        let run = if next.excluded.is_some() {
            Fate::Passed("excluded")
        } else if definition.starting_deadline.is_some_and(|deadline| late > deadline.get()) {
            Fate::Passed("deadline")
        } else if !is_missed(next.at) {
            Fate::Run(Trigger::Schedule)
        } else {
            match definition.catch_up.policy {
                CatchUpPolicy::None => Fate::Passed("not caught up"),
                CatchUpPolicy::Last | CatchUpPolicy::All if late > window => {
                    Fate::Passed("too old")
                }
                CatchUpPolicy::Last if last != Some(next.at) => Fate::Passed("not caught up"),
                CatchUpPolicy::Last | CatchUpPolicy::All => Fate::Run(Trigger::CatchUp),
            }
        };
        let skipped = matches!(run, Fate::Run(_)) && skips > 0;
        skips -= u32::from(skipped);
        (next.at, if skipped { Fate::Passed("skipped") } else { run })
    };
    due.into_iter().map(fate).collect()
}

fn planned(world: &World, definition: &JobDefinition, moments: &Every) -> Planned {
    plan(world.job(), world.stands(), definition, moments, world.now, AHEAD)
}

fn request(world: &World, planned: &Planned) -> JobRequest {
    let Planned { runs, passed, to, .. } = planned.clone();
    JobRequest::Advance { job_id: id(), from: world.stands(), to, runs, passed }
}

/// Says what a plan makes of each moment, and checks its counts.
fn fates(world: &World, planned: &Planned, moments: &Every) -> BTreeMap<Timestamp, Fate> {
    let mut fates: BTreeMap<Timestamp, Fate> =
        planned.runs.iter().map(|run| (run.scheduled_at, Fate::Run(run.trigger.clone()))).collect();
    let mut at = world.stands();
    let mut counts = vec![0; planned.passed.len()];
    while let Some(next) = moments.next_after(at).filter(|next| next.at <= planned.to) {
        at = next.at;
        if fates.contains_key(&at) {
            continue;
        }
        let of = planned.passed.iter().position(|passed| passed.from <= at && at <= passed.to);
        let of = of.unwrap_or_else(|| panic!("nothing is said of {at:?}: {planned:?}"));
        counts[of] += 1;
        fates.insert(at, Fate::Passed(name(&planned.passed[of].why)));
    }
    for (passed, count) in planned.passed.iter().zip(counts) {
        assert_eq!(passed.count, count, "{passed:?}");
    }
    fates
}

proptest! {
    #[test]
    fn every_moment_is_dealt_with_once_and_as_the_model_says(
        definition in arb_definition(),
        step in 1..150_i64,
        excluded in prop_oneof![Just(i64::MAX), 2..9_i64],
        happens in prop::collection::vec(arb_happens(), 1..80),
    ) {
        let moments = Every { excluded, ..Every::new(step.max(25)) };
        let mut world = World::with(&definition);
        let begun = world.now;
        let mut skipped = 0;
        let mut made = BTreeSet::<RunId>::new();
        for happens in happens {
            match happens {
                Happens::Time(passed) => {
                    // So few moments that no call leaps over any: what leaping does has its own test.
                    let most = world.stands().after(seconds(24_000));
                    world.now = Timestamp(world.now.0 + passed * 1000).min(most);
                }
                Happens::Plan => loop {
                    let expected = model(&world, &definition, &moments);
                    let planned = planned(&world, &definition, &moments);
                    if planned.to == world.stands() {
                        prop_assert!(expected.is_empty(), "left out: {:?}", expected);
                        break;
                    }
                    let fates = fates(&world, &planned, &moments);
                    let expected: BTreeMap<_, _> =
                        expected.into_iter().filter(|(at, _)| *at <= planned.to).collect();
                    prop_assert_eq!(&fates, &expected);
                    for run in &planned.runs {
                        prop_assert!(run.scheduled_at > begun);
                        prop_assert!(made.insert(run.run_id.clone()), "{} twice", run.run_id);
                    }
                    let request = request(&world, &planned);
                    prop_assert!(world.ask(request).is_ok());
                    prop_assert_eq!(world.stands(), planned.to);
                },
                Happens::PlanLost => drop(planned(&world, &definition, &moments)),
                Happens::AnswerLost => {
                    let planned = planned(&world, &definition, &moments);
                    if planned.to > world.stands() {
                        let request = request(&world, &planned);
                        prop_assert!(world.ask(request.clone()).is_ok());
                        prop_assert!(world.ask(request).is_err());
                        for run in planned.runs {
                            prop_assert!(made.insert(run.run_id.clone()), "{} twice", run.run_id);
                        }
                    }
                }
                Happens::Pause => {
                    let cause = PauseCause::Person { who: "ada".to_owned() };
                    world.ask(JobRequest::Pause { job_id: id(), cause, note: String::new() }).unwrap();
                }
                Happens::Resume => drop(world.ask(JobRequest::Resume { job_id: id() }).unwrap()),
                Happens::Skip => {
                    let action = ActionId(skipped);
                    skipped += 1;
                    let skip = JobRequest::SkipNext { job_id: id(), action, count: 1 };
                    // Of those that were made and of those to come.
                    let counted = |world: &World| {
                        world.job().skip_next as usize + world.job().skips.len()
                    };
                    let before = counted(&world);
                    // The answer may be lost.
                    prop_assert!(world.ask(skip.clone()).is_ok());
                    prop_assert!(world.ask(skip).is_ok());
                    prop_assert_eq!(counted(&world), before + 1);
                }
                Happens::End => {
                    let active = world.records.active_runs().map(|run| run.run_id.clone()).next_back();
                    let stands = world.stands();
                    if let Some(run) = active {
                        world.end(&run, RunState::Completed);
                    }
                    prop_assert_eq!(world.stands(), stands, "forgetting moved it");
                }
            }
        }
    }
}
