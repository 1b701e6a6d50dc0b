use super::shapes::*;
use crate::recipe::{Course, Deed, Event, Leaf, Outcome, Phase, Recipe, is_sole};

fn two() -> Vec<crate::board::Action> {
    vec![run("a"), run("b")]
}

#[test]
fn one_program_is_begun_and_its_end_is_the_end() {
    let mut walk = Walk::through(run("a"));
    assert_eq!((walk.began.as_str(), walk.course.phase()), ("+0", Phase::Action));
    assert_eq!(walk.ends(0, badly(3)), "");
    assert_eq!(walk.course.phase(), over(Some("Exited with status 3"), Some(3)));
    assert!(!walk.course.is_stopping());
}

#[test]
fn the_setup_comes_first_and_its_leaves_are_counted_first() {
    let setup = Some(serial(vec![download(), run("s")]));
    let recipe = Recipe { setup, action: parallel(vec![upload(), run("a")]) };
    let mut walk = Walk::of(recipe);
    assert_eq!((walk.began.as_str(), walk.course.phase()), ("+0", Phase::Setup));
    assert!(matches!(walk.course.deed(Leaf(0)), Some(Deed::Download(_))));
    assert!(matches!(walk.course.deed(Leaf(1)), Some(Deed::Run(run)) if run.path == "s"));
    assert!(matches!(walk.course.deed(Leaf(2)), Some(Deed::Upload(_))));
    assert!(matches!(walk.course.deed(Leaf(3)), Some(Deed::Run(run)) if run.path == "a"));
    assert_eq!(walk.course.deed(Leaf(4)), None);
    assert_eq!(walk.ends(0, Outcome::default()), "+1");
    assert_eq!(walk.course.phase(), Phase::Setup);
    assert_eq!(walk.ends(1, well()), "+2 +3");
    assert_eq!(walk.course.phase(), Phase::Action);
}

#[test]
fn without_its_setup_nothing_of_the_action_begins() {
    let mut walk = Walk::of(Recipe { setup: Some(run("s")), action: run("a") });
    assert_eq!(walk.ends(0, badly(1)), "");
    assert_eq!(walk.course.phase(), over(Some("Exited with status 1"), Some(1)));
}

#[test]
fn only_one_program_and_nothing_else_is_sole() {
    let sole = |action| is_sole(None, &action);
    assert!(sole(run("a")));
    assert!(sole(timeout(5, attempt(progress(run("a"))))));
    assert!(!sole(download()));
    assert!(!sole(serial(two())));
    assert!(!sole(serial(vec![run("a"), upload()])));
    assert!(!sole(serial(vec![])));
    assert!(!is_sole(Some(&run("s")), &run("a")));
    assert!(!is_sole(Some(&download()), &run("a")));
}

#[test]
fn serial_is_one_after_the_other() {
    let mut walk = Walk::through(serial(vec![run("a"), run("b"), upload()]));
    assert_eq!(walk.began, "+0");
    assert_eq!(walk.ends(0, well()), "+1");
    assert_eq!(walk.ends(1, Outcome { failure: None, exit_code: Some(7) }), "+2");
    assert_eq!(walk.ends(2, Outcome::default()), "");
    assert_eq!(walk.course.phase(), over(None, Some(7)), "of the last program");
}

#[test]
fn the_first_failure_ends_serial() {
    let mut walk = Walk::through(serial(two()));
    assert_eq!(walk.ends(0, badly(2)), "");
    assert_eq!(walk.course.phase(), over(Some("Exited with status 2"), Some(2)));
}

#[test]
fn a_failure_that_is_of_no_program_has_no_exit_code() {
    let mut walk = Walk::through(serial(vec![run("a"), download()]));
    walk.ends(0, well());
    walk.ends(1, Outcome { failure: Some("not found".to_owned()), exit_code: None });
    assert_eq!(walk.course.phase(), over(Some("not found"), None));
}

