use super::stage::{Launching, Script, Stage, full};
use crate::constraint::Verdict;
use crate::run::Happened;

fn scripts() -> Vec<Script> {
    let acts = Script { check: (Verdict::Proceed, true), ..Script::default() };
    vec![
        acts.clone(),
        Script { exits: vec![1, 1, 0], ..acts.clone() },
        Script { exits: vec![1], ..acts.clone() },
        Script { launch: Launching::NeverStarts, ..acts.clone() },
        Script { launch: Launching::Fails, ..acts.clone() },
        Script { endless: true, ..acts },
    ]
}

/// The leader dies after so many messages, and the next one again.
#[test]
fn a_leader_may_die_after_any_message_and_each_attempt_is_launched_at_most_once() {
    for script in scripts() {
        for first in 0..60 {
            for second in [1, 2, 3, 5, 9, 17] {
                let mut stage = Stage::new(full(), script.clone());
                for deaths in [first, second] {
                    for _ in 0..deaths {
                        stage.next();
                    }
                    if !stage.board.state.is_final() {
                        stage = stage.fail_over();
                    }
                }
                stage.play();
                assert!(
                    stage.board.state.is_final(),
                    "{script:?} {first} {second}: {:?}",
                    stage.it
                );
                stage.assert_launched_once();
                assert!(stage.finals.len() <= 1);
            }
        }
    }
}

#[test]
fn an_update_that_was_not_stored_when_the_leader_died_is_made_up_for() {
    for script in scripts() {
        for lost_at in 0..40 {
            let mut stage = Stage::new(full(), script.clone());
            for _ in 0..lost_at {
                stage.next();
            }
            let before = stage.board.clone();
            if !stage.next() || before.state.is_final() {
                break;
            }
            // What this last message had stored was lost with the leader, and what it had launched was not:
            // a launch follows a stored intent only.
            stage.board = if stage.launches.is_empty() { before } else { stage.board };
            let mut next = stage.fail_over();
            next.play();
            assert!(next.board.state.is_final(), "{:?}", next.it);
            next.assert_launched_once();
        }
    }
}

#[test]
fn a_cancel_that_is_stored_outlives_the_leader() {
    use crate::run::{RunState, StopKind};
    for after in 0..40 {
        let mut stage = Stage::new(full(), Script { endless: true, ..Script::default() });
        for _ in 0..after {
            stage.next();
        }
        if stage.it.state().is_final() {
            break;
        }
        stage.board.cancel = Some(StopKind::Graceful);
        stage.board.reason = "asked by ann".to_owned();
        let mut next = stage.fail_over();
        next.coming.retain(|(_, happened)| !matches!(happened, Happened::Found { .. }));
        next.play();
        next.assert_ended(RunState::Cancelled);
    }
}
