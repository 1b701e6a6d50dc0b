use std::time::Duration;

use crate::board::Domain;
use crate::constraint::delivery::{Answer, Next, next, retry_after};
use crate::constraint::lines::{Lines, Pace, Shares, Turn};
use crate::seams::{Moment, Timestamp};

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

const fn answer(status: u16, retry_after: Option<Duration>) -> Answer {
    Answer::Status { status, retry_after }
}

fn after(answer: &Answer, attempt: u32, drawn: u64) -> Option<Duration> {
    match next(answer, attempt, 20, drawn) {
        Next::Again { after, .. } => Some(after),
        Next::Delivered | Next::GivenUp { .. } => None,
    }
}

#[test]
fn what_may_go_better_later_is_sent_again_and_nothing_else() {
    for status in [200, 201, 204, 299] {
        assert_eq!(next(&answer(status, None), 1, 3, 0), Next::Delivered);
    }
    for status in [408, 425, 429, 500, 502, 503, 504] {
        assert!(after(&answer(status, None), 1, 0).is_some(), "{status}");
    }
    for status in [100, 301, 307, 400, 401, 403, 404, 410] {
        let right = Next::GivenUp { why: format!("the answer was {status}") };
        assert_eq!(next(&answer(status, None), 1, 3, 0), right);
    }
    assert!(after(&Answer::None("late".to_owned()), 1, 0).is_some());
    let refused = Answer::Refused("forbidden".to_owned());
    assert_eq!(next(&refused, 1, 3, 0), Next::GivenUp { why: "forbidden".to_owned() });
    let last = next(&answer(500, None), 3, 3, 0);
    assert_eq!(last, Next::GivenUp { why: "the answer was 500 (after 3 calls)".to_owned() });
}

#[test]
fn waits_double_are_spread_and_end_at_five_minutes() {
    let none = Answer::None("late".to_owned());
    for (attempt, full) in [(1, 1), (2, 2), (3, 4), (8, 128), (9, 256), (10, 300), (19, 300)] {
        let all: Vec<Duration> =
            (0..2000).map(|drawn| after(&none, attempt, drawn * 977).unwrap()).collect();
        let (least, most) = (all.iter().min().unwrap(), all.iter().max().unwrap());
        assert!(
            *least >= secs(full) / 2 && *most <= secs(full),
            "{attempt}: {least:?} to {most:?}"
        );
        assert!(*most > *least + secs(full) / 3, "{attempt}: they are spread");
    }
}

#[test]
fn whoever_says_when_to_come_back_is_heeded() {
    for status in [429, 503] {
        assert_eq!(after(&answer(status, Some(secs(120))), 1, 0), Some(secs(120)));
        assert!(
            after(&answer(status, Some(secs(1))), 6, 0).unwrap() >= secs(16),
            "never sooner than otherwise"
        );
        let never = next(&answer(status, Some(secs(3601))), 1, 3, 0);
        let why = format!("the answer was {status}, and it wants to be asked again in 3601s");
        assert_eq!(never, Next::GivenUp { why });
    }
    assert!(after(&answer(500, Some(secs(120))), 1, 0).unwrap() <= secs(1), "others do not say so");
    for (header, right) in [
        ("120", Some(secs(120))),
        (" 0 ", Some(secs(0))),
        ("-1", None),
        ("", None),
        ("9999999999", None),
        ("tomorrow", None),
        // The three forms of a date, all of the same instant.
        ("Sun, 06 Nov 1994 08:49:37 GMT", Some(secs(37))),
        ("Sunday, 06-Nov-94 08:49:37 GMT", Some(secs(37))),
        ("Sun Nov  6 08:49:37 1994", Some(secs(37))),
        (" Sun, 06 Nov 1994 08:48:37 GMT ", Some(secs(0))),
        ("Sun, 06 Nov 1994 09:49:00 GMT", Some(secs(3600))),
        ("Sun, 06 Nov 1994 08:49:37 CET", None),
        ("Sun, 36 Nov 1994 08:49:37 GMT", None),
    ] {
        // 1994-11-06 08:49:00
        assert_eq!(retry_after(header, Timestamp(784_111_740_000)), right, "{header}");
    }
}

const PACE: Pace =
    Pace { waiting: 100, calls: 4, calls_to_one: 2, calls_for_one: 4, burst: 3, each: secs(10) };

fn at(seconds: u64) -> Moment {
    Moment::from_origin(secs(seconds))
}

fn call(place: &str, number: u64) -> Turn {
    call_for(&ours(), place, number)
}

fn call_for(domain: &Domain, place: &str, number: u64) -> Turn {
    Turn::Call { place: place.to_owned(), domain: domain.clone(), number }
}

fn ours() -> Domain {
    Domain::new("ours")
}