#[test]
fn parallel_waits_for_all_and_tells_all_reasons_in_their_order() {
    let mut walk = Walk::through(parallel(vec![run("a"), run("b"), run("c")]));
    assert_eq!(walk.began, "+0 +1 +2");
    assert_eq!(walk.ends(2, badly(3)), "");
    assert_eq!(walk.ends(1, well()), "");
    assert_eq!(walk.course.phase(), Phase::Action);
    assert_eq!(walk.ends(0, badly(1)), "");
    let reasons = "Exited with status 1; Exited with status 3";
    assert_eq!(walk.course.phase(), over(Some(reasons), Some(1)));
}

#[test]
fn parallel_goes_well_if_all_do() {
    let mut walk = Walk::through(parallel(vec![run("a"), download()]));
    walk.ends(1, Outcome::default());
    walk.ends(0, well());
    assert_eq!(walk.course.phase(), over(None, Some(0)));
}

#[test]
fn the_first_of_codependent_actions_that_ends_takes_the_others_with_it() {
    for (outcome, why) in [
        (well(), "codependent action 2 of 3 exited"),
        (badly(4), "codependent action 2 of 3 exited: Exited with status 4"),
    ] {
        let mut walk = Walk::through(codependent(vec![run("a"), run("b"), run("c")]));
        assert_eq!(walk.began, "+0 +1 +2");
        let exit_code = outcome.exit_code;
        assert_eq!(walk.ends(1, outcome), "-0 -2");
        assert!(walk.course.is_told_to_stop(Leaf(0)) && !walk.course.is_told_to_stop(Leaf(1)));
        assert_eq!(walk.ends(0, badly(143)), "");
        assert_eq!(walk.course.phase(), Phase::Action);
        assert_eq!(walk.ends(2, well()), "");
        assert_eq!(
            walk.course.phase(),
            over(Some(why), exit_code),
            "what was stopped adds nothing"
        );
    }
}

#[test]
fn codependent_actions_that_are_stopped_do_not_fail() {
    let mut walk = Walk::through(codependent(two()));
    assert_eq!(walk.stop(), "-0 -1");
    walk.ends(0, badly(143));
    walk.ends(1, badly(143));
    assert_eq!(walk.course.phase(), over(None, Some(143)));
    let mut walk = Walk::through(codependent(two()));
    assert_eq!(walk.ends(0, badly(1)), "-1");
    assert_eq!(walk.stop(), "", "it was told already");
    walk.ends(1, badly(143));
    assert!(matches!(walk.course.phase(), Phase::Over(Outcome { failure: None, .. })));
}

#[test]
fn try_swallows_a_failure_and_nothing_else() {
    let mut walk = Walk::through(serial(vec![attempt(run("a")), run("b")]));
    assert_eq!(walk.ends(0, badly(1)), "+1");
    walk.ends(1, well());
    assert_eq!(walk.course.phase(), over(None, Some(0)));
    let mut walk = Walk::through(attempt(run("a")));
    walk.ends(0, badly(1));
    assert_eq!(walk.course.phase(), over(None, None), "nobody is told of what was swallowed");
    let mut walk = Walk::through(attempt(run("a")));
    walk.ends(0, well());
    assert_eq!(walk.course.phase(), over(None, Some(0)));
}

#[test]
fn what_takes_too_long_is_stopped_and_has_failed_however_it_ends() {
    for outcome in [well(), badly(143)] {
        let mut walk = Walk::through(timeout(10_000, run("a")));
        assert_eq!(walk.course.next_due(), Some(seconds(10)));
        assert_eq!(walk.time(9), "");
        assert_eq!(walk.time(10), "-0");
        assert_eq!((walk.time(11), walk.course.next_due()), (String::new(), None));
        assert_eq!(walk.course.phase(), Phase::Action);
        assert_eq!(walk.ends_at(12, 0, outcome), "");
        assert_eq!(walk.course.phase(), over(Some("exceeded 10s timeout"), None));
    }
}

