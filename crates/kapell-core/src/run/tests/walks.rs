use proptest::prelude::*;

use super::stage::{START, Script, Stage, checked, done, full};
use crate::constraint::Verdict;
use crate::run::{Evidence, Happened, StopKind, Timer, UpdateKind, WorkEnd};

fn verdict() -> impl Strategy<Value = Verdict> {
    prop_oneof![
        Just(Verdict::Proceed),
        Just(Verdict::Fail),
        Just(Verdict::Retry),
        Just(Verdict::Skip)
    ]
}

fn work() -> impl Strategy<Value = WorkEnd> {
    (0..3_i32).prop_map(|code| {
        let failure = (code != 0).then(|| "it failed".to_owned());
        WorkEnd { began: None, at: START, exit_code: Some(code), failure }
    })
}

fn evidence() -> impl Strategy<Value = Evidence> {
    prop_oneof![
        Just(Evidence::Unknown { why: "gone".to_owned() }),
        Just(Evidence::Launched),
        Just(Evidence::Running { since: START }),
        work().prop_map(Evidence::Ended),
    ]
}

fn timer() -> impl Strategy<Value = Timer> {
    prop_oneof![
        Just(Timer::Due),
        Just(Timer::Deadline),
        Just(Timer::StartTimeout),
        Just(Timer::RunTime),
        Just(Timer::Retry),
    ]
}

fn why() -> String {
    "so".to_owned()
}

/// Anything at all, about this attempt or another one. Disks do not say that something is stored which is not.
fn happened() -> impl Strategy<Value = Happened> {
    let attempt = 0..4_u32;
    let kinds = prop_oneof![Just(UpdateKind::Started), Just(UpdateKind::Retry)];
    prop_oneof![
        8 => timer().prop_map(Happened::Rang),
        4 => Just(Happened::Admitted),
        1 => Just(Happened::Queued { why: why() }),
        1 => Just(Happened::TurnedAway { why: why() }),
        4 => (attempt.clone(), verdict(), any::<bool>())
            .prop_map(|(attempt, verdict, acts)| Happened::Checked { attempt, checked: checked(verdict, acts) }),
        4 => (attempt.clone(), verdict()).prop_map(|(attempt, it)| Happened::ActionsDone { attempt, done: done(it) }),
        1 => (attempt.clone(), kinds).prop_map(|(attempt, kind)| Happened::Stored { kind, attempt }),
        1 => attempt.clone().prop_map(|attempt| Happened::IntentRefused { attempt, why: why() }),
        4 => attempt.clone().prop_map(|attempt| Happened::Launched { attempt }),
        1 => attempt.clone().prop_map(|attempt| Happened::LaunchFailed { attempt, why: why() }),
        4 => attempt.clone().prop_map(|attempt| Happened::Started { attempt, at: START }),
        1 => attempt.clone().prop_map(|attempt| Happened::Unstartable { attempt, why: why() }),
        1 => attempt.clone().prop_map(|attempt| Happened::Hindered { attempt, why: why() }),
        4 => (attempt.clone(), work()).prop_map(|(attempt, work)| Happened::Ended { attempt, work }),
        2 => attempt.clone().prop_map(|attempt| Happened::Stopped { attempt, left: None }),
        4 => (attempt.clone(), verdict()).prop_map(|(attempt, it)| Happened::PostChecked { attempt, done: done(it) }),
        1 => Just(Happened::Cancel { kind: StopKind::Graceful, why: why() }),
        2 => (attempt, evidence()).prop_map(|(attempt, evidence)| Happened::Found { attempt, evidence }),
        1 => Just(Happened::Silent),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Whatever is told to it, in whatever order, between what really happens: every step is one that a run may take
    /// (the stage and the machine check that), it ends once, and no attempt is launched twice.
    #[test]
    fn a_run_keeps_to_its_states_whatever_it_is_told(told in prop::collection::vec((happened(), 0..3_u8), 1..60)) {
        let script = Script { check: (Verdict::Proceed, true), exits: vec![1, 0], ..Script::default() };
        let mut stage = Stage::new(full(), script);
        for (happened, real) in told {
            stage.tell(happened);
            for _ in 0..real {
                stage.next();
            }
            prop_assert!(stage.finals.len() <= 1);
        }
        stage.assert_launched_once();
        stage.play();
        if !stage.it.state().is_final() {
            stage.tell(Happened::Silent);
            stage.play();
        }
        prop_assert!(stage.it.state().is_final() && stage.done);
        prop_assert_eq!(stage.finals.len(), 1);
    }
}