#[test]
fn one_place_is_not_called_too_often() {
    let mut lines = Lines::new(PACE);
    for number in 0..6 {
        lines.add("a", &ours(), number, at(100));
    }
    assert_eq!(lines.next(at(99)), Turn::Wait(at(100)));
    for number in 0..3 {
        assert_eq!(lines.next(at(100)), call("a", number));
        lines.done("a", &ours(), at(100));
    }
    assert_eq!(
        lines.next(at(100)),
        Turn::Wait(at(110)),
        "three at once, and then one each ten seconds"
    );
    assert_eq!(lines.next(at(110)), call("a", 3));
    lines.done("a", &ours(), at(110));
    assert_eq!(lines.next(at(115)), Turn::Wait(at(120)));
    // After a long rest there may be three at once again.
    assert_eq!((lines.next(at(500)), lines.next(at(500))), (call("a", 4), call("a", 5)));
}

#[test]
fn a_slow_place_holds_up_no_other() {
    let mut lines = Lines::new(PACE);
    for number in 0..10 {
        lines.add("slow", &ours(), number, at(1));
    }
    assert_eq!((lines.next(at(1)), lines.next(at(1))), (call("slow", 0), call("slow", 1)));
    assert_eq!(lines.next(at(1)), Turn::Idle, "two calls to one place");
    lines.add("b", &ours(), 20, at(1));
    lines.add("c", &ours(), 30, at(1));
    lines.add("d", &ours(), 40, at(1));
    assert_eq!(
        (lines.next(at(1)), lines.next(at(1)), lines.next(at(1))),
        (call("b", 20), call("c", 30), Turn::Idle)
    );
    lines.done("b", &ours(), at(1));
    assert_eq!(lines.next(at(1)), call("d", 40));
}

#[test]
fn what_waits_for_another_call_holds_up_nobody_and_is_not_forgotten() {
    let mut lines = Lines::new(PACE);
    lines.add("a", &ours(), 1, at(60));
    lines.add("a", &ours(), 2, at(5));
    assert_eq!(lines.next(at(5)), call("a", 2));
    lines.done("a", &ours(), at(5));
    assert_eq!(lines.next(at(50)), Turn::Wait(at(60)));
    assert_eq!(lines.next(at(60)), call("a", 1));
    lines.done("a", &ours(), at(60));
    assert_eq!(lines.next(at(61)), Turn::Idle);
    lines.add("b", &ours(), 3, at(200));
    assert_eq!(lines.next(at(200)), call("b", 3));
    lines.done("b", &ours(), at(500));
    assert!(
        format!("{lines:?}").contains("places: {}"),
        "places that nobody needs are forgotten: {lines:?}"
    );
}

#[test]
fn domains_take_turns_at_one_place() {
    let pace = Pace { calls_to_one: 100, calls: 100, burst: 100, ..PACE };
    let mut lines = Lines::new(Pace { calls_for_one: 100, ..pace });
    let theirs = Domain::new("theirs");
    for number in 0..50 {
        lines.add("a", &ours(), number, at(1));
    }
    lines.add("a", &theirs, 90, at(1));
    lines.add("a", &theirs, 91, at(2));
    assert_eq!(lines.next(at(1)), call("a", 0));
    assert_eq!(lines.next(at(1)), call_for(&theirs, "a", 90), "it does not wait for fifty others");
    assert_eq!(lines.next(at(1)), call("a", 1));
    assert_eq!(lines.next(at(1)), call("a", 2), "nobody waits for what is not due");
    assert_eq!(lines.next(at(2)), call_for(&theirs, "a", 91));
}

#[test]
fn a_domain_whose_places_all_hang_leaves_calls_for_others() {
    let mut lines = Lines::new(Pace { calls_for_one: 3, ..PACE });
    let theirs = Domain::new("theirs");
    for (number, place) in (0..).zip(["a", "b", "c", "d", "e"]) {
        lines.add(place, &ours(), number, at(1));
    }
    (0..3).for_each(|number| {
        assert_eq!(lines.next(at(1)), call(["a", "b", "c"][number], number as u64));
    });
    assert_eq!(lines.next(at(1)), Turn::Idle);
    lines.add("a", &theirs, 9, at(1));
    assert_eq!(lines.next(at(1)), call_for(&theirs, "a", 9));
    lines.done("a", &theirs, at(1));
    assert_eq!(lines.next(at(1)), Turn::Idle, "its own part is used up all the same");
    lines.done("a", &ours(), at(1));
    assert_eq!(lines.next(at(1)), call("d", 3));
}

#[test]
fn no_domain_can_fill_the_queue_for_the_others() {
    let mut shares = Shares::default();
    let [one, two, three] = ["one", "two", "three"].map(Domain::new);
    let most = 12;
    assert_eq!((0..99).filter(|_| shares.take(&one, most)).count(), 12, "alone it has all of it");
    assert_eq!((0..99).filter(|_| shares.take(&two, most)).count(), 6);
    assert_eq!((0..99).filter(|_| shares.take(&three, most)).count(), 4);
    assert!(!shares.take(&one, most));
    // What was given back is first for those who have less than their share.
    (0..9).for_each(|_| shares.give_back(&one));
    assert!(shares.take(&one, most) && !shares.take(&one, most));
    (0..6).for_each(|_| shares.give_back(&two));
    (0..4).for_each(|_| shares.give_back(&three));
    assert!(shares.take(&one, most), "while half is free nobody is counted");
    shares.give_back(&Domain::new("nobody"));
}
