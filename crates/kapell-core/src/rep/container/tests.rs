use super::*;

/// Copied by hand from the specification.
const SPEC: &[(State, State)] = &[
    (State::Reserved, State::Initializing),
    (State::Initializing, State::Created),
    (State::Initializing, State::Completed),
    (State::Created, State::Completed),
    (State::Created, State::Running),
    (State::Running, State::Completed),
];

#[test]
fn only_the_steps_of_the_specification_are_legal() {
    for from in State::ALL {
        for to in State::ALL {
            let mut life = Life { state: from, since: Moment::ZERO, result: None };
            let stepped = if to == State::Completed {
                life.complete(RunResult::stopped(), Moment::ZERO)
            } else {
                life.advance(to, Moment::ZERO)
            };
            assert_eq!(stepped.is_ok(), SPEC.contains(&(from, to)), "{from:?} to {to:?}");
            assert_eq!(life.state(), if stepped.is_ok() { to } else { from });
        }
    }
}

#[test]
fn what_was_stopped_has_neither_failed_nor_a_reason() {
    let shown = |it: &RunResult| (it.is_failed(), it.failure_reason().to_owned(), it.is_stopped());
    let stopped = RunResult { exit_code: Some(143), ..RunResult::stopped() };
    assert_eq!(shown(&stopped), (false, String::new(), true));
    assert_eq!(shown(&RunResult::failed("x")), (true, "x".to_owned(), false));
    assert_eq!(shown(&RunResult::default()), (false, String::new(), false));
    // Whatever was said before: there is one place for both.
    let both = RunResult { ending: Ending::Stopped, ..RunResult::failed("x") };
    assert_eq!(shown(&both), (false, String::new(), true));
}
