use super::stage::{Script, Stage, full};
use crate::constraint::Verdict;
use crate::run::{Happened, RunState};

fn script() -> Script {
    Script { check: (Verdict::Proceed, true), exits: vec![1, 0], ..Script::default() }
}

/// How many messages a whole life takes.
fn messages() -> usize {
    let mut stage = Stage::new(full(), script());
    (0..1_000).take_while(|_| stage.next()).count()
}

#[test]
fn every_message_may_come_twice() {
    for doubled in 0..messages() {
        let mut stage = Stage::new(full(), script());
        for _ in 0..doubled {
            stage.next();
        }
        let again = stage.coming.front().cloned();
        let ring = stage.ring;
        stage.next();
        if let Some((_, happened)) = again {
            stage.tell(happened);
        }
        if let Some((timer, _)) = ring {
            stage.tell(Happened::Rang(timer));
        }
        stage.play();
        assert!(stage.it.state().is_final(), "{doubled}: {:?}", stage.it);
        assert_eq!((stage.finals.len(), stage.done), (1, true), "{doubled}");
        stage.assert_launched_once();
    }
}

#[test]
fn every_message_may_come_again_at_any_later_time() {
    let mut sent = Vec::new();
    let mut stage = Stage::new(full(), script());
    loop {
        let next = stage.coming.front().map(|(_, happened)| happened.clone());
        if !stage.next() {
            break;
        }
        sent.extend(next.into_iter().map(|happened| (stage.clone(), happened)));
    }
    for (at, (_, late)) in sent.iter().enumerate() {
        for (stage, _) in &sent[at..] {
            let mut stage = stage.clone();
            stage.tell(late.clone());
            stage.play();
            stage.assert_ended(RunState::Completed);
            assert_eq!(stage.launches, [0, 1], "{late:?}");
        }
    }
}

#[test]
fn a_lost_message_is_made_up_for_by_a_limit_by_silence_or_by_the_next_leader() {
    for lost in 0..messages() {
        let mut stage = Stage::new(full(), script());
        for _ in 0..lost {
            stage.next();
        }
        let was = stage.coming.pop_front();
        if was.is_none() {
            stage.ring = None;
        }
        stage.play();
        let mut orphan = stage.clone();
        if !orphan.it.state().is_final() {
            orphan.tell(Happened::Silent);
            orphan.play();
            orphan.assert_ended(RunState::Orphaned);
        }
        if !stage.board.state.is_final() {
            let mut next = stage.fail_over();
            // News follow of what is there.
            next.coming.extend(
                was.into_iter().filter(|(_, happened)| matches!(happened, Happened::Ended { .. })),
            );
            next.play();
            assert!(next.board.state.is_final(), "{lost}: {:?}", next.it);
            next.assert_launched_once();
        }
    }
}

#[test]
fn what_is_about_another_attempt_is_not_taken_for_this_one() {
    let mut stage = Stage::new(full(), script());
    stage.play_to(RunState::Retrying).play_to(RunState::Running);
    assert_eq!(stage.it.attempt(), 1);
    let work = crate::run::WorkEnd {
        began: None,
        at: stage.now,
        exit_code: Some(7),
        failure: Some("late".to_owned()),
    };
    stage.tell(Happened::Ended { attempt: 0, work });
    stage.tell(Happened::Stopped { attempt: 0, left: None });
    stage.tell(Happened::LaunchFailed { attempt: 0, why: "late".to_owned() });
    assert_eq!(stage.it.state(), RunState::Running);
    assert_eq!(stage.ignored, ["an end of its work", "an end of a stop", "a launch that failed"]);
    stage.play();
    stage.assert_ended(RunState::Completed);
}
