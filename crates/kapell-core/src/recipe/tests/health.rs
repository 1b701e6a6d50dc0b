use super::shapes::seconds;
use crate::recipe::{Health, News, Readiness, Verdict, Wait};

fn never(why: &str) -> Verdict {
    Verdict::Failed(format!("Instance never healthy after 60s: {why}"))
}

#[test]
fn it_is_tried_often_until_it_is_healthy_and_then_seldom() {
    let mut health = Health::begin(Wait::USUAL);
    assert_eq!(health.first_due(), seconds(2));
    assert_eq!(health.checked(Err("no"), seconds(2)), Verdict::Again(seconds(4)));
    assert_eq!(health.checked(Ok(()), seconds(4)), Verdict::Healthy(seconds(34)));
    assert_eq!(health.checked(Ok(()), seconds(34)), Verdict::Again(seconds(64)));
}

#[test]
fn one_that_was_healthy_fails_with_its_first_bad_check() {
    let mut health = Health::begin(Wait::USUAL);
    health.checked(Ok(()), seconds(2));
    let failed = Verdict::Failed("Instance became unhealthy: HTTP 500".to_owned());
    assert_eq!(health.checked(Err("HTTP 500"), seconds(32)), failed);
    let mut health = Health::resume(Wait::USUAL, true);
    assert_eq!(health.checked(Err("HTTP 500"), seconds(1)), failed, "also after a restart");
}

#[test]
fn one_that_never_was_healthy_fails_when_its_time_is_over() {
    let mut health = Health::begin(Wait::USUAL);
    assert_eq!(health.checked(Err("no"), seconds(59)), Verdict::Again(seconds(60)));
    assert_eq!(health.checked(Err("refused"), seconds(60)), never("refused"));
    let mut health = Health::resume(Wait::USUAL, false);
    assert_eq!(health.checked(Err("late"), seconds(600)), never("late"));
}

#[test]
fn a_good_check_counts_also_after_the_time_is_over() {
    let mut health = Health::begin(Wait::USUAL);
    assert_eq!(health.checked(Ok(()), seconds(61)), Verdict::Healthy(seconds(91)));
}

#[test]
fn without_a_limit_it_takes_as_long_as_it_likes() {
    let mut health = Health::begin(Wait { start_timeout: None, ..Wait::USUAL });
    assert_eq!(health.checked(Err("no"), seconds(9_000)), Verdict::Again(seconds(9_002)));
}

#[test]
fn a_limit_that_is_shorter_than_the_wait_is_kept() {
    let health = Health::begin(Wait { start_timeout: Some(seconds(1)), ..Wait::USUAL });
    assert_eq!(health.first_due(), seconds(1));
}

#[test]
fn zero_means_the_usual_pace_and_no_limit() {
    assert_eq!(Wait::USUAL.asked(0, 0), Wait { start_timeout: None, ..Wait::USUAL });
    assert_eq!(Wait::USUAL.asked(0, 60_000), Wait::USUAL);
    let asked = Wait { first: seconds(1), then: seconds(1), start_timeout: Some(seconds(5)) };
    assert_eq!(Wait::USUAL.asked(1_000, 5_000), asked);
    assert_eq!(Wait::USUAL.asked(10_000, 0).first, seconds(2));
}

fn news(changed: Option<bool>, next: u64) -> News {
    News { changed, next: seconds(next) }
}

#[test]
fn one_that_is_not_ready_is_asked_often_and_every_change_is_told_once() {
    let mut readiness = Readiness::begin(Wait::USUAL);
    assert!(!readiness.is_ready());
    assert_eq!(readiness.first_due(), seconds(2));
    assert_eq!(readiness.checked(false, seconds(2)), news(None, 4));
    assert_eq!(readiness.checked(true, seconds(4)), news(Some(true), 34));
    assert_eq!(readiness.checked(true, seconds(34)), news(None, 64));
    assert_eq!(readiness.checked(false, seconds(64)), news(Some(false), 66));
    assert!(!readiness.is_ready());
    assert_eq!(readiness.checked(false, seconds(9_000)), news(None, 9_002), "as long as it likes");
}

#[test]
fn one_that_was_ready_is_ready_until_it_is_asked() {
    let mut readiness = Readiness::resume(Wait::USUAL, true);
    assert!(readiness.is_ready());
    assert_eq!(readiness.checked(true, seconds(1)), news(None, 31));
}
