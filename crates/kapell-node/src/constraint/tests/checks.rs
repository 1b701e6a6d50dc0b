//! Each constraint: met, violated, and when nobody can say.

use kapell_core::board::{CellState, Resources};
use kapell_core::constraint::delivery::Answer;
use kapell_core::constraint::{JobState, Verdict};
use kapell_core::run::{Noted, RunState};
use kapell_core::seams::Timestamp;
use serde_json::{Value as Json, json};

use super::stage::{note, past, secs, stage};
use crate::testing::eventually;
use crate::webhook::DeliveryState;
use crate::webhook::tests::stage::{Reply, status};

const URL: &str = "https://example.com/hook";

#[tokio::test(start_paused = true)]
async fn a_hook_before_the_work_must_answer_200() {
    let stage = stage();
    let hook =
        json!([{ "preRunHook": { "config": { "url": URL, "body": { "run": "{{ run.id }}" } } } }]);
    assert_eq!(note(&stage.check(hook.clone()).await), ("met", "the answer was 200".to_owned()));
    assert_eq!(stage.post.outside.bodies(), [json!({ "run": "report:1700000000" })]);
    stage.post.outside.will([status(204)]);
    assert_eq!(
        note(&stage.check(hook.clone()).await),
        ("violated", "the answer was 204".to_owned())
    );
    stage.post.outside.will([status(403)]);
    let found = stage.check(hook.clone()).await;
    assert_eq!((note(&found).0, found.verdict), ("violated", Verdict::Fail));
    stage.post.outside.will([status(500), status(200)]);
    assert_eq!(note(&stage.check(hook.clone()).await).0, "met", "it is tried again");
    stage.post.outside.will((0..3).map(|_| Reply::Now(Answer::None("down".to_owned()))));
    let found = stage.check(hook).await;
    assert_eq!(note(&found), ("error", "down (after 3 calls)".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_is_not_answered_in_time_is_withdrawn() {
    let stage = stage();
    stage.post.outside.will([Reply::After(secs(7), 200), Reply::Never]);
    let hook = json!([{ "preRunHook": { "config": { "url": URL, "timeout": "8s" } } }]);
    assert_eq!(note(&stage.check(hook.clone()).await).0, "met", "it may take its time");
    let found = stage.check(hook).await;
    assert_eq!(note(&found).0, "error");
    let withdrawn = async || {
        stage.post.handler.deliveries(|it| it.state == DeliveryState::Withdrawn).len() == 1
    };
    eventually("it is withdrawn", secs(1), withdrawn).await;
}

#[tokio::test(start_paused = true)]
async fn a_hook_after_the_work_must_answer_200() {
    let stage = stage();
    let hook = json!([{ "postRunHook": URL }]);
    assert_eq!(stage.after(hook.clone(), 5).await.verdict, Verdict::Proceed);
    let body = stage.post.outside.bodies().remove(0);
    assert_eq!(
        (&body["type"], &body["data"]["run"]["duration_seconds"]),
        (&json!("kapell.run.after"), &json!(5.0))
    );
    assert_eq!(body["data"]["constraint"]["met"], Json::Null, "that is what is being found out");
    stage.post.outside.will([status(400)]);
    let done = stage.after(hook.clone(), 5).await;
    assert_eq!((done.verdict, done.counts.violated), (Verdict::Fail, 1));
    stage.post.outside.will([Reply::Now(Answer::Refused("forbidden".to_owned()))]);
    let done = stage.after(hook, 5).await;
    assert_eq!(
        (done.verdict, done.message.as_str()),
        (Verdict::Fail, "postRunHook could not be checked: forbidden")
    );
}

#[tokio::test(start_paused = true)]
async fn the_run_before_must_have_gone_well() {
    let stage = stage();
    let constraint = json!(["requirePreviousSuccess"]);
    assert_eq!(
        note(&stage.check(constraint.clone()).await).0,
        "error",
        "the scheduler knows no such job"
    );
    for (state, right) in [(RunState::Completed, "met"), (RunState::Failed, "violated")] {
        stage.knows("report", JobState::default(), vec![past(state)]);
        assert_eq!(note(&stage.check(constraint.clone()).await).0, right);
    }
}

#[tokio::test(start_paused = true)]
async fn the_window_is_that_of_the_clock() {
    let stage = stage();
    // The clock begins on a Tuesday at 22:13 UTC.
    let window = |end: &str| json!([{ "time_window": { "config": { "start": "22:00", "end": end, "days": ["tue"] } } }]);
    assert_eq!(note(&stage.check(window("23:00")).await).0, "met");
    let found = note(&stage.check(window("22:10")).await);
    assert_eq!(
        found,
        ("violated", "it is tuesday 22:13 in UTC, not within 22:00-22:10 on tue".to_owned())
    );
    let mut run = super::stage::run(window("23:00"));
    std::sync::Arc::make_mut(&mut run.definition).timezone = "Nowhere/Land".to_owned();
    assert_eq!(note(&stage.look(run).await.checked).0, "error");
}

#[tokio::test(start_paused = true)]
async fn other_jobs_are_asked_about() {
    let stage = stage();
    let constraints = [
        json!([{ "other_job_running": "import" }]),
        json!([{ "other_job_completed_recently": { "config": { "job": "import", "within": "1m" } } }]),
        json!([{ "other_job_scheduled_soon": { "config": { "job": "import", "within": "1m" } } }]),
    ];
    for constraint in &constraints {
        let found = note(&stage.check(constraint.clone()).await);
        assert_eq!(found, ("error", "there is no job `import`".to_owned()), "{constraint}");
    }
    stage.knows("import", JobState::default(), Vec::new());
    for constraint in &constraints {
        assert_eq!(note(&stage.check(constraint.clone()).await).0, "violated", "{constraint}");
    }
    let next_at = Some(Timestamp(1_700_000_030_000));
    stage.knows("import", JobState { running: 1, next_at }, vec![past(RunState::Completed)]);
    for constraint in &constraints {
        assert_eq!(note(&stage.check(constraint.clone()).await).0, "met", "{constraint}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_place_is_asked_for_its_health() {
    let stage = stage();
    stage.post.vault.set("token", "t");
    let config =
        json!({ "url": URL, "timeout": "5s", "headers": { "x-token": { "secret": "token" } } });
    let constraint = json!([{ "http_health_check": { "config": config } }]);
    assert_eq!(note(&stage.check(constraint.clone()).await).0, "met");
    let sent = stage.post.outside.sent().remove(0);
    assert_eq!(
        (sent.method, sent.body.len(), sent.private[0].1.as_str(), sent.follow),
        ("GET", 0, "t", false)
    );
    for reply in [status(503), Reply::Now(Answer::None("refused".to_owned()))] {
        stage.post.outside.will([reply.clone()]);
        assert_eq!(note(&stage.check(constraint.clone()).await).0, "violated", "{reply:?}");
    }
    stage.post.outside.will([Reply::Now(Answer::Refused("forbidden".to_owned()))]);
    assert_eq!(note(&stage.check(constraint.clone()).await), ("error", "forbidden".to_owned()));
    stage.post.vault.values.lock().unwrap().clear();
    assert_eq!(note(&stage.check(constraint).await).0, "error");
    assert!(stage.post.handler.deliveries(|_| true).is_empty(), "it is no message");
}

#[tokio::test(start_paused = true)]
async fn cells_are_asked_for_room() {
    let stage = stage();
    let constraint = json!([{ "resource_available": { "config": { "memory_mb": 64 } } }]);
    assert_eq!(note(&stage.check(constraint.clone()).await).0, "violated");
    let room = Resources { memory_mb: 64, disk_mb: 0, containers: 1 };
    let cell = json!({
        "cell_id": "a", "zone": "z1", "total": room, "available": room, "rootfs_schemes": [], "placement_tags": [],
        "optional_placement_tags": [], "starting": 0, "lrps": [], "tasks": [], "evacuating": false, "unhealthy": false,
    });
    stage.cells.0.lock().unwrap().push(serde_json::from_value::<CellState>(cell).unwrap());
    assert_eq!(note(&stage.check(constraint.clone()).await).0, "met");
    *stage.cells.1.lock().unwrap() = Some("none of 2 cells answers".to_owned());
    assert_eq!(
        note(&stage.check(constraint).await),
        ("error", "none of 2 cells answers".to_owned())
    );
}

#[tokio::test(start_paused = true)]
async fn how_long_the_work_ran_is_looked_at_afterwards() {
    let stage = stage();
    let constraints = json!([{ "maxExpectedRunTime": "10s" }, { "maxAllowedRunTime": "20s" }]);
    for (took, verdict, violated, executed) in
        [(10, Verdict::Proceed, 0, 0), (11, Verdict::Proceed, 1, 1), (21, Verdict::Retry, 2, 1)]
    {
        let done = stage.after(constraints.clone(), took).await;
        let counts = (done.counts.checked, done.counts.violated, done.counts.executed);
        assert_eq!((done.verdict, counts), (verdict, (2, violated, executed)), "{took}");
    }
    let done = stage.after(constraints, 11).await;
    let log = Noted::Action {
        name: "log".to_owned(),
        ok: true,
        message: "it ran for 11s, longer than 10s (maxExpectedRunTime)".to_owned(),
    };
    assert_eq!(done.notes[2], log);
}

#[tokio::test(start_paused = true)]
async fn a_limit_on_work_that_has_not_ended_cannot_be_judged() {
    let stage = stage();
    let run = super::stage::run(json!([{ "maxAllowedRunTime": "20s" }]));
    let done = crate::constraint::ConstraintChecker::check_post_execution(
        &stage.checker,
        std::sync::Arc::new(run),
        &stage.pulse,
    );
    let done = done.await.unwrap();
    assert_eq!(
        (done.verdict, done.message.as_str()),
        (Verdict::Fail, "maxAllowedRunTime could not be checked: the work has not ended")
    );
}
