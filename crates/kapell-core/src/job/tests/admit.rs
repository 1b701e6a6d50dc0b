//! Who may go, against a naive reference.

use proptest::prelude::*;

use super::world::{NOW, seconds};
use crate::board::{GroupName, JobId};
use crate::job::admit::{Decision, MOST_WAITING, Places, Terms};
use crate::job::{Group, Overlap};
use crate::run::{RunId, StopKind};
use crate::seams::Timestamp;

fn terms(overlap: Overlap, limit: u32, group: Option<(&str, u32)>) -> Terms {
    let group = group.map(|(name, limit)| Group { name: name.into(), limit });
    Terms { domain: "d".into(), overlap, max_concurrent_runs: limit, group }
}

fn run(job: &str, number: i64) -> RunId {
    RunId::scheduled(&job.into(), Timestamp(number * 1000))
}

fn due(number: u64) -> Timestamp {
    NOW.after(seconds(number))
}

/// Each decision in a few letters.
fn shown(decisions: &[Decision]) -> Vec<String> {
    let letters = |decision: &Decision| match decision {
        Decision::Admit { run } => format!("+{run}"),
        Decision::Wait { run, behind, .. } => format!("{run} behind {behind}"),
        Decision::TurnAway { run, behind, .. } => format!("-{run} for {behind}"),
        Decision::Stop { run, kind: StopKind::Graceful, .. } => format!("stop {run}"),
        Decision::Stop { run, kind: StopKind::AtOnce, .. } => format!("kill {run}"),
    };
    decisions.iter().map(letters).collect()
}

/// Three runs of a job of which one may go at a time, and then the first and the second end.
#[test]
fn each_policy_does_what_its_name_says() {
    let table: [(Overlap, [&[&str]; 5]); 6] = [
        (Overlap::Allow, [&["+j:1"], &["+j:2"], &["+j:3"], &[], &[]]),
        (Overlap::Skip, [&["+j:1"], &["-j:2 for j:1"], &["-j:3 for j:1"], &[], &[]]),
        (
            Overlap::Queue,
            [&["+j:1"], &["j:2 behind j:1"], &["j:3 behind j:1"], &["+j:2"], &["+j:3"]],
        ),
        (Overlap::QueueOne, [&["+j:1"], &["j:2 behind j:1"], &["-j:3 for j:2"], &["+j:2"], &[]]),
        (
            Overlap::CancelOther,
            [
                &["+j:1"],
                &["stop j:1", "j:2 behind j:1"],
                &["-j:2 for j:3", "j:3 behind j:1"],
                &["+j:3"],
                &[],
            ],
        ),
        (
            Overlap::TerminateOther,
            [
                &["+j:1"],
                &["kill j:1", "j:2 behind j:1"],
                &["-j:2 for j:3", "j:3 behind j:1"],
                &["+j:3"],
                &[],
            ],
        ),
    ];
    for (overlap, expected) in table {
        let mut places = Places::default();
        places.update(&"j".into(), terms(overlap, 1, None));
        for number in 1..=3_u64 {
            let said = places.ask(&run("j", i64::try_from(number).unwrap()), due(number));
            assert_eq!(
                shown(&said),
                expected[usize::try_from(number).unwrap() - 1],
                "{overlap:?} {number}"
            );
        }
        assert_eq!(shown(&places.ended(&run("j", 1))), expected[3], "{overlap:?}");
        assert_eq!(shown(&places.ended(&run("j", 2))), expected[4], "{overlap:?}");
    }
}

#[test]
fn runs_that_make_up_for_moments_wait_for_their_turn_whatever_overlap_says() {
    for overlap in [Overlap::Skip, Overlap::QueueOne, Overlap::CancelOther, Overlap::TerminateOther]
    {
        let mut places = Places::default();
        places.update(&"j".into(), terms(overlap, 1, None));
        let said: Vec<Vec<String>> =
            (1..=3).map(|number| shown(&places.ask_in_turn(&run("j", number), due(9)))).collect();
        let expected: [&[&str]; 3] = [&["+j:1"], &["j:2 behind j:1"], &["j:3 behind j:1"]];
        assert_eq!(said, expected, "{overlap:?}");
        assert_eq!(shown(&places.ended(&run("j", 1))), ["+j:2"], "{overlap:?}: in order");
        assert_eq!(shown(&places.ended(&run("j", 2))), ["+j:3"], "{overlap:?}");
    }
}

