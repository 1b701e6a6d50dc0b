use std::sync::atomic::Ordering;

use kapell_core::board::{
    ActualState, Freshness, Record, Refusal, Reply as BoardReply, Request, Task, TaskState,
};
use kapell_node::board::Declined;

use super::super::desk::Desk as _;
use super::desk::{lrp, task};
use super::*;

const WEB: &str =
    r#"{"process_guid":"web","domain":"d","instances":2,"action":{"run":{"path":"serve"}}}"#;

fn desired(created: bool) -> BoardReply {
    BoardReply::Desired { lrp: serde_json::from_str(WEB).unwrap(), created }
}

#[tokio::test]
async fn what_is_made_is_created_and_what_was_there_is_ok() {
    let (host, desk) = Host::with_board().await;
    desk.answers(Ok(desired(true)));
    let reply = host.send("POST", "/v1/desired-lrps", WEB).await;
    assert_eq!(reply.status, 201);
    assert_eq!(reply.header("location"), Some("/v1/desired-lrps/web"));
    assert_eq!(reply.json()["instances"], 2);
    desk.answers(Ok(desired(false)));
    assert_eq!(host.send("POST", "/v1/desired-lrps", WEB).await.status, 200);
    assert!(
        matches!(&desk.take_asked()[..], [Request::Desire(one), Request::Desire(_)] if one.instances == 2)
    );
}

