use std::time::Duration;

use super::stage::{definition, plan, retry, run, secs};
use crate::job::definition::Multiplier;
use crate::job::{JobDefinition, Length, Retry};
use crate::run::retry::delay;
use crate::run::{Ask, Orchestrator, Rare, Run, RunState, Timer};

fn with(initial_ms: u64, multiplier: f64, most: Duration) -> Retry {
    Retry {
        initial_delay: Length::new(Duration::from_millis(initial_ms)),
        backoff_multiplier: Multiplier(multiplier),
        max_delay: Length::new(most),
        ..retry(9, Vec::new())
    }
}

fn delays(retry: &Retry) -> Vec<u64> {
    let millis = |attempt| u64::try_from(delay(retry, &run().run_id, attempt).as_millis()).unwrap();
    (0..7).map(millis).collect()
}

#[test]
fn the_first_retry_waits_exactly_the_initial_delay_and_each_one_twice_as_long_up_to_five_minutes() {
    let usual = retry(9, Vec::new());
    assert_eq!(delays(&usual), [10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000]);
}

#[test]
fn delays_are_not_cut_to_whole_units() {
    let gentle = with(1_000, 1.5, secs(300));
    assert_eq!(delays(&gentle), [1_000, 1_500, 2_250, 3_375, 5_063, 7_594, 11_391]);
    let short = with(100, 1.1, secs(300));
    assert_eq!(delays(&short)[..4], [100, 110, 121, 134], "rounded up, never to nothing");
}

#[test]
fn delays_stay_within_their_bounds_whatever_the_numbers() {
    for multiplier in [1.0, 1e300, f64::INFINITY, f64::NAN, -4.0, 0.0] {
        for initial in [0, 1, u64::MAX / 4] {
            for attempt in [0, 1, 400, u32::MAX] {
                let odd = with(initial, multiplier, secs(60));
                let waited = delay(&odd, &run().run_id, attempt);
                assert!(waited <= secs(60), "{initial} x {multiplier}^{attempt}: {waited:?}");
                assert!(initial != 0 || waited.is_zero(), "nothing stays nothing");
            }
        }
    }
    assert_eq!(delays(&with(1_000, 1.0, secs(60))), [1_000; 7]);
}

#[test]
fn jitter_puts_off_by_less_than_its_share_and_always_by_as_much() {
    let jittered = Retry { jitter_percent: 50, ..retry(9, Vec::new()) };
    let plain = delays(&retry(9, Vec::new()));
    let put_off = delays(&jittered);
    assert_eq!(put_off, delays(&jittered));
    assert_ne!(put_off, plain);
    for (put_off, plain) in put_off.iter().zip(plain) {
        assert!((plain..=plain * 3 / 2).contains(put_off), "{put_off} of {plain}");
    }
}

/// Whoever stored when the next attempt is due may have had a clock that was ahead.
#[test]
fn a_retry_that_was_stored_by_a_clock_that_was_ahead_waits_as_long_as_one_that_begins_now() {
    let day = secs(86_400);
    let definition = JobDefinition { retry: Some(retry(3, Vec::new())), ..definition() };
    for (stored, waits) in [(secs(3), secs(3)), (day, secs(20)), (Duration::ZERO, Duration::ZERO)] {
        let now = run().due_at;
        let left = Run {
            state: RunState::Retrying,
            attempt: 2,
            rare: Rare { retry_at: Some(now.after(stored)), ..Rare::default() }.into(),
            ..run()
        };
        let (_, asks) = Orchestrator::begin(&left, plan(definition.clone()), now);
        assert_eq!(asks, [Ask::Ring { timer: Timer::Retry, at: now.after(waits) }]);
    }
}