#[test]
fn what_ends_in_time_has_no_time_to_watch_any_more() {
    let mut walk = Walk::through(serial(vec![timeout(1_500, run("a")), run("b")]));
    assert_eq!(walk.ends_at(1, 0, well()), "+1");
    assert_eq!((walk.course.next_due(), walk.time(100).as_str()), (None, ""));
}

#[test]
fn the_time_of_an_action_counts_from_its_own_begin() {
    let mut walk = Walk::through(serial(vec![run("a"), timeout(1_500, run("b"))]));
    assert_eq!(walk.course.next_due(), None);
    assert_eq!(walk.ends_at(20, 0, well()), "+1");
    assert_eq!(walk.course.next_due(), Some(std::time::Duration::from_millis(21_500)));
    assert_eq!(walk.time(22), "-1");
    walk.ends_at(23, 1, badly(143));
    assert_eq!(walk.course.phase(), over(Some("exceeded 1500ms timeout"), None));
}

#[test]
fn an_end_that_is_told_after_the_time_was_over_comes_too_late() {
    let mut walk = Walk::through(timeout(10_000, run("a")));
    assert_eq!(walk.ends_at(10, 0, well()), "-0");
    assert_eq!(walk.course.phase(), over(Some("exceeded 10s timeout"), None));
}

#[test]
fn of_two_limits_the_outer_one_counts_once_it_is_over() {
    let mut walk = Walk::through(timeout(10_000, timeout(5_000, run("a"))));
    assert_eq!(walk.time(5), "-0");
    assert_eq!(walk.course.next_due(), Some(seconds(10)));
    assert_eq!(walk.time(10), "", "it was told already");
    walk.ends_at(11, 0, well());
    assert_eq!(walk.course.phase(), over(Some("exceeded 10s timeout"), None));
    let mut walk = Walk::through(timeout(10_000, attempt(timeout(5_000, run("a")))));
    walk.time(5);
    walk.ends_at(6, 0, well());
    assert_eq!(walk.course.phase(), over(None, None), "a limit can be tried too");
}

#[test]
fn progress_is_told() {
    let mut walk = Walk::through(progress(run("a")));
    assert_eq!(walk.began, "`starts` +0");
    assert_eq!(walk.ends(0, well()), "`done`");
    let mut walk = Walk::through(progress(run("a")));
    assert_eq!(walk.ends(0, badly(1)), "`broke: Exited with status 1`");
    assert_eq!(walk.course.phase(), over(Some("Exited with status 1"), Some(1)));
}

#[test]
fn progress_without_messages_says_nothing() {
    let silent = |action| {
        let crate::board::Action::EmitProgress(mut it) = progress(action) else { unreachable!() };
        (it.start_message, it.success_message, it.failure_message) = Default::default();
        crate::board::Action::EmitProgress(it)
    };
    for outcome in [well(), badly(1)] {
        let mut walk = Walk::through(silent(run("a")));
        assert_eq!(walk.began, "+0");
        assert_eq!(walk.ends(0, outcome), "");
    }
}

#[test]
fn what_was_stopped_tells_no_progress() {
    let mut walk = Walk::through(progress(run("a")));
    assert_eq!(walk.stop(), "-0");
    assert_eq!(walk.ends(0, badly(143)), "");
    let mut walk = Walk::through(progress(timeout(1_000, progress(run("a")))));
    assert_eq!(walk.began, "`starts` `starts` +0");
    walk.time(1);
    assert_eq!(walk.ends(0, badly(143)), "`broke: exceeded 1s timeout`", "only the outer one");
}

#[test]
fn stop_stops_all_that_is_under_way_and_begins_nothing_more() {
    let under_way = parallel(vec![run("b"), serial(vec![run("c"), run("d")]), run("e")]);
    let mut walk = Walk::through(serial(vec![run("a"), timeout(5_000, under_way), run("f")]));
    assert_eq!(walk.ends(0, well()), "+1 +2 +4");
    assert_eq!(walk.ends(4, badly(9)), "");
    assert_eq!(walk.stop(), "-1 -2");
    assert!(walk.course.is_stopping());
    assert_eq!((walk.stop().as_str(), walk.course.next_due()), ("", None));
    assert_eq!(walk.ends(2, well()), "");
    assert_eq!(walk.ends(1, badly(143)), "");
    assert!(matches!(walk.course.phase(), Phase::Over(Outcome { failure: None, .. })));
}

