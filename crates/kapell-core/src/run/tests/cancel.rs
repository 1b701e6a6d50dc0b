use super::stage::{Launching, Script, Stage, Work, full};
use crate::constraint::Verdict;
use crate::run::{Happened, RunState, StopKind};

fn cancel(kind: StopKind) -> Happened {
    Happened::Cancel { kind, why: "asked by ann".to_owned() }
}

fn scripts() -> Vec<Script> {
    let acts = Script { check: (Verdict::Proceed, true), exits: vec![1, 0], ..Script::default() };
    vec![
        acts.clone(),
        Script { endless: true, ..acts.clone() },
        Script { launch: Launching::NeverStarts, ..acts.clone() },
        Script { launch: Launching::Fails, ..acts },
    ]
}

#[test]
fn a_cancel_ends_it_in_every_phase_and_leaves_nothing_behind() {
    for script in scripts() {
        for kind in [StopKind::Graceful, StopKind::AtOnce] {
            for after in 0.. {
                let mut stage = Stage::new(full(), script.clone());
                let going = (0..after).all(|_| stage.next());
                if !going || stage.it.state().is_final() {
                    break;
                }
                let attempt = stage.it.attempt();
                let over = matches!(stage.work.get(&attempt), Some(Work::Ended(_)));
                let has_work = stage.launches.contains(&attempt) && !over;
                stage.tell(cancel(kind));
                stage.play();
                stage.assert_ended(RunState::Cancelled);
                assert_eq!(stage.board.reason, "asked by ann");
                let stopped = stage.stops.iter().any(|(at, _)| *at == attempt);
                assert!(stopped || !has_work, "its work was left: {:?}", stage.it);
            }
        }
    }
}

#[test]
fn one_that_is_being_stopped_may_be_told_to_hurry() {
    let mut stage = Stage::new(full(), Script { endless: true, ..Script::default() });
    stage.play_to(RunState::Running);
    stage.tell(cancel(StopKind::Graceful));
    stage.tell(cancel(StopKind::Graceful));
    assert_eq!(stage.stops, [(0, StopKind::Graceful)]);
    stage.tell(cancel(StopKind::AtOnce));
    assert_eq!(stage.stops, [(0, StopKind::Graceful), (0, StopKind::AtOnce)]);
    stage.play();
    stage.assert_ended(RunState::Cancelled);
}

#[test]
fn a_cancel_while_it_is_stopped_for_its_length_is_what_counts() {
    let mut stage = Stage::new(full(), Script { endless: true, ..Script::default() });
    while stage.stops.is_empty() {
        stage.next();
    }
    stage.tell(cancel(StopKind::Graceful));
    stage.play();
    stage.assert_ended(RunState::Cancelled);
}

#[test]
fn what_could_not_be_ended_is_named() {
    let script =
        Script { endless: true, left: Some("cell-3 does not answer"), ..Script::default() };
    let mut stage = Stage::new(full(), script);
    stage.play_to(RunState::Running);
    stage.tell(cancel(StopKind::Graceful));
    stage.play();
    stage.assert_ended(RunState::Cancelled);
    assert_eq!(stage.board.reason, "asked by ann; cell-3 does not answer");
}

#[test]
fn a_cancel_after_the_end_changes_nothing_and_is_told() {
    let mut stage = Stage::new(full(), Script::default());
    stage.play();
    stage.tell(cancel(StopKind::AtOnce));
    stage.tell(Happened::Silent);
    assert_eq!(stage.ignored, ["a cancel after its end", "silence after its end"]);
    stage.assert_ended(RunState::Completed);
}