#[tokio::test]
async fn every_refusal_has_its_status_and_code() {
    let (host, desk) = Host::with_board().await;
    let cases = [
        (
            Declined::Refused(Refusal::Invalid { problems: vec!["a".into(), "b".into()] }),
            422,
            "invalid",
        ),
        (
            Declined::Refused(Refusal::NotFound { what: "x".into(), name: "y".into() }),
            404,
            "not_found",
        ),
        (
            Declined::Refused(Refusal::Exists { text: "t".into(), fields: vec!["f".into()] }),
            409,
            "exists",
        ),
        (Declined::Refused(Refusal::Version { stands: 2, asked: 1 }), 409, "version"),
        (Declined::Refused(Refusal::State { text: "s".into() }), 409, "state"),
        (Declined::Busy, 429, "busy"),
        (Declined::ReadOnly("the disk is full".into()), 503, "read_only"),
        (Declined::Unsettled("the disk is full".into()), 503, "store_unavailable"),
        (Declined::NotLeading, 503, "not_leading"),
    ];
    for (why, status, code) in cases {
        desk.answers(Err(why));
        let reply = host.send("PATCH", "/v1/desired-lrps/web", r#"{"instances":3}"#).await;
        assert_eq!(reply.problem(), (status, code.to_owned()));
        assert_eq!(reply.has("retry-after: 1"), matches!(status, 429 | 503), "{code}");
        let details = &reply.json()["details"];
        match code {
            "invalid" => assert_eq!(details["problems"], serde_json::json!(["a", "b"])),
            "exists" => assert_eq!(details["fields"], serde_json::json!(["f"])),
            _ => {}
        }
    }
}

#[tokio::test]
async fn bad_json_is_told_with_its_place() {
    let (host, desk) = Host::with_board().await;
    for (body, line, column) in
        [("{\n  \"instances\": }", 2, 16), ("{\"instance\":1}", 1, 11), ("", 1, 0)]
    {
        let reply = host.send("PATCH", "/v1/desired-lrps/web", body).await;
        assert_eq!(reply.problem(), (400, "bad_json".to_owned()), "{body}");
        let details = &reply.json()["details"];
        assert_eq!(
            (&details["line"], &details["column"]),
            (&line.into(), &column.into()),
            "{body}"
        );
    }
    let more = "content-type: text/plain\r\ncontent-length: 2\r\n\r\n{}";
    let reply = host.ask("POST", "/v1/tasks", more).await;
    assert_eq!(reply.problem(), (415, "unsupported_media_type".to_owned()));
    assert!(desk.take_asked().is_empty());
}

#[tokio::test]
async fn unknown_parameters_are_named() {
    let (host, _) = Host::with_board().await;
    let reply = host.get("/v1/actual-lrps?proces_guid=web").await;
    assert_eq!(reply.problem(), (400, "unknown_parameter".to_owned()));
    assert_eq!(reply.json()["details"]["parameter"], "proces_guid");
    for path in [
        "/v1/actual-lrps?index=x",
        "/v1/actual-lrps?all=maybe",
        "/v1/tasks?state=DONE",
        "/v1/tasks?domain=%zz",
        "/v1/tasks?domain=a&domain=b",
        "/v1/domains/d?ttl=soon",
    ] {
        let method = if path.contains("ttl") { "PUT" } else { "GET" };
        assert_eq!(
            host.ask(method, path, "").await.problem(),
            (400, "bad_parameter".to_owned()),
            "{path}"
        );
    }
}

#[tokio::test]
async fn wrong_methods_and_paths_are_told_apart() {
    let (host, _) = Host::with_board().await;
    let reply = host.ask("PUT", "/v1/desired-lrps", "").await;
    assert_eq!(reply.problem(), (405, "method_not_allowed".to_owned()));
    assert!(reply.has("allow: get, head, post"), "{}", reply.head);
    let reply = host.ask("POST", "/v1/desired-lrps/web", "").await;
    assert!(reply.has("allow: delete, get, head, patch"), "{}", reply.head);
    for path in
        ["/v1", "/v1/", "/v1/desired-lrps/", "/v1/desired-lrps/a/b", "/v1/nothing", "/v2/tasks"]
    {
        assert_eq!(host.get(path).await.problem(), (404, "not_found".to_owned()), "{path}");
    }
}

#[tokio::test]
async fn a_board_that_is_not_loaded_is_waited_for() {
    let host = Host::leading(0xa).await;
    let reply = host.get("/v1/tasks").await;
    assert_eq!(reply.problem(), (503, "starting".to_owned()));
    assert!(reply.has("retry-after: 1"));
}

#[tokio::test]
async fn lists_are_filtered_and_sorted() {
    let (host, desk) = Host::with_board().await;
    desk.instance(lrp("web", 1, ActualState::Running, Some("c1")));
    desk.instance(lrp("web", 0, ActualState::Claimed, Some("c2")));
    desk.instance(lrp("api", 0, ActualState::Crashed, None));
    let mut twin = lrp("web", 0, ActualState::Running, Some("c1"));
    twin.evacuating = true;
    desk.instance(twin);
    let names = async |path: &str| {
        let reply = host.get(path).await;
        assert_eq!(reply.header("kapell-event-id"), Some("7-0"), "{path}");
        let list = reply.json();
        let show = |it: &Value| {
            format!(
                "{}/{}{}",
                it["process_guid"].as_str().unwrap(),
                it["index"],
                if it["evacuating"] == true { "e" } else { "" }
            )
        };
        list.as_array().unwrap().iter().map(show).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names("/v1/actual-lrps").await, "api/0 web/0e web/1");
    assert_eq!(names("/v1/actual-lrps?all=true").await, "api/0 web/0 web/0e web/1");
    assert_eq!(names("/v1/actual-lrps?process_guid=web&index=1").await, "web/1");
    assert_eq!(names("/v1/actual-lrps?cell_id=c1").await, "web/0e web/1");
    assert_eq!(names("/v1/actual-lrps?domain=other").await, "");
    desk.task(task("t1", TaskState::Running));
    desk.task(task("t2", TaskState::Pending));
    assert_eq!(host.get("/v1/tasks?state=pending").await.json()[0]["task_guid"], "t2");
    assert_eq!(host.get("/v1/tasks?domain=x").await.body, "[]\n");
    let endpoints = host.get("/v1/endpoints/web").await.json();
    assert_eq!(endpoints.as_array().unwrap().len(), 2);
    assert_eq!(endpoints[0]["ports"][0]["host_port"], 61000);
    assert_eq!(host.get("/v1/endpoints/none").await.problem().0, 404);
}

#[tokio::test]
async fn a_large_list_comes_whole() {
    let (host, desk) = Host::with_board().await;
    for index in 0..3000 {
        desk.instance(lrp("web", index, ActualState::Unclaimed, None));
    }
    let request = format!(
        "GET /v1/actual-lrps HTTP/1.0\r\nhost: {}\r\nauthorization: Bearer {TOKEN}\r\n\r\n",
        host.at()
    );
    let list = send(host.at(), &request).await.json();
    let list = list.as_array().unwrap();
    assert_eq!(list.len(), 3000);
    assert!(list.iter().zip(0..).all(|(lrp, index)| lrp["index"] == index));
}

#[tokio::test]
async fn a_task_without_a_name_gets_one() {
    let (host, desk) = Host::with_board().await;
    host.send("POST", "/v1/tasks", r#"{"domain":"d","action":{"run":{"path":"true"}}}"#).await;
    let asked = desk.take_asked();
    let [Request::CreateTask { definition, instance_guid }] = &asked[..] else {
        panic!("{asked:?}")
    };
    let is_hex = |text: &str| text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    assert!(is_hex(definition.task_guid.as_str()) && is_hex(instance_guid.as_str()));
}

#[tokio::test]
async fn a_task_is_resolved_and_then_deleted() {
    let (host, desk) = Host::with_board().await;
    assert_eq!(host.ask("DELETE", "/v1/tasks/t", "").await.status, 204);
    assert!(matches!(
        &desk.take_asked()[..],
        [Request::ResolveTask { .. }, Request::DeleteTask { .. }]
    ));
    desk.answers(Err(Declined::Refused(Refusal::State { text: "it is RUNNING".into() })));
    assert_eq!(host.ask("DELETE", "/v1/tasks/t", "").await.problem(), (409, "state".to_owned()));
    assert_eq!(desk.take_asked().len(), 1);
    desk.task(task("t", TaskState::Completed));
    let reply = host.ask("POST", "/v1/tasks/t/cancel", "").await;
    assert_eq!((reply.status, &reply.json()["task_guid"]), (200, &"t".into()));
}

#[tokio::test]
async fn the_time_to_live_of_a_domain_stands_in_query_or_body() {
    let (host, desk) = Host::with_board().await;
    let ttl = |desk: &FakeDesk| match &desk.take_asked()[..] {
        [Request::SetDomain { ttl, .. }] => *ttl,
        other => panic!("{other:?}"),
    };
    host.ask("PUT", "/v1/domains/d?ttl=2m", "").await;
    assert_eq!(ttl(&desk), Some(Duration::from_secs(120)));
    host.send("PUT", "/v1/domains/d", r#"{"ttl_ms":1500}"#).await;
    assert_eq!(ttl(&desk), Some(Duration::from_millis(1500)));
    host.send("PUT", "/v1/domains/d", r#"{"ttl":"2m"}"#).await;
    assert_eq!(ttl(&desk), Some(Duration::from_secs(120)));
    host.send("PUT", "/v1/domains/d", r#"{"ttl":90}"#).await;
    assert_eq!(ttl(&desk), Some(Duration::from_secs(90)));
    for body in ["", "{}", r#"{"ttl":0}"#, r#"{"ttl":"0s"}"#, r#"{"ttl_ms":0}"#] {
        host.send("PUT", "/v1/domains/d", body).await;
        assert_eq!(ttl(&desk), None, "{body}");
    }
    host.ask("PUT", "/v1/domains/d?ttl=0", "").await;
    assert_eq!(ttl(&desk), None);
    for body in [r#"{"ttl":"soon"}"#, r#"{"ttl":-1}"#, r#"{"ttl":"2m","ttl_ms":1}"#] {
        let wrong = host.send("PUT", "/v1/domains/d", body).await.problem().0;
        assert!(matches!(wrong, 400 | 422), "{body}: {wrong}");
    }
    let both = host.send("PUT", "/v1/domains/d?ttl=2m", r#"{"ttl_ms":1500}"#).await;
    assert_eq!(both.problem().0, 400);
}

/// A board whose time is an hour behind the clock on the wall: what it will do is told by its own.
#[tokio::test]
async fn the_time_of_answers_is_that_of_the_board() {
    let (host, desk) = Host::with_board().await;
    desk.ahead_ms.store(-3_600_000, Ordering::SeqCst);
    let now = desk.now();
    let expires_at = Some(now.after(Duration::from_secs(600)));
    let fresh = Freshness { domain: "d".into(), expires_at, since: None };
    desk.records.lock().unwrap().put(Record::Domain(fresh));
    assert_eq!(host.get("/v1/domains").await.json()[0]["fresh"], true);
    desk.task(Task { since: now, created_at: now, ..task("t", TaskState::Pending) });
    let why = host.get("/v1/explain/task/t").await.json();
    assert_eq!(why["facts"][0], "it is PENDING for 0 s", "{why}");
}

#[tokio::test]
async fn it_is_explained_why() {
    let (host, desk) = Host::with_board().await;
    desk.desire(WEB);
    let mut waits = lrp("web", 0, ActualState::Unclaimed, None);
    waits.placement_error = Some("insufficient resources: memory".into());
    desk.instance(waits);
    desk.task(task("t", TaskState::Completed));
    desk.cell_at("c1", "http://127.0.0.1:1");
    let why = host.get("/v1/explain/lrp/web/0").await.json();
    assert_eq!(why["subject"], "lrp/web/0");
    assert!(why["summary"].as_str().unwrap().contains("insufficient resources: memory"), "{why}");
    assert_eq!(why["rule"], "auction: what fits on no cell is carried over to the next batch");
    let inputs = why["inputs"].as_array().unwrap();
    assert!(inputs.iter().any(|it| it["name"] == "state" && it["value"] == "UNCLAIMED"), "{why}");
    assert!(why["remedies"][0].as_str().unwrap().contains("memory"), "{why}");
    assert!(why["next_try_at"].is_i64(), "{why}");
    let whole = host.get("/v1/explain/lrp/web").await.json();
    assert_eq!(whole["subject"], "lrp/web");
    assert!(whole["facts"][0].as_str().unwrap().starts_with("web/0 waits for a cell"), "{whole}");
    assert_eq!(host.get("/v1/explain/task/t").await.json()["subject"], "task/t");
    assert_eq!(host.get("/v1/explain/cell/c1").await.json()["subject"], "cell/c1");
    for path in [
        "/v1/explain/lrp/no",
        "/v1/explain/lrp/no/0",
        "/v1/explain/lrp/web/x",
        "/v1/explain/task/no",
        "/v1/explain/cell/no",
    ] {
        assert_eq!(host.get(path).await.problem(), (404, "not_found".to_owned()), "{path}");
    }
}

#[tokio::test]
async fn it_is_explained_when_the_board_itself_looks_again_and_which_cells_are_away() {
    let (host, desk) = Host::with_board().await;
    desk.desire(WEB);
    desk.instance(lrp("web", 0, ActualState::Unclaimed, None));
    let waits = host.get("/v1/explain/lrp/web/0").await.json();
    assert_eq!(waits["next_try_at"], 2000, "{waits}");
    desk.cell_at("c1", "http://127.0.0.1:1");
    *desk.silent.lock().unwrap() = Some("c1".into());
    let silent = host.get("/v1/explain/cell/c1").await.json();
    assert!(silent["summary"].as_str().unwrap().contains("did not answer"), "{silent}");
    desk.leave(&"c1".into());
    let gone = host.get("/v1/explain/cell/c1").await.json();
    assert!(gone["summary"].as_str().unwrap().starts_with("cell `c1` is gone"), "{gone}");
    assert!(!gone["facts"].to_string().contains("did not answer"), "{gone}");
}

#[tokio::test]
async fn a_process_that_moves_runs_and_one_that_nobody_desires_is_counted() {
    let (host, desk) = Host::with_board().await;
    desk.desire(WEB);
    desk.cell_at("c1", "http://127.0.0.1:1");
    desk.instance(lrp("web", 0, ActualState::Unclaimed, None));
    let mut twin = lrp("web", 0, ActualState::Running, Some("c1"));
    twin.evacuating = true;
    desk.instance(twin);
    let moves = host.get("/v1/explain/lrp/web").await.json();
    assert!(moves["summary"].as_str().unwrap().starts_with("of `web` 1 of "), "{moves}");
    assert!(moves["facts"][0].as_str().unwrap().starts_with("web/0 still runs on cell"), "{moves}");
    desk.instance(lrp("left", 0, ActualState::Running, Some("c1")));
    let left = host.get("/v1/explain/lrp/left").await.json();
    let want = "of `left` 1 instance is left, 1 running; it is not desired";
    assert_eq!(left["summary"], want, "{left}");
    assert!(!left["remedies"].to_string().contains("lrp scale"), "{left}");
    let forgotten = kapell_core::board::DesiredLrp::forgotten("lost".into());
    desk.records.lock().unwrap().put(Record::Desired(Box::new(forgotten)));
    let lost = host.get("/v1/explain/lrp/lost").await.json();
    assert!(lost["summary"].as_str().unwrap().contains("cannot be read"), "{lost}");
    assert_eq!(host.get("/v1/explain/lrp/lost/0").await.status, 200);
}
