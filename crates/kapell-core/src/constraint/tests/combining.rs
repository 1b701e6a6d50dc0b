//! What becomes of a run.

use serde_json::{Value as Json, json};

use super::{good, map};
use crate::constraint::{Done, Outcome, Spec, Step, Verdict, checked, combine, conclude, steps};
use crate::run::{Counts, Noted};

fn met() -> Outcome {
    Outcome::Met("fine".to_owned())
}

fn violated() -> Outcome {
    Outcome::Violated("not so".to_owned())
}

fn error() -> Outcome {
    Outcome::Error("who knows".to_owned())
}

fn spec(name: &str, entry: Json) -> Spec {
    good(json!([map([(name, entry)])])).specs.remove(0)
}

fn verdict(entry: Json, outcome: Outcome) -> Verdict {
    let spec = spec("time_window", entry);
    let looked = [(&spec, outcome)];
    assert_eq!(checked(&looked).verdict, conclude(&looked, &[]).verdict);
    checked(&looked).verdict
}

/// Written down by hand from the decision on constraints.
#[test]
fn a_violated_constraint_fails_the_run_unless_its_actions_say_otherwise() {
    for (actions, right) in [
        (json!([]), Verdict::Fail),
        (json!(["log"]), Verdict::Fail),
        (
            json!([{ "webhook": "https://a/" }, { "kickOffJob": "b" }, "killAllInstances", "skipNextInstance"]),
            Verdict::Fail,
        ),
        (json!(["log", "proceed"]), Verdict::Proceed),
        (json!(["skip", "log"]), Verdict::Skip),
        (json!(["retry"]), Verdict::Retry),
        (json!(["fail"]), Verdict::Fail),
        (json!([{ "delay": "1m" }]), Verdict::Proceed),
        (json!([{ "delay": "1m" }, "skip"]), Verdict::Skip),
        (json!([{ "delay": "1m" }, "fail"]), Verdict::Fail),
    ] {
        assert_eq!(verdict(json!({ "onViolation": actions }), violated()), right, "{actions}");
        assert_eq!(
            verdict(json!({ "onViolation": actions }), met()),
            Verdict::Proceed,
            "{actions}"
        );
    }
}

#[test]
fn a_constraint_that_is_met_may_say_something_too() {
    for (action, right) in [
        ("skip", Verdict::Skip),
        ("fail", Verdict::Fail),
        ("retry", Verdict::Retry),
        ("log", Verdict::Proceed),
    ] {
        assert_eq!(verdict(json!({ "onMet": [action] }), met()), right, "{action}");
    }
}

#[test]
fn an_error_follows_on_error_and_takes_no_actions() {
    for (on_error, right) in
        [("block", Verdict::Fail), ("allow", Verdict::Proceed), ("retry", Verdict::Retry)]
    {
        let entry = json!({ "onError": on_error, "onViolation": ["skip"], "onMet": ["log"] });
        assert_eq!(verdict(entry.clone(), error()), right);
        assert_eq!(steps(&[(&spec("time_window", entry), error())]), []);
    }
    assert_eq!(verdict(json!({}), error()), Verdict::Fail);
    assert_eq!(
        verdict(json!({ "onViolation": ["fail"], "onMet": ["fail"] }), Outcome::PassedOver),
        Verdict::Proceed
    );
}

#[test]
fn whoever_is_late_is_mentioned_and_whoever_ran_too_long_may_try_again() {
    let word = |name: &str| checked(&[(&spec(name, json!("1m")), violated())]).verdict;
    assert_eq!(word("maxExpectedRunTime"), Verdict::Proceed);
    assert_eq!(word("maxAllowedRunTime"), Verdict::Retry);
}

#[test]
fn the_strictest_of_several_counts() {
    use Verdict::{Fail, Proceed, Retry, Skip};
    for (words, right) in [
        (vec![], Proceed),
        (vec![Proceed, Retry], Retry),
        (vec![Skip, Retry], Skip),
        (vec![Skip, Fail, Retry], Fail),
        (vec![Proceed, Skip, Proceed], Skip),
    ] {
        let backwards: Vec<Verdict> = words.iter().rev().copied().collect();
        assert_eq!((combine(words.clone()), combine(backwards)), (right, right), "{words:?}");
    }
}

#[test]
fn actions_are_taken_in_order_and_nobody_waits_for_a_run_that_will_not_go_on() {
    let waits = spec("time_window", json!({ "onViolation": [{ "delay": "1m" }, "log"] }));
    let tells = spec("time_window", json!({ "onMet": ["log"], "onViolation": ["log", "log"] }));
    let step = |constraint, action| Step { constraint, action };
    let goes = steps(&[(&waits, violated()), (&tells, met())]);
    assert_eq!(goes, [step(0, 0), step(0, 1), step(1, 0)]);
    let fails = steps(&[(&waits, violated()), (&tells, violated())]);
    assert_eq!(fails, [step(0, 1), step(1, 0), step(1, 1)]);
}

#[test]
fn what_was_found_out_is_counted_noted_and_told() {
    let plain = spec("time_window", json!({}));
    let tells = spec("requirePreviousSuccess", json!({ "onViolation": ["skip"] }));
    let all = checked(&[
        (&plain, met()),
        (&tells, violated()),
        (&plain, error()),
        (&plain, Outcome::PassedOver),
    ]);
    assert_eq!(all.counts, Counts { checked: 3, violated: 1, executed: 0, failed: 0 });
    assert!(all.acts);
    assert_eq!(
        all.message,
        "requirePreviousSuccess is violated: not so; time_window could not be checked: who knows"
    );
    let note = |name: &str, met: bool, message: &str| Noted::Constraint {
        name: name.to_owned(),
        met,
        message: message.to_owned(),
    };
    let failed =
        Noted::ConstraintError { name: "time_window".to_owned(), message: "who knows".to_owned() };
    assert_eq!(
        all.notes,
        [
            note("time_window", true, "fine"),
            note("requirePreviousSuccess", false, "not so"),
            failed
        ]
    );
    let fine = checked(&[(&plain, met())]);
    assert_eq!(
        (fine.verdict, fine.acts, fine.message.as_str()),
        (Verdict::Proceed, false, "all constraints are met")
    );
}

#[test]
fn a_failed_action_fails_the_run_if_it_is_required() {
    let spec = spec("time_window", json!({ "onMet": ["log", "log"] }));
    let done = |required: bool, result: Result<&str, &str>| Done {
        name: "log",
        required,
        result: result.map(str::to_owned).map_err(str::to_owned),
    };
    let all = conclude(&[(&spec, met())], &[done(false, Err("no")), done(true, Ok("yes"))]);
    assert_eq!(
        (all.verdict, all.counts),
        (Verdict::Proceed, Counts { checked: 0, violated: 0, executed: 2, failed: 1 })
    );
    let note = |ok: bool, message: &str| Noted::Action {
        name: "log".to_owned(),
        ok,
        message: message.to_owned(),
    };
    assert_eq!(all.notes, [note(false, "no"), note(true, "yes")]);
    let all = conclude(&[(&spec, met())], &[done(true, Err("no"))]);
    assert_eq!(
        (all.verdict, all.message.as_str()),
        (Verdict::Fail, "all constraints are met; action log failed: no")
    );
}
