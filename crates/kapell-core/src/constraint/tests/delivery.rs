use std::time::Duration;

use crate::constraint::delivery::{Answer, Next, next, retry_after};
use crate::constraint::lines::{Lines, Pace, Turn};
use crate::seams::Moment;

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
        ("Fri, 31 Dec 1999 23:59:59 GMT", None),
    ] {
        assert_eq!(retry_after(header), right, "{header}");
    }
}

const PACE: Pace = Pace { waiting: 100, calls: 4, calls_to_one: 2, burst: 3, each: secs(10) };

fn at(seconds: u64) -> Moment {
    Moment::from_origin(secs(seconds))
}

fn call(place: &str, number: u64) -> Turn {
    Turn::Call { place: place.to_owned(), number }
}

#[test]
fn one_place_is_not_called_too_often() {
    let mut lines = Lines::new(PACE);
    for number in 0..6 {
        lines.add("a", number, at(100));
    }
    assert_eq!(lines.next(at(99)), Turn::Wait(at(100)));
    for number in 0..3 {
        assert_eq!(lines.next(at(100)), call("a", number));
        lines.done("a", at(100));
    }
    assert_eq!(
        lines.next(at(100)),
        Turn::Wait(at(110)),
        "three at once, and then one each ten seconds"
    );
    assert_eq!(lines.next(at(110)), call("a", 3));
    lines.done("a", at(110));
    assert_eq!(lines.next(at(115)), Turn::Wait(at(120)));
    // After a long rest there may be three at once again.
    assert_eq!((lines.next(at(500)), lines.next(at(500))), (call("a", 4), call("a", 5)));
}

#[test]
fn a_slow_place_holds_up_no_other() {
    let mut lines = Lines::new(PACE);
    for number in 0..10 {
        lines.add("slow", number, at(1));
    }
    assert_eq!((lines.next(at(1)), lines.next(at(1))), (call("slow", 0), call("slow", 1)));
    assert_eq!(lines.next(at(1)), Turn::Idle, "two calls to one place");
    lines.add("b", 20, at(1));
    lines.add("c", 30, at(1));
    lines.add("d", 40, at(1));
    assert_eq!(
        (lines.next(at(1)), lines.next(at(1)), lines.next(at(1))),
        (call("b", 20), call("c", 30), Turn::Idle)
    );
    lines.done("b", at(1));
    assert_eq!(lines.next(at(1)), call("d", 40));
}

#[test]
fn what_waits_for_another_call_holds_up_nobody_and_is_not_forgotten() {
    let mut lines = Lines::new(PACE);
    lines.add("a", 1, at(60));
    lines.add("a", 2, at(5));
    assert_eq!(lines.next(at(5)), call("a", 2));
    lines.done("a", at(5));
    assert_eq!(lines.next(at(50)), Turn::Wait(at(60)));
    assert_eq!(lines.next(at(60)), call("a", 1));
    lines.done("a", at(60));
    assert_eq!(lines.next(at(61)), Turn::Idle);
    lines.add("b", 3, at(200));
    assert_eq!(lines.next(at(200)), call("b", 3));
    lines.done("b", at(500));
    assert!(
        format!("{lines:?}").contains("places: {}"),
        "places that nobody needs are forgotten: {lines:?}"
    );
}
