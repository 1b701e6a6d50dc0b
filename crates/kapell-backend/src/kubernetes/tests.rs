mod scripted;

use std::time::Duration;

use futures_util::io::Cursor;
use tokio::time::Instant;

use super::Lines;
use super::pace::Limiter;
use super::watch::{Rest, was_of_use};

#[tokio::test(start_paused = true)]
async fn calls_go_at_the_pace_of_the_settings_after_a_second_worth_of_them() {
    let limiter = Limiter::new(10);
    let begin = Instant::now();
    for _ in 0..31 {
        limiter.pass().await;
    }
    let took = begin.elapsed();
    assert!(
        (Duration::from_millis(1_990)..Duration::from_millis(3_050)).contains(&took),
        "{took:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_that_has_too_much_to_do_is_asked_more_rarely_and_then_as_before() {
    let limiter = Limiter::new(100);
    let begin = Instant::now();
    limiter.slower(Duration::from_secs(3));
    // Refused together: one word.
    limiter.slower(Duration::from_secs(3));
    assert!((limiter.rate() - 50.0).abs() < 0.1, "{}", limiter.rate());
    limiter.pass().await;
    assert!(begin.elapsed() >= Duration::from_secs(3), "{:?}", begin.elapsed());
    for _ in 0..20 {
        tokio::time::advance(Duration::from_secs(1)).await;
        limiter.slower(Duration::ZERO);
    }
    assert!((limiter.rate() - 1.0).abs() < 0.1, "it is never silent: {}", limiter.rate());
    for _ in 0..200 {
        limiter.fine();
    }
    assert!((limiter.rate() - 100.0).abs() < 0.1, "{}", limiter.rate());
}

#[tokio::test]
async fn lines_have_their_times_and_long_ones_come_in_parts() {
    let long = "x".repeat(40_000);
    let text = format!(
        "2026-11-17T04:00:01.5Z one\n2026-11-17T04:00:02Z {long}\nno time\n2026-11-17T04:00:03Z cut off"
    );
    let mut lines = Lines::new("cannot read", Cursor::new(text.into_bytes()));
    let mut all = Vec::new();
    while let Some(line) = lines.next().await.unwrap() {
        all.push((line.at.0 - 1_794_888_000_000, String::from_utf8(line.bytes).unwrap()));
    }
    assert_eq!(all[0], (1_500, "one\n".to_owned()));
    let parts: Vec<&str> = all[1..4]
        .iter()
        .map(|(at, part)| {
            assert_eq!(*at, 2_000);
            part.as_str()
        })
        .collect();
    assert_eq!(parts.concat(), format!("{long}\n"));
    assert_eq!(all[4].1, "no time\n");
    assert_eq!(all[5], (3_000, "cut off".to_owned()));
}

#[test]
fn a_watch_that_was_quiet_until_its_time_was_over_is_taken_up_again_at_once() {
    let (quick, length) = (Duration::from_millis(100), Duration::from_secs(30));
    let mut rest = Rest::new();
    for _ in 0..20 {
        assert_eq!(rest.after(was_of_use(true, length, false)), quick);
    }
    // One that fails, or ends as soon as it has begun, is left alone for longer each time.
    let pauses: Vec<u128> = (0..8)
        .map(|at| rest.after(was_of_use(at % 2 == 0, Duration::from_millis(5), false)).as_millis())
        .collect();
    assert_eq!(pauses, [200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000]);
    assert_eq!(rest.after(was_of_use(false, length, false)), Duration::from_secs(10));
    assert_eq!(rest.after(was_of_use(false, Duration::ZERO, true)), quick);
}
