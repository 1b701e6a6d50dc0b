use std::collections::BTreeSet;

use kapell_core::board::plan::{Cells, drawn};

use super::super::v1::routes;
use super::*;

#[tokio::test]
async fn the_document_has_every_route_and_no_other() {
    let (host, _) = Host::with_board().await;
    let document = host.get("/v1/openapi.json").await.json();
    assert_eq!(document["openapi"], "3.1.0");
    let mut told = BTreeSet::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for method in operations.as_object().unwrap().keys() {
            told.insert((method.to_uppercase(), path.clone()));
        }
    }
    let served: BTreeSet<_> =
        routes().map(|(method, path)| (method.to_owned(), path.to_owned())).collect();
    assert_eq!(told, served);
}

/// The references in a document.
fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            if let Some(Value::String(target)) = map.get("$ref") {
                found.insert(target.clone());
            }
            map.values().for_each(|each| references(each, found));
        }
        Value::Array(list) => list.iter().for_each(|each| references(each, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[tokio::test]
async fn nothing_refers_to_what_is_not_there() {
    let (host, _) = Host::with_board().await;
    let document = host.get("/v1/openapi.json").await.json();
    let mut found = BTreeSet::new();
    references(&document, &mut found);
    for target in &found {
        assert!(document.pointer(&target[1..]).is_some(), "{target}");
    }
    for schema in document["components"]["schemas"].as_object().unwrap().keys() {
        let target = format!("#/components/schemas/{schema}");
        assert!(found.contains(&target), "{schema} is used by nobody");
    }
}

#[tokio::test]
async fn names_in_paths_are_parameters_and_names_of_operations_differ() {
    let (host, _) = Host::with_board().await;
    let document = host.get("/v1/openapi.json").await.json();
    let mut ids = BTreeSet::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for operation in operations.as_object().unwrap().values() {
            assert!(ids.insert(operation["operationId"].to_string()), "{path}");
            let empty = Vec::new();
            let parameters = operation["parameters"].as_array().unwrap_or(&empty);
            let named = parameters.iter().filter(|it| it["in"] == "path").count();
            assert_eq!(named, path.matches('{').count(), "{path}");
            assert!(operation["responses"]["401"].is_object(), "{path}");
        }
    }
}

/// What is sent and received has the fields that the document names.
#[test]
fn schemas_name_the_fields_that_are_there() {
    let document = super::super::v1::document();
    let schemas = &document["components"]["schemas"];
    let task = desk::task("t", kapell_core::board::TaskState::Running);
    let lrp = desk::lrp("w", 0, kapell_core::board::ActualState::Running, Some("c"));
    let explained = kapell_api::v1::Explanation {
        subject: String::new(),
        summary: String::new(),
        rule: String::new(),
        facts: Vec::new(),
        inputs: Vec::new(),
        remedies: Vec::new(),
        next_try_at: Some(Timestamp(1)),
    };
    let plan = drawn(Vec::new(), Vec::new(), Cells::default());
    let definition = FakeDesk::new().job(r#"{"job_id":"j","command":"true"}"#);
    let mut run = desk::run("j:1", kapell_core::run::RunState::Failed, 1_000);
    (run.exit_code, run.reason) = (Some(1), "r".to_owned());
    let view = kapell_api::v1::JobView {
        job: desk::job(&definition),
        definition: (*definition).clone(),
        next_at: Some(Timestamp(1)),
        active_runs: 0,
        last_run: Some(kapell_api::v1::RunBrief::of(&run)),
    };
    let (job_id, timezone) = (run.run_id.job_id(), "UTC".to_owned());
    let brief = serde_json::to_value(kapell_api::v1::RunBrief::of(&run)).unwrap();
    let doing = kapell_core::run::Doing { what: "w".to_owned(), since: Timestamp(1) };
    let timer = kapell_api::v1::RunTimer { what: "retry".to_owned(), at: Timestamp(1) };
    let live = kapell_api::v1::RunLive {
        since: Timestamp(1),
        doing: Some(doing),
        heartbeats: Some(1),
        timer: Some(timer),
    };
    let shown = serde_json::to_value(&live).unwrap();
    let run = kapell_api::v1::RunView { run, job_id, timezone, live: Some(live) };
    let samples = [
        ("JobDefinition", serde_json::to_value(&view.definition).unwrap()),
        ("JobView", serde_json::to_value(view).unwrap()),
        ("RunView", serde_json::to_value(run).unwrap()),
        ("RunLive", shown),
        ("RunBrief", brief),
        ("Explanation", serde_json::to_value(explained).unwrap()),
        ("Plan", serde_json::to_value(plan).unwrap()),
        ("ActualLrp", serde_json::to_value(lrp).unwrap()),
        ("Task", serde_json::to_value(task).unwrap()),
    ];
    for (name, sample) in samples {
        let parts = schemas[name]["allOf"]
            .as_array()
            .cloned()
            .unwrap_or_else(|| vec![schemas[name].clone()]);
        let has = |field: &str| parts.iter().any(|part| part["properties"].get(field).is_some());
        for field in sample.as_object().unwrap().keys() {
            assert!(has(field), "{name} has no {field}");
        }
        for part in &parts {
            for required in part["required"].as_array().unwrap() {
                assert!(sample.get(required.as_str().unwrap()).is_some(), "{name}: {required}");
            }
        }
    }
}

#[test]
fn the_document_has_the_schema_of_every_constraint_and_action() {
    let document = super::super::v1::document();
    let schemas = &document["components"]["schemas"];
    for (name, schema) in kapell_core::constraint::schemas() {
        let (kind, name) = name.split_once('/').unwrap();
        let title = format!("{}_{name}", if kind == "action" { "Action" } else { "Constraint" });
        assert_eq!(schemas[&title], schema, "{title}");
    }
    let window = &schemas["JobConstraint"]["properties"]["time_window"]["properties"]["config"];
    assert_eq!(window["$ref"], "#/components/schemas/Constraint_time_window");
}
