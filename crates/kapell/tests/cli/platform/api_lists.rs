//! What can be read: lists and their filters, domains, endpoints, cells, and why things are as they are.

use serde_json::{Value, json};

use super::Site;
use super::api::{JSON, post, send};
use super::life::STAYS;
use crate::bench::eventually;

/// The values of a field, in the order of the list.
fn each(list: &Value, field: &str) -> Vec<String> {
    let text = |item: &Value| {
        let value = &item[field];
        value.as_str().map_or_else(|| value.to_string(), str::to_owned)
    };
    list.as_array().expect("a list").iter().map(text).collect()
}

#[test]
pub(super) fn lists_are_filtered() {
    let site = Site::up();
    let mut blue = site.lrp("blue", 2, STAYS);
    blue["domain"] = json!("sky");
    assert_eq!(post(&site, "/v1/desired-lrps", &blue).status, 201);
    site.desire("red", 1, STAYS);
    site.all_run("blue", 2);
    site.all_run("red", 1);
    let guids = |path: &str| each(&site.get(path), "process_guid").join(" ");
    assert_eq!(guids("/v1/desired-lrps"), "blue red");
    assert_eq!(guids("/v1/desired-lrps?domain=sky"), "blue");
    assert_eq!(guids("/v1/desired-lrps?domain=none"), "");
    assert_eq!(guids("/v1/actual-lrps"), "blue blue red");
    assert_eq!(guids("/v1/actual-lrps?process_guid=red"), "red");
    assert_eq!(guids("/v1/actual-lrps?domain=sky"), "blue blue");
    assert_eq!(guids("/v1/actual-lrps?domain=sky&process_guid=red"), "");
    assert_eq!(guids("/v1/actual-lrps?cell_id=local&index=1"), "blue");
    assert_eq!(guids("/v1/actual-lrps?cell_id=elsewhere"), "");
    let one = &site.get("/v1/actual-lrps?process_guid=red")[0];
    for field in
        ["index", "instance_guid", "cell_id", "state", "since", "crash_count", "evacuating"]
    {
        assert!(one.get(field).is_some(), "no {field} in {one}");
    }

    for (guid, script) in [("done", "true"), ("runs", "exec sleep 1000")] {
        let mut task = site.lrp("x", 1, script);
        let task = json!({"task_guid": guid, "domain": guid, "action": task["action"].take(),
                          "env": task["env"].take()});
        assert_eq!(post(&site, "/v1/tasks", &task).status, 201);
    }
    let guids = |path: &str| each(&site.get(path), "task_guid").join(" ");
    site.until("the tasks", || {
        (guids("/v1/tasks?state=COMPLETED") == "done" && guids("/v1/tasks?state=running") == "runs")
            .then_some(())
    });
    assert_eq!(guids("/v1/tasks"), "done runs");
    assert_eq!(guids("/v1/tasks?domain=done"), "done");
    assert_eq!(guids("/v1/tasks?cell_id=local&state=RUNNING"), "runs");
    assert_eq!(guids("/v1/tasks?cell_id=elsewhere"), "");
    let listed = send(&site, "GET", "/v1/tasks", &[], "");
    assert!(listed.header("kapell-event-id").is_some_and(|id| id.starts_with("1-")));
}

