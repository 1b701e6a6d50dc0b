use kapell_core::board::{ActualState, CellState, Records, Resources, TaskState};
use serde_json::json;

use super::desk::{lrp, task};
use super::*;

fn cell(id: &str, memory_mb: u32) -> CellState {
    let room = Resources { memory_mb, disk_mb: 1000, containers: 100 };
    CellState::empty(id.into(), String::new(), room)
}

fn web(instances: u32) -> Value {
    json!({
        "process_guid": "web", "domain": "d", "memory_mb": 64, "instances": instances,
        "action": {"run": {"path": "serve"}},
    })
}

#[tokio::test]
async fn a_plan_says_what_would_run_where_and_changes_nothing() {
    let (host, desk) = Host::with_board().await;
    *desk.states.lock().unwrap() = vec![cell("c1", 100)];
    let job = json!({"domain": "d", "action": {"run": {"path": "true"}}});
    let body = json!({"lrps": [web(2)], "tasks": [job]}).to_string();
    let reply = host.send("POST", "/v1/plan", &body).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let plan = reply.json();
    assert_eq!(plan["fits"], false);
    let wish = &plan["wishes"][0];
    assert_eq!((&wish["subject"], &wish["step"]), (&json!("lrp/web"), &json!("create")));
    assert_eq!((&wish["before"], &wish["after"]), (&json!(0), &json!(2)));
    assert_eq!(plan["units"][0]["cell_id"], "c1");
    let reason = plan["units"][1]["reason"].as_str().unwrap();
    assert!(reason.starts_with("insufficient resources: memory"), "{plan}");
    assert_eq!(plan["units"][2]["cell_id"], "c1");
    assert!(desk.take_asked().is_empty());
    assert_eq!(*desk.records.lock().unwrap(), Records::default());
    let one = json!({"lrps": [web(1)]}).to_string();
    assert_eq!(host.send("POST", "/v1/plan", &one).await.json()["fits"], true);
}

#[tokio::test]
async fn a_plan_shows_what_apply_would_refuse_scale_and_leave() {
    let (host, desk) = Host::with_board().await;
    *desk.states.lock().unwrap() = vec![cell("c1", 1000)];
    desk.desire(&web(2).to_string());
    desk.instance(lrp("web", 0, ActualState::Running, Some("c1")));
    desk.instance(lrp("web", 1, ActualState::Running, Some("c1")));
    desk.task(task("t", TaskState::Running));
    let plan = async |body: Value| host.send("POST", "/v1/plan", &body.to_string()).await.json();
    let more = plan(json!({"lrps": [web(3)]})).await;
    assert_eq!(more["wishes"][0]["step"], "scale_up");
    assert_eq!(more["units"][0]["subject"], "lrp/web/2");
    let less = plan(json!({"lrps": [web(1)]})).await;
    assert_eq!(less["wishes"][0]["step"], "scale_down");
    assert_eq!(less["stops"], json!([{"subject": "lrp/web/1", "cell_id": "c1"}]));
    let kept = plan(json!({"lrps": [web(1)], "keep_instances": ["web"]})).await;
    assert_eq!((&kept["wishes"][0]["step"], &kept["fits"]), (&json!("unchanged"), &json!(true)));
    let mut other = web(2);
    other["memory_mb"] = json!(1);
    let refused = plan(json!({"lrps": [other]})).await;
    assert_eq!(refused["wishes"][0]["step"], "refused");
    assert_eq!(refused["wishes"][0]["fields"], json!(["memory_mb"]));
    assert_eq!(refused["fits"], false);
    let job = json!({"task_guid": "t", "domain": "d", "action": {"run": {"path": "true"}}});
    assert_eq!(plan(json!({"tasks": [job]})).await["wishes"][0]["step"], "unchanged");
}

#[tokio::test]
async fn a_plan_that_makes_no_sense_is_refused() {
    let (host, _) = Host::with_board().await;
    let bad = [
        json!({"lrps": [web(1), web(2)]}),
        json!({"lrps": [{"process_guid": "x"}]}),
        json!({"jobs": []}),
        json!({"lrps": [web(1_000_001)]}),
    ];
    for body in bad {
        let (status, _) = host.send("POST", "/v1/plan", &body.to_string()).await.problem();
        assert!(matches!(status, 400 | 422), "{body}: {status}");
    }
    assert_eq!(host.get("/v1/plan").await.problem().0, 405);
}
