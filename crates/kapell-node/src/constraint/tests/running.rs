//! All constraints of a run together, and all actions.

use std::pin::pin;
use std::sync::Arc;

use kapell_core::constraint::Verdict;
use kapell_core::run::Counts;
use serde_json::json;
use tokio::time::{Instant, timeout};

use super::stage::{run, secs, stage};
use crate::constraint::{ConstraintChecker as _, Error, Pulse, Slots, failed};
use crate::webhook::tests::stage::{Reply, status};

const URL: &str = "https://example.com/hook";

#[tokio::test(start_paused = true)]
async fn a_run_without_constraints_goes_on() {
    let stage = stage();
    let checked = stage.check(json!([])).await;
    assert_eq!(
        (checked.verdict, checked.acts, checked.counts),
        (Verdict::Proceed, false, Counts::default())
    );
    assert_eq!(stage.after(json!([]), 1).await.verdict, Verdict::Proceed);
}

#[tokio::test(start_paused = true)]
async fn constraints_are_looked_at_side_by_side_and_each_has_its_limit() {
    let stage = stage();
    stage.told.lock().unwrap().hangs = true;
    stage.post.outside.will([Reply::Never]);
    let constraints = json!([
        "requirePreviousSuccess",
        { "other_job_running": { "config": { "job": "a", "timeout": "10s" }, "onError": "allow" } },
        { "preRunHook": { "config": { "url": URL, "timeout": "20s" } } },
        "time_window",
    ]);
    let begin = Instant::now();
    let checked = stage.check(constraints).await;
    assert_eq!(begin.elapsed(), secs(30), "as long as the slowest");
    assert_eq!(checked.counts, Counts { checked: 4, violated: 0, executed: 0, failed: 0 });
    let right = "requirePreviousSuccess could not be checked: it took longer than 30s (timeout); other_job_running could not be \
                 checked: it took longer than 10s (timeout); preRunHook could not be checked: ";
    assert!(checked.message.starts_with(right), "{}", checked.message);
    assert_eq!(checked.verdict, Verdict::Fail);
}

#[tokio::test(start_paused = true)]
async fn those_that_take_their_time_are_told_and_then_those_that_are_left() {
    let stage = stage();
    stage.post.outside.will([Reply::After(secs(5), 200)]);
    stage.post.outside.will([Reply::After(secs(9), 200)]);
    let hook = || json!({ "preRunHook": { "config": URL } });
    let health = json!({ "http_health_check": { "config": URL } });
    stage.check(json!(["time_window", hook(), health])).await;
    let slow = stage.told.lock().unwrap().slow.clone();
    assert_eq!(slow.first().map(String::as_str), Some("preRunHook, http_health_check"), "{slow:?}");
    assert_eq!(slow.len(), 2, "and then the one that is left: {slow:?}");
    stage.check(json!(["time_window"])).await;
    assert_eq!(stage.told.lock().unwrap().slow.len(), 2, "what is quick is not worth telling");
}

#[tokio::test(start_paused = true)]
async fn no_action_is_taken_before_all_constraints_were_looked_at() {
    let stage = stage();
    stage.post.outside.will([Reply::After(secs(5), 200)]);
    let constraints = json!([
        { "time_window": { "onMet": [{ "skipNextInstance": 1 }] } },
        { "preRunHook": { "config": URL, "onMet": [{ "skipNextInstance": 2 }, { "skipNextInstance": 3 }] } },
    ]);
    let found = stage.look(run(constraints)).await;
    assert!(found.checked.acts && stage.heard().is_empty());
    let done = stage.checker.act(found.todo, &stage.pulse).await.unwrap();
    assert_eq!(stage.heard(), ["skip 1 of report", "skip 2 of report", "skip 3 of report"]);
    assert_eq!((done.verdict, done.counts.executed), (Verdict::Proceed, 3));
    let all = stage.told.lock().unwrap().heard.clone();
    assert_eq!(all[0], "acting: skipNextInstance of time_window", "whoever looks can see it");
}

