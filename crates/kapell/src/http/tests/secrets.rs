//! What is told of secrets, and to whom.

use kapell_core::board::ActualState;
use kapell_core::secret::Secret;
use serde_json::json;

use super::certificates::{ask, fresh, is, leader};
use super::desk::{lrp, task};
use super::*;

const SECRET: &str = "hunter2-hunter2";
const RUN: &str = r#""action":{"run":{"path":"true","env":[{"name":"P","secret":"db"}]}}"#;

fn bearer() -> String {
    format!("authorization: Bearer {TOKEN}\r\n")
}

fn holder(guid: &str) -> String {
    let key = json!({"process_guid": guid, "index": 0});
    json!({"lrp": {"key": key, "instance_guid": format!("{guid}-0-one")}}).to_string()
}

#[tokio::test]
async fn a_cell_gets_the_secrets_of_its_own_work_only() {
    let (host, desk, ledger) = leader().await;
    for (guid, cell) in [("web", "one"), ("other", "two")] {
        desk.desire(&format!(r#"{{"process_guid":"{guid}","domain":"d",{RUN}}}"#));
        desk.instance(lrp(guid, 0, ActualState::Claimed, Some(cell)));
    }
    let one = fresh("one");
    let take = "POST /v1/cells/one/secrets";
    let missing = ask(host.at(), Some(&one), take, "", &holder("web")).await;
    assert_eq!(missing.problem(), is(409, "secret_not_set"));
    assert!(missing.body.contains("kapell secret set db --domain d"), "{}", missing.body);
    let secrets = ledger.secrets(&key()).unwrap();
    for name in ["db", "not-asked-for"] {
        secrets.set(&"d".into(), &name.into(), &Secret::new(SECRET)).await.unwrap();
    }
    let given = ask(host.at(), Some(&one), take, "", &holder("web")).await;
    assert_eq!(given.json(), json!([{"name": "db", "value": SECRET}]));
    let others = ask(host.at(), Some(&one), take, "", &holder("other")).await;
    assert_eq!(others.problem(), is(409, "not_placed"));
    let as_two =
        ask(host.at(), Some(&one), "POST /v1/cells/two/secrets", "", &holder("other")).await;
    assert_eq!(as_two.problem(), is(403, "forbidden"));
    desk.task(task("t", kapell_core::board::TaskState::Running));
    let wanted = json!({"task": {"task_guid": "t", "instance_guid": "i"}}).to_string();
    assert_eq!(
        ask(host.at(), Some(&one), take, "", &wanted).await.problem(),
        is(409, "not_placed")
    );
}

#[tokio::test]
async fn secrets_are_set_listed_and_removed_and_never_shown() {
    let (host, ..) = leader().await;
    let at = host.at();
    let body = format!(r#"{{"value":"{SECRET}"}}"#);
    for version in 1..3 {
        let set = ask(at, None, "PUT /v1/secrets/d/db", &bearer(), &body).await;
        let set_json = set.json();
        assert_eq!((set.status, &set_json["version"]), (200, &json!(version)), "{}", set.body);
        assert!(!set.body.contains(SECRET), "{}", set.body);
    }
    let listed = ask(at, None, "GET /v1/secrets?domain=d", &bearer(), "").await;
    assert_eq!(
        (listed.json()[0]["name"].as_str(), listed.json()[0]["domain"].as_str()),
        (Some("db"), Some("d"))
    );
    assert!(!listed.body.contains(SECRET), "{}", listed.body);
    let none = ask(at, None, "GET /v1/secrets?domain=e", &bearer(), "").await;
    assert_eq!(none.json(), json!([]));
    assert_eq!(ask(at, None, "GET /v1/secrets/d/db", &bearer(), "").await.status, 405);
    assert_eq!(ask(at, None, "DELETE /v1/secrets/d/db", &bearer(), "").await.status, 204);
    let gone = ask(at, None, "DELETE /v1/secrets/d/db", &bearer(), "").await;
    assert_eq!(gone.problem(), is(404, "not_found"));
    let bad = ask(at, None, "PUT /v1/secrets/d/a.b", &bearer(), r#"{"value":""}"#).await;
    assert_eq!(bad.problem(), is(422, "invalid"));
    assert_eq!(bad.json()["details"]["problems"].as_array().unwrap().len(), 2, "{}", bad.body);
    let large = format!(r#"{{"value":"{}"}}"#, "x".repeat(kapell_core::secret::LARGEST));
    assert_eq!(ask(at, None, "PUT /v1/secrets/d/db", &bearer(), &large).await.status, 200);
}