#[test]
fn jobs_of_a_group_take_turns_whatever_each_allows_itself() {
    let mut places = Places::default();
    places.update(&"a".into(), terms(Overlap::Allow, 1, Some(("g", 3))));
    places.update(&"b".into(), terms(Overlap::Skip, 1, Some(("g", 1))));
    assert_eq!(shown(&places.ask(&run("a", 1), due(1))), ["+a:1"]);
    assert_eq!(shown(&places.ask(&run("a", 2), due(2))), ["a:2 behind a:1"]);
    assert_eq!(shown(&places.ask(&run("b", 1), due(1))), ["b:1 behind a:1"]);
    assert_eq!(shown(&places.ask(&run("b", 2), due(3))), ["-b:2 for b:1"], "one of it waits");
    assert_eq!(shown(&places.ended(&run("a", 1))), ["+b:1"], "it was due earlier");
    let said = places.update(&"b".into(), terms(Overlap::Skip, 1, Some(("g", 2))));
    assert_eq!(shown(&said), ["+a:2"], "the least of what they say is more now");
}

#[test]
fn groups_of_two_domains_have_nothing_but_their_name_in_common() {
    let mut places = Places::default();
    let ours = terms(Overlap::Skip, 1, Some(("g", 1)));
    places.update(&"a".into(), ours.clone());
    places.update(&"b".into(), ours.clone());
    places.update(&"c".into(), Terms { domain: "e".into(), ..ours.clone() });
    assert_eq!(shown(&places.ask(&run("a", 1), due(1))), ["+a:1"]);
    assert_eq!(shown(&places.ask(&run("b", 1), due(1))), ["b:1 behind a:1"]);
    assert_eq!(shown(&places.ask(&run("c", 1), due(1))), ["+c:1"]);
    // Nor do they have a limit in common.
    let tighter = Terms { domain: "e".into(), ..terms(Overlap::Skip, 1, Some(("g", 9))) };
    assert_eq!(shown(&places.update(&"c".into(), tighter)), [""; 0]);
    // Who moves to another domain leaves the group.
    let moved = Terms { domain: "e".into(), ..ours };
    assert_eq!(shown(&places.update(&"b".into(), moved)), [""; 0]);
    assert_eq!(shown(&places.ended(&run("c", 1))), ["+b:1"]);
}

#[test]
fn a_run_that_was_told_to_end_is_not_counted_again_by_the_next_leader() {
    let mut places = Places::default();
    places.update(&"j".into(), terms(Overlap::CancelOther, 2, None));
    let held = terms(Overlap::CancelOther, 2, None);
    places.hold(&run("j", 1), &held);
    places.hold(&run("j", 2), &held);
    places.leaves(&run("j", 2));
    places.leaves(&run("j", 9));
    assert_eq!(shown(&places.ask(&run("j", 3), due(3))), ["j:3 behind j:1"]);
    assert_eq!(shown(&places.ended(&run("j", 2))), ["+j:3"]);
}

#[test]
fn who_leaves_a_group_lets_the_others_go() {
    let mut places = Places::default();
    places.update(&"a".into(), terms(Overlap::Queue, 5, Some(("g", 1))));
    places.update(&"b".into(), terms(Overlap::Queue, 5, Some(("g", 2))));
    places.ask(&run("b", 1), due(1));
    assert_eq!(shown(&places.ask(&run("b", 2), due(2))), ["b:2 behind b:1"]);
    assert_eq!(shown(&places.update(&"a".into(), terms(Overlap::Queue, 5, None))), ["+b:2"]);
    places.update(&"a".into(), terms(Overlap::Queue, 5, Some(("g", 2))));
    assert_eq!(shown(&places.ask(&run("a", 1), due(3))), ["a:1 behind b:1"]);
    assert_eq!(shown(&places.forget(&"b".into())), ["+a:1"]);
    assert_eq!(places.count(), (1, 0));
}

