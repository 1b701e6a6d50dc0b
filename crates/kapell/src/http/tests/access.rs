//! Who may do what, asked over HTTP.

use std::sync::Arc;

use kapell_core::access::{How, Purpose};
use kapell_core::board::{ActualState, Domain, TaskState};
use kapell_node::access::Wanted;
use kapell_node::system::{SystemClock, SystemIds};
use kapell_store::mem::Mem;

use super::desk::{lrp, task};
use super::*;

/// A host with a board of two domains, and whoever knows its tokens.
struct Scene {
    host: Host,
    desk: Arc<FakeDesk>,
    ledger: Arc<Ledger>,
}

impl Scene {
    async fn new() -> Self {
        let (host, desk) = Host::with_board().await;
        let ledger = new_ledger().await;
        *host.face.ledger.lock().unwrap() = Some(Arc::clone(&ledger));
        for domain in ["a", "b"] {
            let guid = format!("web-{domain}");
            desk.desire(&format!(
                r#"{{"process_guid":"{guid}","domain":"{domain}","instances":1,"action":{{"run":{{"path":"true"}}}}}}"#
            ));
            let mut instance = lrp(&guid, 0, ActualState::Running, Some("c"));
            instance.domain = domain.into();
            desk.instance(instance);
            let mut one = task(&format!("task-{domain}"), TaskState::Running);
            one.definition.domain = domain.into();
            desk.task(one);
        }
        Self { host, desk, ledger }
    }

    async fn token(&self, purpose: Purpose, domains: &[&str]) -> String {
        let ttl = Duration::from_secs(60);
        let set = domains.iter().map(|&it| Domain::from(it)).collect();
        let domains = (!domains.is_empty()).then_some(set);
        let name = "ann".to_owned();
        let wanted = Wanted { purpose, domains, name, ttl, cell_id: None };
        key().sign(&self.ledger.issue(wanted).await.unwrap().claims)
    }

    async fn ask(&self, token: &str, method: &str, path: &str, body: &str) -> Reply {
        ask(self.host.at(), token, method, path, body).await
    }

    async fn get(&self, token: &str, path: &str) -> Reply {
        self.ask(token, "GET", path, "").await
    }
}

async fn new_ledger() -> Arc<Ledger> {
    let store = Arc::new(Mem::new(Arc::new(SystemClock)));
    Arc::new(Ledger::open(store, Arc::new(SystemClock), Arc::new(SystemIds)).await.unwrap())
}

pub(super) async fn ask(
    at: SocketAddr,
    token: &str,
    method: &str,
    path: &str,
    body: &str,
) -> Reply {
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: {at}\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    send(at, &request).await
}

fn forbidden() -> (u16, String) {
    (403, "forbidden".to_owned())
}

fn not_found() -> (u16, String) {
    (404, "not_found".to_owned())
}