#[test]
pub(super) fn a_domain_is_fresh_until_its_time_runs_out() {
    let site = Site::up();
    let set = |path: &str, body: &str| {
        let headers: &[&str] = if body.is_empty() { &[] } else { &[JSON] };
        let answer = send(&site, "PUT", path, headers, body);
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    };
    let forever = set("/v1/domains/always", "");
    assert_eq!((&forever["fresh"], &forever["expires_at"]), (&json!(true), &Value::Null));
    let short = set("/v1/domains/short?ttl=300ms", "");
    assert_eq!(short["fresh"], true);
    assert!(set("/v1/domains/long", r#"{"ttl_ms": 120000}"#)["expires_at"].as_i64().is_some());
    let fresh = || {
        let list = site.get("/v1/domains");
        each(&list, "domain").into_iter().zip(each(&list, "fresh")).collect::<Vec<_>>()
    };
    let want = [("always", "true"), ("long", "true"), ("short", "false")];
    let want: Vec<_> =
        want.into_iter().map(|(name, fresh)| (name.to_owned(), fresh.to_owned())).collect();
    site.until("it to run out", || (fresh() == want).then_some(()));
    send(&site, "PUT", "/v1/domains/d?ttl=soon", &[], "").refused(400, "bad_parameter");
    send(&site, "PUT", "/v1/domains/d?ttl=1m", &[JSON], r#"{"ttl_ms": 1}"#)
        .refused(400, "bad_parameter");
    for ttl in ["60", r#""1m""#] {
        let set = set("/v1/domains/d", &format!(r#"{{"ttl": {ttl}}}"#));
        assert!(set["expires_at"].as_i64().is_some(), "{ttl}");
    }
    assert_eq!(set("/v1/domains/d", r#"{"ttl": 0}"#)["expires_at"], Value::Null);
    send(&site, "PUT", "/v1/domains/d", &[JSON], r#"{"time": 1}"#).refused(400, "bad_json");
}

#[test]
pub(super) fn endpoints_and_cells_are_told() {
    let site = Site::up();
    let mut web = site.lrp("web", 1, STAYS);
    web["ports"] = json!([8080, 9090]);
    assert_eq!(post(&site, "/v1/desired-lrps", &web).status, 201);
    let endpoints = site.until("it to listen", || {
        Some(site.get("/v1/endpoints/web")).filter(|list| list != &json!([]))
    });
    let ports = &endpoints[0]["ports"];
    assert_eq!(each(ports, "container_port"), ["8080", "9090"], "{endpoints}");
    assert_eq!(endpoints[0]["cell_id"], "local");
    send(&site, "GET", "/v1/endpoints/none", &[], "").refused(404, "not_found");
    let cells = eventually("the instance to count", || {
        Some(site.get("/v1/cells")).filter(|cells| cells[0]["lrps"] == 1)
    });
    assert_eq!((&cells[0]["cell_id"], &cells[0]["state"]), (&json!("local"), &json!("present")));
    assert_eq!(cells.as_array().map(Vec::len), Some(1));
    send(&site, "POST", "/v1/cells/none/evacuate", &[], "").refused(404, "not_found");
    assert_eq!(send(&site, "POST", "/v1/cells/local/evacuate", &[], "").status, 204);
    site.until("the cell to say so", || {
        (site.get("/v1/cells")[0]["state"] == "evacuating").then_some(())
    });
}

#[test]
pub(super) fn everything_is_explained() {
    let site = Site::up();
    site.desire("web", 1, STAYS);
    site.all_run("web", 1);
    let mut huge = site.lrp("huge", 1, STAYS);
    huge["memory_mb"] = json!(1_000_000_000);
    assert_eq!(post(&site, "/v1/desired-lrps", &huge).status, 201);
    let task = json!({"task_guid": "bad", "domain": "test",
                      "action": {"run": {"path": "sh", "args": ["-c", "echo no >&2; exit 4"]}}});
    assert_eq!(post(&site, "/v1/tasks", &task).status, 201);
    let says = |path: &str, text: &str| {
        site.until(&format!("{path} to say {text}"), || {
            let why = site.get(path);
            let subject = path.trim_start_matches("/v1/explain/");
            assert_eq!(why["subject"], subject);
            why.to_string().contains(text).then_some(())
        });
    };
    says("/v1/explain/lrp/web/0", "runs");
    says("/v1/explain/lrp/huge/0", "insufficient resources: memory");
    says("/v1/explain/lrp/web/7", "index 7 is beyond");
    says("/v1/explain/task/bad", "Exited with status 4: no");
    says("/v1/explain/cell/local", "present");
    for path in ["lrp/none/0", "lrp/web/x", "task/none", "cell/none"] {
        send(&site, "GET", &format!("/v1/explain/{path}"), &[], "").refused(404, "not_found");
    }
}