#[test]
fn what_held_its_place_before_this_leader_holds_it() {
    let mut places = Places::default();
    let held = terms(Overlap::Queue, 1, Some(("g", 1)));
    places.update(&"j".into(), held.clone());
    places.hold(&run("j", 1), &held);
    assert!(places.holds(&run("j", 1)));
    assert_eq!(shown(&places.ask(&run("j", 1), due(1))), ["+j:1"]);
    assert_eq!(shown(&places.ask(&run("j", 2), due(2))), ["j:2 behind j:1"]);
    assert_eq!(shown(&places.ended(&run("j", 1))), ["+j:2"]);
}

#[test]
fn a_run_holds_the_group_of_its_own_terms_also_after_its_job_has_left_it() {
    let mut places = Places::default();
    places.update(&"a".into(), terms(Overlap::Queue, 5, None));
    places.update(&"b".into(), terms(Overlap::Queue, 5, Some(("g", 1))));
    places.hold(&run("a", 1), &terms(Overlap::Queue, 5, Some(("g", 1))));
    assert_eq!(shown(&places.ask(&run("b", 1), due(1))), ["b:1 behind a:1"]);
    assert_eq!(shown(&places.ask(&run("a", 2), due(2))), ["+a:2"]);
    assert_eq!(shown(&places.ended(&run("a", 1))), ["+b:1"]);
    // And none of a group that its job has joined since.
    places.update(&"a".into(), terms(Overlap::Queue, 5, Some(("h", 1))));
    places.hold(&run("a", 3), &terms(Overlap::Queue, 5, None));
    assert_eq!(shown(&places.ask(&run("a", 4), due(4))), ["+a:4"]);
}

#[test]
fn so_many_wait_and_the_next_one_is_turned_away_with_its_reason() {
    for overlap in [Overlap::Queue, Overlap::Allow] {
        let mut places = Places::default();
        places.update(&"j".into(), terms(overlap, 1, Some(("g", 1))));
        assert_eq!(shown(&places.ask(&run("j", 0), due(0))), ["+j:0"]);
        let most = i64::try_from(MOST_WAITING).unwrap();
        for number in 1..=most {
            let at = due(number.unsigned_abs());
            let said = places.ask(&run("j", number), at);
            assert_eq!(shown(&said), [format!("j:{number} behind j:0")]);
        }
        let said = places.ask(&run("j", most + 1), due(9_000));
        let [Decision::TurnAway { why, .. }] = &said[..] else { panic!("{said:?}") };
        assert_eq!(why, "1000 runs of job `j` wait already, the first is `j:1`");
        let made_up = places.ask_in_turn(&run("j", most + 2), due(9_001));
        assert_eq!(shown(&made_up), [format!("j:{} behind j:0", most + 2)], "each is wanted");
        assert_eq!(shown(&places.ended(&run("j", 0))), ["+j:1"]);
    }
}

#[test]
fn who_may_have_waited_is_known_by_who_is_in_its_way() {
    let table = [
        (Overlap::Skip, false),
        (Overlap::Allow, false),
        (Overlap::Queue, true),
        (Overlap::QueueOne, true),
        (Overlap::CancelOther, true),
        (Overlap::TerminateOther, true),
    ];
    for (overlap, waits) in table {
        let mut places = Places::default();
        let alone = terms(overlap, 1, None);
        places.update(&"j".into(), alone.clone());
        assert!(!places.may_have_waited(&run("j", 2)), "{overlap:?}: nobody is in its way");
        places.hold(&run("j", 1), &alone);
        assert_eq!(places.may_have_waited(&run("j", 2)), waits, "{overlap:?}");
    }
    let mut places = Places::default();
    let grouped = terms(Overlap::Skip, 1, Some(("g", 1)));
    places.update(&"a".into(), grouped.clone());
    places.update(&"b".into(), grouped.clone());
    places.hold(&run("a", 1), &grouped);
    assert!(places.may_have_waited(&run("b", 1)), "its group is full");
}

#[test]
fn every_reason_names_the_run_in_the_way() {
    let mut places = Places::default();
    places.update(&"j".into(), terms(Overlap::Skip, 1, None));
    places.ask(&run("j", 1), due(1));
    let said = places.ask(&run("j", 2), due(2));
    let [Decision::TurnAway { why, .. }] = &said[..] else { panic!("{said:?}") };
    assert_eq!(why, "run `j:1` is under way, and at most 1 may be (overlap: skip)");
}