/// The values of a field in a list.
fn names(reply: &Reply, field: &str) -> Vec<String> {
    assert_eq!(reply.status, 200, "{}", reply.body);
    let json = reply.json();
    let items = json.as_array().unwrap().iter();
    items.map(|it| it[field].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_reader_sees_its_domains_only() {
    let scene = Scene::new().await;
    let reader = scene.token(Purpose::Reader, &["a"]).await;
    for (path, field, want) in [
        ("/v1/desired-lrps", "process_guid", vec!["web-a"]),
        ("/v1/desired-lrps?domain=b", "process_guid", vec![]),
        ("/v1/actual-lrps", "process_guid", vec!["web-a"]),
        ("/v1/actual-lrps?process_guid=web-b", "process_guid", vec![]),
        ("/v1/actual-lrps?cell_id=c", "process_guid", vec!["web-a"]),
        ("/v1/tasks", "task_guid", vec!["task-a"]),
        ("/v1/tasks?domain=b", "task_guid", vec![]),
    ] {
        assert_eq!(names(&scene.get(&reader, path).await, field), want, "{path}");
    }
    for path in [
        "/v1/desired-lrps/web-X",
        "/v1/tasks/task-X",
        "/v1/endpoints/web-X",
        "/v1/explain/lrp/web-X",
        "/v1/explain/lrp/web-X/0",
        "/v1/explain/task/task-X",
    ] {
        assert_eq!(scene.get(&reader, &path.replace('X', "a")).await.status, 200, "{path}");
        // What is in another domain reads as what is nowhere.
        let other = scene.get(&reader, &path.replace('X', "b")).await;
        let nowhere = scene.get(&reader, &path.replace('X', "c")).await;
        assert_eq!(other.problem(), not_found(), "{path}");
        assert_eq!(other.body.replace("-b", "-c"), nowhere.body, "{path}");
    }
    for path in ["/v1/logs/lrp/web-b/0", "/v1/logs/task/task-b"] {
        assert_eq!(scene.get(&reader, path).await.problem(), not_found(), "{path}");
    }
    for path in ["/v1/cells", "/v1/explain/cell/c", "/metrics", "/v1/tokens", "/"] {
        assert_eq!(scene.get(&reader, path).await.problem(), forbidden(), "{path}");
    }
    for path in ["/healthz", "/leader", "/v1/openapi.json"] {
        assert_eq!(scene.get(&reader, path).await.status, 200, "{path}");
    }
    let all = scene.token(Purpose::Reader, &[]).await;
    assert_eq!(names(&scene.get(&all, "/v1/tasks").await, "task_guid"), ["task-a", "task-b"]);
    assert_eq!(scene.get(&all, "/v1/cells").await.status, 200);
    assert_eq!(scene.get(&all, "/").await.status, 200);
}

#[tokio::test]
async fn a_reader_changes_nothing() {
    let scene = Scene::new().await;
    for reader in
        [scene.token(Purpose::Reader, &["a"]).await, scene.token(Purpose::Reader, &[]).await]
    {
        for (method, path) in super::super::v1::routes() {
            if method == "GET" {
                continue;
            }
            let path = path.replace("{process_guid}", "web-a").replace("{task_guid}", "task-a");
            let path = path.replace("{domain}", "a").replace("{cell_id}", "c");
            let path = path.replace("{token_id}", "0000000000000001");
            let reply = scene.ask(&reader, method, &path, "{}").await;
            assert_eq!(reply.problem(), forbidden(), "{method} {path}");
        }
    }
    assert!(scene.desk.take_asked().is_empty());
}

#[tokio::test]
async fn an_operator_of_a_domain_changes_that_one_only() {
    let scene = Scene::new().await;
    let operator = scene.token(Purpose::Operator, &["a"]).await;
    let run = r#""action":{"run":{"path":"true"}}"#;
    for domain in ["a", "b"] {
        let (want, refused) = if domain == "a" { (true, 0) } else { (false, 403) };
        for (path, body) in [
            (
                "/v1/desired-lrps",
                format!(r#"{{"process_guid":"new","domain":"{domain}","instances":1,{run}}}"#),
            ),
            ("/v1/tasks", format!(r#"{{"task_guid":"new","domain":"{domain}",{run}}}"#)),
            (
                "/v1/plan",
                format!(
                    r#"{{"lrps":[{{"process_guid":"new","domain":"{domain}","instances":1,{run}}}],"tasks":[]}}"#
                ),
            ),
        ] {
            let reply = scene.ask(&operator, "POST", path, &body).await;
            assert_eq!(reply.status < 300, want, "{path}: {}", reply.body);
            assert!(want || reply.status == refused, "{path}: {}", reply.body);
        }
        let reply = scene.ask(&operator, "PUT", &format!("/v1/domains/{domain}"), "{}").await;
        assert_eq!(reply.status < 300, want, "{}", reply.body);
    }
    scene.desk.take_asked();
    for (method, path) in [
        ("PATCH", "/v1/desired-lrps/web-b"),
        ("DELETE", "/v1/desired-lrps/web-b"),
        ("POST", "/v1/tasks/task-b/cancel"),
        ("DELETE", "/v1/tasks/task-b"),
    ] {
        let other = scene.ask(&operator, method, path, r#"{"instances":2}"#).await;
        assert_eq!(other.problem(), not_found(), "{method} {path}");
        assert!(scene.desk.take_asked().is_empty(), "{method} {path}");
        let own = path.replace("-b", "-a");
        let own = scene.ask(&operator, method, &own, r#"{"instances":2}"#).await;
        assert!(own.status < 300, "{method} {path}: {}", own.body);
        assert!(!scene.desk.take_asked().is_empty());
    }
    for (method, path) in [
        ("POST", "/v1/cells/c/evacuate"),
        ("PUT", "/v1/cells/c"),
        ("DELETE", "/v1/cells/c"),
        ("POST", "/v1/cells/c/reports"),
        ("POST", "/v1/cells/c/records"),
        ("POST", "/v1/tokens"),
    ] {
        let reply = scene.ask(&operator, method, path, "{}").await;
        assert_eq!(reply.problem(), forbidden(), "{method} {path}");
        assert!(reply.body.contains("that needs all domains"), "{}", reply.body);
    }
}

#[tokio::test]
async fn events_of_other_domains_are_not_told() {
    use kapell_core::board::{Change, Event, Freshness};
    use kapell_node::board::{EventId, Next};
    let scene = Scene::new().await;
    let domain = |name: &str| {
        let freshness = Freshness { domain: name.into(), expires_at: None, since: None };
        Event::Domain(Change { before: None, after: Some(Box::new(freshness)) })
    };
    let cell = Event::Cell { cell_id: "c".into(), present: true };
    let all = [domain("b"), cell, domain("a")];
    let number = |number| EventId { epoch: Epoch(7), number };
    *scene.desk.events.lock().unwrap() =
        all.into_iter().zip(1..).map(|(it, at)| Next::Event(number(at), Arc::new(it))).collect();
    let reader = scene.token(Purpose::Reader, &["a"]).await;
    let mut stream = TcpStream::connect(scene.host.at()).await.unwrap();
    let request = format!(
        "GET /v1/events?after=7-0 HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {reader}\r\n\r\n",
        scene.host.at()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let told = until(&mut stream, "id: 7-3").await;
    assert!(!told.contains("id: 7-1") && !told.contains("id: 7-2"), "{told}");
}

#[tokio::test]
async fn what_does_not_count_is_told_so() {
    let scene = Scene::new().await;
    let token = scene.token(Purpose::Operator, &[]).await;
    assert_eq!(scene.get(&token, "/v1/tasks").await.status, 200);
    let listed = scene.get(&token, "/v1/tokens").await.json();
    let id = listed[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(scene.ask(TOKEN, "DELETE", &format!("/v1/tokens/{id}"), "").await.status, 204);
    let refused = scene.get(&token, "/v1/tasks").await;
    assert_eq!(refused.problem(), (401, "token_revoked".to_owned()));
    assert!(refused.has("www-authenticate: bearer realm=\"kapell\", error=\"invalid_token\""));
    assert_eq!(scene.get(&token, "/healthz").await.problem(), (401, "token_revoked".to_owned()));
    // Again is no harm, and what never was is not there.
    assert_eq!(scene.ask(TOKEN, "DELETE", &format!("/v1/tokens/{id}"), "").await.status, 204);
    let nothing = scene.ask(TOKEN, "DELETE", "/v1/tokens/00000000000000ff", "").await;
    assert_eq!(nothing.problem(), not_found());
    let claims = new_ledger().await;
    let ttl = Duration::from_secs(60);
    let wanted =
        Wanted { purpose: Purpose::Reader, domains: None, name: String::new(), ttl, cell_id: None };
    let foreign = key().sign(&claims.issue(wanted).await.unwrap().claims);
    assert_eq!(scene.get(&foreign, "/v1/tasks").await.problem(), (401, "token_unknown".to_owned()));
    let mut forged = token.clone();
    forged.truncate(token.len() - 4);
    assert_eq!(scene.get(&forged, "/v1/tasks").await.problem(), (401, "unauthorized".to_owned()));
    let joins = scene.token(Purpose::CellJoin, &[]).await;
    for path in ["/v1/tasks", "/healthz", "/v1/cells", "/v1/openapi.json"] {
        assert_eq!(scene.get(&joins, path).await.problem(), forbidden(), "{path}");
    }
    let id =
        scene.ledger.list().into_iter().find(|it| it.issued.claims.purpose == Purpose::CellJoin);
    scene.ledger.end(&id.unwrap().issued.claims.id, How::Used("c".into())).await.unwrap();
    assert_eq!(scene.get(&joins, "/v1/tasks").await.problem(), (401, "token_used".to_owned()));
}

#[tokio::test]
async fn a_token_is_made_shown_once_and_listed_without_its_secret() {
    let scene = Scene::new().await;
    let body = r#"{"role":"reader","domains":["a"],"name":"ci","ttl_ms":60000}"#;
    let made = scene.ask(TOKEN, "POST", "/v1/tokens", body).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let made = made.json();
    let token = made["token"].as_str().unwrap();
    assert_eq!(names(&scene.get(token, "/v1/tasks").await, "task_guid"), ["task-a"]);
    let listed = scene.get(TOKEN, "/v1/tokens").await;
    assert!(!listed.body.contains(token), "{}", listed.body);
    let json = listed.json();
    for (field, want) in [("role", "reader"), ("name", "ci"), ("state", "valid")] {
        assert_eq!(json[0][field], want);
    }
    for (body, code) in [
        (r#"{"role":"reader","ttl_ms":0}"#, 422),
        (r#"{"role":"reader","domains":[],"ttl_ms":1000}"#, 422),
        (r#"{"role":"host","ttl_ms":1000}"#, 400),
        (r#"{"role":"reader","ttl_ms":1000,"more":1}"#, 400),
    ] {
        assert_eq!(scene.ask(TOKEN, "POST", "/v1/tokens", body).await.status, code, "{body}");
    }
}

#[tokio::test]
async fn a_standby_passes_signed_tokens_on_and_trusts_none_itself() {
    let scene = Scene::new().await;
    let standby = Host::behind(&scene.host.at()).await;
    let reader = scene.token(Purpose::Reader, &["a"]).await;
    let reply = ask(standby.at(), &reader, "GET", "/v1/tasks", "").await;
    assert_eq!(names(&reply, "task_guid"), ["task-a"]);
    for path in ["/healthz", "/leader", "/metrics"] {
        let reply = ask(standby.at(), &reader, "GET", path, "").await;
        assert_eq!(reply.problem(), (403, "ask_the_leader".to_owned()), "{path}");
        assert_eq!(ask(standby.at(), TOKEN, "GET", path, "").await.status, 200, "{path}");
    }
    let id = scene.ledger.list()[0].issued.claims.id.clone();
    scene.ledger.end(&id, How::Revoked).await.unwrap();
    let reply = ask(standby.at(), &reader, "GET", "/v1/tasks", "").await;
    assert_eq!(reply.problem(), (401, "token_revoked".to_owned()));
}

#[tokio::test]
async fn until_the_leader_has_read_them_no_signed_token_counts() {
    let scene = Scene::new().await;
    let reader = scene.token(Purpose::Reader, &[]).await;
    *scene.host.face.ledger.lock().unwrap() = None;
    let reply = scene.get(&reader, "/v1/tasks").await;
    assert_eq!(reply.problem(), (503, "starting".to_owned()));
    assert_eq!(scene.get(TOKEN, "/v1/tasks").await.status, 200);
    assert_eq!(scene.get(TOKEN, "/v1/tokens").await.problem(), (503, "starting".to_owned()));
}
