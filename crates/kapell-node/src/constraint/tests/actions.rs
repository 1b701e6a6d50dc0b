//! Each action: taken, and failed.

use std::sync::Arc;

use kapell_core::constraint::Verdict;
use kapell_core::constraint::delivery::Answer;
use kapell_core::run::{ActionsDone, Noted};
use serde_json::{Value as Json, json};
use tokio::time::Instant;

use super::stage::{Stage, secs, stage};
use crate::constraint::{ConstraintChecker as _, failed};
use crate::testing::eventually;
use crate::webhook::DeliveryState;
use crate::webhook::tests::stage::{Reply, status};

/// A constraint that is violated, with these actions.
fn violated(actions: Json) -> Json {
    let mut constraints = json!([{ "time_window": { "config": { "days": ["mon"] } } }]);
    constraints[0]["time_window"]["onViolation"] = actions;
    constraints
}

fn note(done: &ActionsDone) -> (bool, String) {
    let Noted::Action { ok, message, .. } = &done.notes[0] else { panic!("{done:?}") };
    (*ok, message.clone())
}

async fn take(stage: &Stage, action: Json) -> (bool, String) {
    note(&stage.act(violated(Json::Array(vec![action]))).await)
}

#[tokio::test(start_paused = true)]
async fn four_actions_say_what_becomes_of_the_run() {
    let stage = stage();
    for (action, right) in [
        ("retry", Verdict::Retry),
        ("fail", Verdict::Fail),
        ("skip", Verdict::Skip),
        ("proceed", Verdict::Proceed),
    ] {
        let done = stage.act(violated(json!([action]))).await;
        assert_eq!(
            (done.verdict, note(&done)),
            (right, (true, format!("{action} is what the run does")))
        );
    }
    let mut stage = stage;
    stage.scheduler.shutdown().await;
    let found = stage.look(super::stage::run(violated(json!(["proceed"])))).await;
    assert!(
        stage.checker.act(found.todo, &stage.pulse).await.is_err(),
        "nobody is there to be told"
    );
}

#[tokio::test(start_paused = true)]
async fn a_delay_waits_and_then_the_run_goes_on() {
    let stage = stage();
    let begin = Instant::now();
    let done = stage.act(violated(json!([{ "delay": "5m" }]))).await;
    assert_eq!((done.verdict, begin.elapsed()), (Verdict::Proceed, secs(300)));
    let begin = Instant::now();
    let done = stage.act(violated(json!([{ "delay": "5m" }, "fail"]))).await;
    assert_eq!(
        (done.verdict, begin.elapsed()),
        (Verdict::Fail, secs(0)),
        "nobody waits for nothing"
    );
}

#[tokio::test(start_paused = true)]
async fn a_line_is_written_to_the_log() {
    let stage = stage();
    for level in ["debug", "info", "warn", "error"] {
        let action = json!({ "log": { "message": "{{ run.id }} {{ constraint.name }} {{ constraint.met }}", "level": level } });
        assert_eq!(
            take(&stage, action).await,
            (true, "report:1700000000 time_window false".to_owned())
        );
    }
}