#[tokio::test(start_paused = true)]
async fn what_need_not_be_looked_at_again_is_passed_over() {
    let stage = stage();
    let constraints = json!([
        { "preRunHook": { "config": URL, "recheckOnRetry": false, "onMet": ["fail"] } },
        "time_window",
    ]);
    let mut again = run(constraints);
    again.attempt = 1;
    let checked = stage.look(again).await.checked;
    assert_eq!(
        (checked.verdict, checked.counts.checked, checked.acts),
        (Verdict::Proceed, 1, false)
    );
    assert!(stage.post.outside.sent().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_failed_action_that_is_not_required_is_counted_only() {
    let stage = stage();
    stage.post.outside.will([status(400), status(400)]);
    let list = |required: bool| json!([{ "time_window": { "onMet": [{ "webhook": { "url": URL, "wait": "5s", "required": required } }, "log"] } }]);
    let done = stage.act(list(false)).await;
    assert_eq!(
        (done.verdict, done.counts),
        (Verdict::Proceed, Counts { checked: 0, violated: 0, executed: 2, failed: 1 })
    );
    let done = stage.act(list(true)).await;
    assert_eq!(
        (done.verdict, done.counts.failed, done.counts.executed),
        (Verdict::Fail, 1, 2),
        "the others are taken"
    );
    assert!(
        done.message.starts_with("all constraints are met; action webhook failed: message msg_"),
        "{}",
        done.message
    );
}

#[tokio::test(start_paused = true)]
async fn a_long_action_gives_signs_of_life() {
    let stage = stage();
    let found = stage.look(run(json!([{ "time_window": { "onMet": [{ "delay": "5m" }] } }]))).await;
    let mut acting = pin!(stage.checker.act(found.todo, &stage.pulse));
    for _ in 0..29 {
        let before = stage.pulse.beats();
        assert!(timeout(secs(10), &mut acting).await.is_err());
        assert!(stage.pulse.beats() >= before + 2, "at least every five seconds");
    }
    let done = timeout(secs(11), &mut acting).await.unwrap().unwrap();
    assert_eq!(done.verdict, Verdict::Proceed);
}

#[tokio::test(start_paused = true)]
async fn one_that_nobody_lets_go_on_gives_none() {
    let stage = stage();
    let found = stage.look(run(json!([{ "time_window": { "onMet": [{ "delay": "5m" }] } }]))).await;
    let mut acting = Box::pin(stage.checker.act(found.todo, &stage.pulse));
    assert!(timeout(secs(1), &mut acting).await.is_err());
    let before = stage.pulse.beats();
    tokio::time::advance(secs(60)).await;
    assert_eq!(stage.pulse.beats(), before, "no timer beats on its behalf");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_cancelled_in_the_middle_takes_no_further_action() {
    let stage = stage();
    let constraints = json!([{ "time_window": { "onMet": [{ "skipNextInstance": 1 }, { "delay": "1h" }, { "skipNextInstance": 2 }] } }]);
    let found = stage.look(run(constraints)).await;
    assert!(timeout(secs(600), stage.checker.act(found.todo, &stage.pulse)).await.is_err());
    tokio::time::advance(secs(7200)).await;
    assert_eq!(stage.heard(), ["skip 1 of report"]);
}

#[tokio::test(start_paused = true)]
async fn a_check_that_is_cancelled_withdraws_its_hook() {
    let stage = stage();
    stage.post.outside.will([status(500)]);
    let checking = stage.look(run(json!([{ "preRunHook": URL }])));
    assert!(timeout(secs(1) / 4, checking).await.is_err());
    tokio::time::advance(secs(60)).await;
    tokio::task::yield_now().await;
    assert_eq!(stage.post.outside.times().len(), 1, "it is not sent again");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_fails_the_run() {
    let stage = stage();
    let bad = Arc::new(run(json!([{ "time_windw": {} }])));
    let error = stage.checker.check_pre_execution(bad, &stage.pulse).await.unwrap_err();
    let right = "its constraints cannot be read: constraints[0]: there is no constraint `time_windw`; did you mean `time_window`?";
    assert!(matches!(&error, Error::Unreadable(_)));
    let done = failed(error);
    assert_eq!((done.verdict, done.message.as_str()), (Verdict::Fail, right));
}

#[tokio::test(start_paused = true)]
async fn who_only_waits_lets_others_have_its_place() {
    let stage = stage();
    let slots = Slots::default();
    slots.take();
    let pulse = Pulse::among(&slots);
    let waits = || json!([{ "time_window": { "onMet": [{ "delay": "1h" }, { "log": "late" }] } }]);
    let found = stage.look(run(waits())).await;
    let mut acting = pin!(stage.checker.act(found.todo, &pulse));
    assert!(timeout(secs(10), &mut acting).await.is_err());
    assert_eq!((slots.taken(), pulse.beats() > 3), (0, true), "and it is known to be alive");
    assert_eq!(acting.await.unwrap().counts.executed, 2);
    assert_eq!(slots.taken(), 1, "it has it again");
    let found = stage.look(run(waits())).await;
    assert!(timeout(secs(10), stage.checker.act(found.todo, &pulse)).await.is_err());
    assert_eq!(slots.taken(), 1, "as has one that was let go of");
}
