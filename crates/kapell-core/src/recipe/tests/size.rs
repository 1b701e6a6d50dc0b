//! Recipes far larger than any that is allowed.

use super::shapes::*;
use crate::recipe::{Course, Event, Leaf, Phase};

const MANY: u32 = 50_000;

/// Lets all end that is under way, one after the other. A quadratic walk would take many minutes.
fn walk_through(action: crate::board::Action) -> Phase {
    let (mut course, _) = Course::begin(recipe(action));
    for leaf in 0..MANY {
        course.happened(&Event::Ended(Leaf(leaf), badly(1)), seconds(1));
    }
    course.phase()
}

#[test]
fn wide_recipes_are_walked_in_one_go() {
    let many = || (0..MANY).map(|_| attempt(timeout(60_000, run("a")))).collect();
    assert_eq!(walk_through(serial(many())), over(None, None));
    assert_eq!(walk_through(parallel(many())), over(None, None));
    let why = format!("codependent action 1 of {MANY} exited");
    assert_eq!(walk_through(codependent(many())), over(Some(&why), None));
}

#[test]
fn deep_recipes_need_no_deep_stack() {
    let deep = (0..MANY).fold(run("a"), |inner, depth| match depth % 3 {
        0 => serial(vec![inner]),
        1 => timeout(u64::from(depth) + 1, inner),
        _ => parallel(vec![inner]),
    });
    let (mut course, orders) = Course::begin(recipe(deep));
    assert_eq!(shown(&orders), "+0");
    assert_eq!(shown(&course.time(seconds(1_000))), "-0");
    assert_eq!(shown(&course.happened(&Event::Stop, seconds(1_000))), "");
    course.happened(&Event::Ended(Leaf(0), badly(1)), seconds(1_000));
    assert_eq!(course.phase(), over(None, Some(1)));
}