/// Everything in one list, gone through from the beginning.
#[derive(Debug, Default)]
struct Naive {
    jobs: Vec<(JobId, Terms)>,
    /// With the group in which the place is held.
    holders: Vec<(RunId, Option<GroupName>)>,
    waiting: Vec<(Timestamp, RunId)>,
    stopping: Vec<RunId>,
}

impl Naive {
    fn terms(&self, job: &str) -> &Terms {
        &self.jobs.iter().find(|(id, _)| id.as_str() == job).unwrap().1
    }

    fn limit(terms: &Terms) -> usize {
        if terms.overlap == Overlap::Allow {
            usize::MAX
        } else {
            terms.max_concurrent_runs as usize
        }
    }

    fn holding(&self, job: &str) -> usize {
        self.holders.iter().filter(|(run, _)| run.job() == job).count()
    }

    fn has_room(&self, job: &str) -> bool {
        let terms = self.terms(job);
        let group_is_full = terms.group.as_ref().is_some_and(|group| {
            let of_group = |terms: &Terms| terms.group.clone().filter(|it| it.name == group.name);
            let limits =
                self.jobs.iter().filter_map(|(_, terms)| of_group(terms)).map(|group| group.limit);
            let held = self.holders.iter().filter(|(_, held)| held.as_ref() == Some(&group.name));
            held.count() >= limits.min().unwrap() as usize
        });
        self.holding(job) < Self::limit(terms) && !group_is_full
    }

    fn settle(&mut self) -> Vec<RunId> {
        let mut admitted = Vec::new();
        self.waiting.sort();
        while let Some(at) = self.waiting.iter().position(|(_, run)| self.has_room(run.job())) {
            let (_, run) = self.waiting.remove(at);
            let group = self.terms(run.job()).group.as_ref().map(|group| group.name.clone());
            self.holders.push((run.clone(), group));
            admitted.push(run);
        }
        admitted
    }

    /// Who may go now, who goes without having begun, and who is to stop.
    fn ask(&mut self, run: &RunId, due_at: Timestamp) -> [Vec<RunId>; 3] {
        let job = run.job();
        let (overlap, limit) = (self.terms(job).overlap, Self::limit(self.terms(job)));
        self.waiting.sort();
        let waits: Vec<_> =
            self.waiting.iter().filter(|(_, run)| run.job() == job).cloned().collect();
        let (mut away, mut stops) = (Vec::new(), Vec::new());
        let refused = match overlap {
            Overlap::Skip => self.holding(job) + waits.len() >= limit,
            Overlap::QueueOne => !waits.is_empty(),
            Overlap::Allow | Overlap::Queue | Overlap::CancelOther | Overlap::TerminateOther => {
                false
            }
        };
        if refused {
            return [vec![], vec![run.clone()], vec![]];
        }
        if matches!(overlap, Overlap::CancelOther | Overlap::TerminateOther) {
            let over = (waits.len() + 1).saturating_sub(limit);
            away.extend(waits[..over].iter().map(|(_, run)| run.clone()));
            self.waiting.retain(|(_, run)| !away.contains(run));
            let stopping = self.stopping.iter().filter(|run| run.job() == job).count();
            let wanted = (self.holding(job) + waits.len() - over + 1)
                .saturating_sub(limit)
                .saturating_sub(stopping);
            let mut holders: Vec<_> =
                self.holders.iter().map(|(run, _)| run).filter(|run| run.job() == job).collect();
            holders.retain(|run| !self.stopping.contains(run));
            holders.sort();
            stops = holders.into_iter().take(wanted).cloned().collect();
            self.stopping.extend(stops.clone());
        }
        self.waiting.push((due_at, run.clone()));
        [self.settle(), away, stops]
    }

    fn ended(&mut self, run: &RunId) -> Vec<RunId> {
        self.holders.retain(|(holder, _)| holder != run);
        self.waiting.retain(|(_, waits)| waits != run);
        self.stopping.retain(|stops| stops != run);
        self.settle()
    }
}