#[test]
fn stop_after_the_end_changes_nothing() {
    let mut walk = Walk::through(run("a"));
    walk.ends(0, badly(1));
    assert_eq!(walk.stop(), "");
    assert!(!walk.course.is_stopping());
    assert_eq!(walk.course.phase(), over(Some("Exited with status 1"), Some(1)));
}

#[test]
fn stop_during_the_setup_leaves_the_action_out() {
    let mut walk = Walk::of(Recipe { setup: Some(run("s")), action: run("a") });
    assert_eq!(walk.stop(), "-0");
    assert_eq!(walk.course.phase(), Phase::Setup);
    assert_eq!(walk.ends(0, well()), "");
    assert_eq!(walk.course.phase(), over(None, Some(0)));
}

#[test]
fn an_end_of_what_is_not_under_way_is_no_news() {
    let mut walk = Walk::through(serial(two()));
    let before = walk.course.clone();
    assert_eq!(walk.ends(1, badly(1)), "", "not begun");
    assert_eq!(walk.ends(9, badly(1)), "", "not there");
    assert_eq!(walk.course, before);
    walk.ends(0, well());
    let before = walk.course.clone();
    assert_eq!(walk.ends(0, badly(1)), "", "over");
    assert_eq!(walk.course, before);
}

#[test]
fn what_holds_nothing_ends_at_once_and_well() {
    for empty in [serial(vec![]), parallel(vec![]), codependent(vec![])] {
        let walk = Walk::through(timeout(5, attempt(empty.clone())));
        assert_eq!((walk.began.as_str(), walk.course.phase()), ("", over(None, None)));
        assert_eq!(walk.course.next_due(), None);
        assert_eq!(Walk::through(serial(vec![empty.clone(), run("a")])).began, "+0");
        assert_eq!(Walk::through(parallel(vec![empty, run("a")])).began, "+0");
    }
    let ends = codependent(vec![serial(vec![]), run("a")]);
    let walk = Walk::through(ends);
    let why = "codependent action 1 of 2 exited";
    assert_eq!((walk.began.as_str(), walk.course.phase()), ("", over(Some(why), None)));
    let walk = Walk::through(codependent(vec![run("a"), serial(vec![]), run("b")]));
    assert_eq!(walk.began, "+0 -0", "what comes behind is never begun");
}

#[test]
fn what_is_under_way_is_ordered_again() {
    let action = progress(parallel(vec![run("a"), codependent(two()), serial(two())]));
    let resumed = |events: &[(std::time::Duration, Event)]| {
        let (course, orders) = Course::resume(recipe(action.clone()), events);
        (course, shown(&orders))
    };
    let (course, orders) = resumed(&[]);
    assert_eq!((course, orders.as_str()), (Course::begin(recipe(action.clone())).0, "+0 +1 +2 +3"));
    let ended = |leaf, outcome| (seconds(1), Event::Ended(Leaf(leaf), outcome));
    let events = [ended(3, well()), ended(1, well())];
    assert_eq!(resumed(&events).1, "+0 +2 -2 +4");
    let (course, orders) = resumed(&[ended(0, well()), (seconds(2), Event::Stop)]);
    assert_eq!(orders, "+1 -1 +2 -2 +3 -3");
    assert!(course.is_stopping());
}

#[test]
fn time_that_nobody_watched_is_over_all_the_same() {
    let action = timeout(10_000, run("a"));
    let (mut course, orders) = Course::resume(recipe(action), &[]);
    assert_eq!((shown(&orders).as_str(), course.next_due()), ("+0", Some(seconds(10))));
    assert_eq!(shown(&course.time(seconds(60))), "-0");
}
