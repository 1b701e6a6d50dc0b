use kapell_core::board::{Refusal, Reply as BoardReply, Request};
use kapell_node::board::Declined;
use serde_json::json;

use super::*;

const PRESENCE: &str = r#"{"cell_id":"c1","url":"http://127.0.0.1:9","capacity":{"memory_mb":1,"disk_mb":2,"containers":3}}"#;

#[tokio::test]
async fn a_cell_comes_and_goes() {
    let (host, _) = Host::with_board().await;
    let reply = host.send("PUT", "/v1/cells/c1", PRESENCE).await;
    assert_eq!(reply.json(), json!({ "epoch": 7, "ttl_ms": 15000 }));
    assert_eq!(host.get("/v1/cells").await.json()[0]["cell_id"], "c1");
    assert_eq!(host.ask("DELETE", "/v1/cells/c1", "").await.status, 204);
    assert_eq!(host.get("/v1/cells").await.body, "[]\n");
}

#[tokio::test]
async fn a_cell_speaks_for_itself_only() {
    let (host, _) = Host::with_board().await;
    assert_eq!(
        host.send("PUT", "/v1/cells/c2", PRESENCE).await.problem(),
        (422, "invalid".to_owned())
    );
    let bad = PRESENCE.replace("http://127.0.0.1:9", "nowhere");
    assert_eq!(host.send("PUT", "/v1/cells/c1", &bad).await.problem().0, 422);
}

#[tokio::test]
async fn only_a_cell_that_is_there_is_evacuated() {
    let (host, desk) = Host::with_board().await;
    assert_eq!(host.ask("POST", "/v1/cells/c1/evacuate", "").await.problem().0, 404);
    desk.cell_at("c1", "http://127.0.0.1:1");
    assert_eq!(host.ask("POST", "/v1/cells/c1/evacuate", "").await.status, 204);
    assert_eq!(desk.evacuated.lock().unwrap().len(), 1);
}

fn claim(guid: &str) -> Value {
    json!({ "report": "claim", "key": { "process_guid": guid, "index": 0 }, "instance_guid": "i" })
}

#[tokio::test]
async fn each_report_is_answered_on_its_own() {
    let (host, desk) = Host::with_board().await;
    desk.answers(Err(Declined::Refused(Refusal::State { text: "no".into() })));
    desk.answers(Ok(BoardReply::Instance(None)));
    let body = json!([claim("a"), claim("a")]).to_string();
    let answers = host.send("POST", "/v1/cells/c1/reports", &body).await.json();
    assert_eq!(
        answers,
        json!([{ "refused": { "refusal": "state", "text": "no" } }, { "done": null }])
    );
    let all = desk.take_asked();
    assert!(
        all.iter()
            .all(|it| matches!(it, Request::Report { cell_id, .. } if cell_id.as_str() == "c1"))
    );
}

#[tokio::test]
async fn nothing_is_decided_after_what_the_board_had_no_time_for() {
    let (host, desk) = Host::with_board().await;
    let body = json!([claim("a"), claim("a"), claim("a")]).to_string();
    for why in [Declined::Busy, Declined::ReadOnly("the disk is full".into())] {
        desk.answers(Err(why));
        let answers = host.send("POST", "/v1/cells/c1/reports", &body).await.json();
        assert_eq!(answers, json!(["busy", "busy", "busy"]));
        assert_eq!(desk.take_asked().len(), 1);
    }
    desk.answers(Err(Declined::NotLeading));
    assert_eq!(host.send("POST", "/v1/cells/c1/reports", &body).await.problem().0, 503);
}

#[tokio::test]
async fn reports_may_be_larger_than_requests() {
    let (host, _) = Host::with_board().await;
    let long = "x".repeat(LIMITS.body_bytes);
    let report = json!([{ "report": "crashed", "key": { "process_guid": "a", "index": 0 }, "instance_guid": "i",
                          "domain": "d", "reason": long }]);
    assert_eq!(host.send("POST", "/v1/cells/c1/reports", &report.to_string()).await.status, 200);
    let reply = host.send("POST", "/v1/tasks", &report.to_string()).await;
    assert_eq!(reply.problem(), (413, "body_too_large".to_owned()));
    let wanted = r#"{"lrps":[],"tasks":[]}"#;
    assert_eq!(host.send("POST", "/v1/cells/c1/records", wanted).await.json()["epoch"], 7);
}