fn sorted(decisions: &[Decision]) -> [Vec<RunId>; 3] {
    let mut all: [Vec<RunId>; 3] = Default::default();
    for decision in decisions {
        match decision {
            Decision::Admit { run } => all[0].push(run.clone()),
            Decision::TurnAway { run, .. } => all[1].push(run.clone()),
            Decision::Stop { run, .. } => all[2].push(run.clone()),
            Decision::Wait { .. } => {}
        }
    }
    for runs in &mut all {
        runs.sort();
    }
    all
}

const JOBS: [&str; 4] = ["a", "b", "c", "d"];

fn arb_terms() -> impl Strategy<Value = Terms> {
    let overlap = prop_oneof![
        Just(Overlap::Allow),
        Just(Overlap::Skip),
        Just(Overlap::Queue),
        Just(Overlap::QueueOne),
        Just(Overlap::CancelOther),
        Just(Overlap::TerminateOther),
    ];
    let group = prop::option::of((prop_oneof![Just("g"), Just("h")], 1..4_u32));
    (overlap, 1..4_u32, group).prop_map(|(overlap, limit, group)| terms(overlap, limit, group))
}

#[derive(Debug, Clone)]
enum Step {
    Ask {
        job: usize,
        due: u64,
    },
    /// Of all that hold a place or wait, this one.
    End(usize),
    Change {
        job: usize,
        terms: Terms,
    },
}

fn arb_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..4_usize, 0..100_u64).prop_map(|(job, due)| Step::Ask { job, due }),
        3 => (0..100_usize).prop_map(Step::End),
        1 => (0..4_usize, arb_terms()).prop_map(|(job, terms)| Step::Change { job, terms }),
    ]
}

proptest! {
    #[test]
    fn it_decides_as_somebody_would_who_looks_at_all_of_it(
        first in prop::collection::vec(arb_terms(), 4),
        steps in prop::collection::vec(arb_step(), 0..120),
    ) {
        let (mut places, mut naive) = (Places::default(), Naive::default());
        for (job, terms) in JOBS.iter().zip(first) {
            places.update(&(*job).into(), terms.clone());
            naive.jobs.push(((*job).into(), terms));
        }
        for (number, step) in steps.into_iter().enumerate() {
            let (said, mut expected) = match step {
                Step::Ask { job, due: at } => {
                    let run = run(JOBS[job], i64::try_from(number).unwrap());
                    (places.ask(&run, due(at)), naive.ask(&run, due(at)))
                }
                Step::End(which) => {
                    let holders = naive.holders.iter().map(|(run, _)| run);
                    let all: Vec<_> = holders.chain(naive.waiting.iter().map(|(_, run)| run)).collect();
                    let Some(run) = all.get(which % all.len().max(1)).copied().cloned() else { continue };
                    (places.ended(&run), [naive.ended(&run), vec![], vec![]])
                }
                Step::Change { job, terms } => {
                    naive.jobs[job].1 = terms.clone();
                    (places.update(&JOBS[job].into(), terms), [naive.settle(), vec![], vec![]])
                }
            };
            for runs in &mut expected {
                runs.sort();
            }
            prop_assert_eq!(sorted(&said), expected, "at {}", number);
            prop_assert_eq!(places.count(), (naive.holders.len(), naive.waiting.len()));
        }
        // Nobody is left waiting when all others have ended.
        while let Some((run, _)) = naive.holders.first().cloned() {
            naive.ended(&run);
            places.ended(&run);
        }
        prop_assert_eq!(places.count(), (0, 0));
    }
}

#[test]
fn a_hundred_thousand_that_wait_are_led_through_one_after_the_other() {
    let mut places = Places::default();
    places.update(&"j".into(), terms(Overlap::Queue, 1, Some(("g", 1))));
    let runs: Vec<RunId> = (1..=100_000).map(|number| run("j", number)).collect();
    for (number, run) in runs.iter().enumerate() {
        places.ask_in_turn(run, due(u64::try_from(number).unwrap()));
    }
    for pair in runs.windows(2) {
        assert_eq!(places.ended(&pair[0]), [Decision::Admit { run: pair[1].clone() }]);
    }
}