#[tokio::test(start_paused = true)]
async fn another_job_is_triggered_once_however_often_it_is_asked_for() {
    let stage = stage();
    let action =
        json!({ "kickOffJob": { "job": "clean-up", "parameters": { "OF": "{{ run.id }}" } } });
    let (ok, text) = take(&stage, action.clone()).await;
    assert!(ok && text.starts_with("triggered clean-up:1700000000-"), "{text}");
    take(&stage, action.clone()).await;
    let heard = stage.heard();
    assert_eq!(heard[0], heard[1], "the same run is asked for again");
    assert!(
        heard[0].ends_with("of report:1700000000 {\"OF\": \"report:1700000000\"}"),
        "{heard:?}"
    );
    let twice = stage.act(violated(json!([action.clone(), action.clone()]))).await;
    assert_ne!(twice.notes[0], twice.notes[1], "two in a list are two runs");
    stage.told.lock().unwrap().refuses = Some("there is no job `clean-up`".to_owned());
    assert_eq!(take(&stage, action).await, (false, "there is no job `clean-up`".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn other_runs_are_cancelled() {
    let stage = stage();
    assert_eq!(
        take(&stage, json!("killAllInstances")).await,
        (true, "2 runs of job `report` are cancelled".to_owned())
    );
    take(&stage, json!({ "killLatestInstance": { "job": "import", "stop": "at_once" } })).await;
    assert_eq!(
        stage.heard(),
        [
            "cancel All of report but report:1700000000 Graceful: killAllInstances of run report:1700000000",
            "cancel Latest of import but report:1700000000 AtOnce: killLatestInstance of run report:1700000000",
        ]
    );
    stage.told.lock().unwrap().refuses = Some("no".to_owned());
    for action in ["killAllInstances", "killLatestInstance"] {
        assert_eq!(take(&stage, json!(action)).await, (false, "no".to_owned()));
    }
}

#[tokio::test(start_paused = true)]
async fn the_next_moments_are_passed_over() {
    let stage = stage();
    let (ok, text) = take(&stage, json!({ "skipNextInstance": 2 })).await;
    assert_eq!((ok, text.as_str()), (true, "the next 2 moments of job `report` are passed over"));
    assert_eq!(stage.heard(), ["skip 2 of report"]);
    stage.told.lock().unwrap().refuses = Some("no".to_owned());
    assert_eq!(take(&stage, json!("skipNextInstance")).await, (false, "no".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_figure_is_set() {
    let stage = stage();
    take(&stage, json!({ "metric": "late" })).await;
    take(&stage, json!({ "metric": { "metric": "lag", "value": 2.5, "kind": "gauge" } })).await;
    let both = async || stage.heard() == ["Counter late 1", "Gauge lag 2.5"];
    eventually("both have come", secs(1), both).await;
    let mut stage = stage;
    stage.scheduler.shutdown().await;
    let found = stage.look(super::stage::run(violated(json!([{ "metric": "late" }])))).await;
    assert!(stage.checker.act(found.todo, &stage.pulse).await.is_err());
}

/// A scheduler that goes while actions are taken: the first was, the second could not be, the third is not tried.
#[tokio::test(start_paused = true)]
async fn what_was_done_before_nobody_could_do_any_more_is_told_with_the_reason() {
    for after in [false, true] {
        let stage = stage();
        stage.told.lock().unwrap().leaves_after = Some(2);
        let list = json!([{ "log": "one" }, { "metric": { "metric": "late", "required": false } }, { "log": "two" }]);
        let constraints = if after {
            json!([{ "maxExpectedRunTime": { "config": "1s", "onViolation": list } }])
        } else {
            violated(list)
        };
        let error = if after {
            let run = Arc::new(super::stage::ended(constraints, 5));
            stage.checker.check_post_execution(run, &stage.pulse).await.unwrap_err()
        } else {
            let found = stage.look(super::stage::run(constraints)).await;
            stage.checker.act(found.todo, &stage.pulse).await.unwrap_err()
        };
        let done = failed(error);
        assert_eq!(done.verdict, Verdict::Fail);
        assert!(
            done.message.contains("the scheduler does not answer: this host is stopping"),
            "{done:?}"
        );
        assert_eq!((done.counts.executed, done.counts.failed), (2, 1), "{done:?}");
        let (checked, violated) = (done.counts.checked, done.counts.violated);
        assert_eq!((checked, violated), if after { (1, 1) } else { (0, 0) });
        let mut taken: Vec<(&str, bool)> = Vec::new();
        for noted in &done.notes {
            if let Noted::Action { name, ok, .. } = noted {
                taken.push((name, *ok));
            }
        }
        assert_eq!(taken, [("log", true), ("metric", false)]);
        assert_eq!(done.notes.len(), if after { 3 } else { 2 }, "{done:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_counts_has_the_same_name_whenever_it_is_taken_again() {
    let stage = stage();
    for _ in 0..2 {
        take(&stage, json!({ "metric": "late" })).await;
        take(&stage, json!("skipNextInstance")).await;
    }
    let two = violated(json!([{ "metric": "late" }, { "metric": "late" }]));
    stage.act(two).await;
    let named = stage.told.lock().unwrap().actions.clone();
    assert_eq!((named[0], named[1]), (named[2], named[3]));
    assert_eq!(named[4], named[0], "it is the first of its list");
    assert_ne!(named[4], named[5], "two in a list count both");
}

#[tokio::test(start_paused = true)]
async fn a_webhook_does_not_hold_up_the_run() {
    let stage = stage();
    stage.post.outside.will([Reply::Never, status(500)]);
    let begin = Instant::now();
    let (ok, text) = take(&stage, json!({ "webhook": "https://example.com/hook" })).await;
    assert!(ok && text.ends_with("is on its way") && begin.elapsed() < secs(1), "{text}");
    let delivered = async || {
        stage.post.handler.deliveries(|it| it.state == DeliveryState::Delivered).len() == 1
    };
    eventually("it is delivered in the end", secs(60), delivered).await;
    let body = stage.post.outside.bodies().remove(0);
    assert_eq!(body["type"], "kapell.constraint.violated");
    assert_eq!(body["data"]["constraint"]["name"], "time_window");
    assert_eq!(body["data"]["job"]["id"], "report");
    let listed = stage.post.handler.deliveries(|_| true).remove(0);
    assert_eq!(
        (listed.what.as_str(), listed.attempts, listed.job_id.as_str()),
        ("webhook of time_window", 3, "report")
    );
}

#[tokio::test(start_paused = true)]
async fn a_webhook_is_waited_for_as_long_as_it_says() {
    let stage = stage();
    let action = json!({ "webhook": { "url": "https://example.com/hook", "wait": "15s" } });
    let (ok, text) = take(&stage, action.clone()).await;
    assert!(ok && text.ends_with("was taken: 200"), "{text}");
    stage.post.outside.will([status(400)]);
    let (ok, text) = take(&stage, action.clone()).await;
    assert!(!ok && text.ends_with("was not taken: the answer was 400"), "{text}");
    stage.post.outside.will([Reply::Never, Reply::Never]);
    let begin = Instant::now();
    let (ok, text) = take(&stage, action).await;
    assert!(!ok && text.ends_with("was not taken within 15s"), "{text}");
    assert_eq!(begin.elapsed(), secs(15));
    let delivered = async || {
        stage.post.handler.deliveries(|it| it.state == DeliveryState::Delivered).len() == 2
    };
    eventually("it is delivered all the same", secs(60), delivered).await;
}

#[tokio::test(start_paused = true)]
async fn the_same_message_has_the_same_id_when_it_is_asked_for_again() {
    let stage = stage();
    let action = json!({ "webhook": { "url": "https://example.com/hook", "wait": "5s" } });
    for _ in 0..2 {
        stage.act(violated(json!([action.clone(), action.clone()]))).await;
    }
    let ids: Vec<String> =
        stage.post.handler.deliveries(|_| true).into_iter().map(|it| it.webhook_id).collect();
    assert_eq!((&ids[0], &ids[1]), (&ids[2], &ids[3]));
    assert_ne!(ids[0], ids[1]);
}

#[tokio::test(start_paused = true)]
async fn slack_and_pagerduty_are_told_what_they_understand() {
    let stage = stage();
    stage.post.vault.set("slack", "https://hooks.slack.com/services/T/B/x");
    stage.post.vault.set("pd", "R0UTE");
    let slack = json!({ "slack": { "url_secret": "slack", "wait": "5s" } });
    assert!(take(&stage, slack.clone()).await.0);
    let pagerduty = json!({ "pagerduty": { "routing_key_secret": "pd", "wait": "5s" } });
    assert!(take(&stage, pagerduty.clone()).await.0);
    let bodies = stage.post.outside.bodies();
    let text = "report: time_window: it is tuesday 22:13 in UTC, not within 00:00-24:00 on mon (report:1700000000)";
    assert_eq!(bodies[0], json!({ "text": text }));
    assert_eq!(bodies[1]["routing_key"], "R0UTE");
    assert_eq!(bodies[1]["event_action"], "trigger");
    assert_eq!(bodies[1]["dedup_key"], "report/time_window");
    assert_eq!(
        (&bodies[1]["payload"]["summary"], &bodies[1]["payload"]["severity"]),
        (&json!(text), &json!("error"))
    );
    let urls: Vec<String> = stage.post.outside.sent().into_iter().map(|sent| sent.url).collect();
    assert_eq!(
        urls,
        ["https://hooks.slack.com/services/T/B/x", "https://events.pagerduty.com/v2/enqueue"]
    );
    stage.post.outside.will([status(404), Reply::Now(Answer::Refused("forbidden".to_owned()))]);
    for action in [slack, pagerduty] {
        assert!(!take(&stage, action).await.0);
    }
}

#[tokio::test(start_paused = true)]
async fn an_action_that_is_not_answered_fails_after_a_while() {
    let stage = stage();
    let found =
        stage.look(super::stage::run(violated(json!([{ "kickOffJob": "a" }, "skip"])))).await;
    stage.told.lock().unwrap().hangs = true;
    let done = stage.checker.act(found.todo, &stage.pulse).await.unwrap();
    assert_eq!(note(&done), (false, "it was not done within 30s".to_owned()));
    assert_eq!((done.verdict, done.counts.executed, done.counts.failed), (Verdict::Fail, 2, 1));
}
