//! Who changed what, noted over HTTP.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering;

use kapell_api::identity::Identity;
use kapell_core::access::{How, Purpose};
use kapell_core::board::{ActualState, TaskState};
use kapell_core::exec::{Kind as Frame, encode};
use kapell_core::run::RunState;
use kapell_core::secret::Secret;
use kapell_node::access::{Wanted, request};
use kapell_node::audit::{Journal, Limits as Bounds, Real};
use kapell_node::system::{SystemClock, SystemIds};
use kapell_store::mem::Mem;

use super::super::bind_cell;
use super::super::v1::{noted, routes};
use super::certificates::{ask, fresh, presence, secure};
use super::desk::{lrp, run, task};
use super::logs::FakeRep;
use super::*;

const BOUNDS: Bounds = Bounds { file_bytes: 1 << 20, files: 4 };
const SECRET: &str = "s3cret-of-somebody";

/// A leader that notes, reached by TLS.
struct Scene {
    host: Host,
    desk: Arc<FakeDesk>,
    ledger: Arc<Ledger>,
    dir: tempfile::TempDir,
    /// One that answers.
    _cell: Server,
}

/// Where a program is asked for, how, and what the record has to have.
fn exec(place: &str, of: Vec<About>) -> (String, String, Vec<About>) {
    let wanted = format!(r#"{{"path":"cat","env":[{{"name":"P","value":"{SECRET}"}}]}}"#);
    let body = String::from_utf8(encode(Frame::Start, wanted.as_bytes())).unwrap();
    (place.to_owned(), body, [of, vec![("program", "cat".to_owned())]].concat())
}

/// A name that a record has to have.
type About = (&'static str, String);

/// How a route is asked: by whom, where, and with what.
struct Deed {
    line: String,
    body: String,
    token: Option<String>,
    certificate: Option<Identity>,
    /// The names that the record has to have.
    about: Vec<About>,
}

impl Scene {
    async fn new() -> Self {
        Self::below("audit").await
    }

    /// A host that cannot write what it is to note.
    async fn without_disk() -> Self {
        Self::below("file/audit").await
    }

    async fn below(place: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("file"), "").unwrap();
        let at = dir.path().join(place);
        let clock = Arc::new(SystemClock);
        let journal = Journal::open(at, BOUNDS, Box::new(Real), clock, &SystemIds).unwrap();
        let listen = Listen { audit: Some(Arc::new(journal)), ..secure() };
        let host = Host::open(0xa, LIMITS, listen).await.unwrap();
        host.face.follow(0xa, &format!("https://{}", host.at()));
        let desk = FakeDesk::new();
        *host.face.board.lock().unwrap() = Some(Arc::clone(&desk));
        desk.desire(
            r#"{"process_guid":"web","domain":"a","instances":1,"action":{"run":{"path":"true"}}}"#,
        );
        let mut once = task("once", TaskState::Running);
        once.cell_id = Some("answers".into());
        desk.task(once);
        desk.job(r#"{"job_id":"j","domain":"d","schedule":"@hourly","task":{"action":{"run":{"path":"true"}}}}"#);
        desk.run(run("j:1", RunState::Running, 1_000));
        desk.run(run("j:2", RunState::Failed, 2_000));
        desk.cell_at("c", "https://127.0.0.1:1");
        let rep = FakeRep::new();
        rep.live.store(true, Ordering::SeqCst);
        let cell = bind_cell(super::listen("127.0.0.1:0"), rep).await.unwrap();
        desk.cell_at("answers", &format!("http://{}", cell.local_addr()));
        desk.instance(lrp("web", 0, ActualState::Running, Some("answers")));
        let store = Arc::new(Mem::new(Arc::new(SystemClock)));
        let ledger = Ledger::open(store, Arc::new(SystemClock), Arc::new(SystemIds)).await;
        let ledger = Arc::new(ledger.unwrap());
        *host.face.ledger.lock().unwrap() = Some(Arc::clone(&ledger));
        Self { host, desk, ledger, dir, _cell: cell }
    }

    /// A signed token, and its id.
    async fn token(&self, purpose: Purpose, domain: Option<&str>) -> (String, String) {
        let domains = domain.map(|it| [it.into()].into());
        let (name, ttl) = ("ann".to_owned(), Duration::from_secs(60));
        let wanted = Wanted { purpose, domains, name, ttl, cell_id: None };
        let claims = self.ledger.issue(wanted).await.unwrap().claims;
        (key().sign(&claims), claims.id.to_string())
    }

    /// How a route is asked so that something is changed. A new route has to be put here.
    async fn deed(&self, method: &str, path: &str) -> Deed {
        let run = format!(
            r#""domain":"a","action":{{"run":{{"path":"true","env":[{{"name":"P","value":"{SECRET}"}}]}}}}"#
        );
        let csr = serde_json::json!({ "csr": request().unwrap().1 }).to_string();
        let lrp = ("process_guid", "web".to_owned());
        let (once, a) = (("task_guid", "once".to_owned()), ("domain", "a".to_owned()));
        let d = ("domain", "d".to_owned());
        let plain = String::new;
        let mut deed = Deed {
            line: String::new(),
            body: String::new(),
            token: Some(TOKEN.to_owned()),
            certificate: None,
            about: Vec::new(),
        };
        let (place, body, about) = match (method, path) {
            ("PUT", "/v1/domains/{domain}") => ("/v1/domains/a".to_owned(), plain(), vec![a]),
            ("POST", "/v1/desired-lrps") => {
                let body = format!(r#"{{"process_guid":"new","instances":1,{run}}}"#);
                (path.to_owned(), body, vec![("process_guid", "new".to_owned()), a])
            }
            ("PATCH", "/v1/desired-lrps/{process_guid}") => {
                let body = r#"{"instances":2}"#.to_owned();
                ("/v1/desired-lrps/web".to_owned(), body, vec![lrp, a])
            }
            ("DELETE", "/v1/desired-lrps/{process_guid}") => {
                ("/v1/desired-lrps/web".to_owned(), plain(), vec![lrp, a])
            }
            ("POST", "/v1/tasks") => {
                let body = format!(r#"{{"task_guid":"new",{run}}}"#);
                (path.to_owned(), body, vec![("task_guid", "new".to_owned()), a])
            }
            ("DELETE", "/v1/tasks/{task_guid}") => {
                ("/v1/tasks/once".to_owned(), plain(), vec![once, d])
            }
            ("POST", "/v1/tasks/{task_guid}/cancel") => {
                ("/v1/tasks/once/cancel".to_owned(), plain(), vec![once, d])
            }
            ("POST", "/v1/cells/{cell_id}/evacuate") => {
                let about = vec![("cell_id", "c".to_owned())];
                ("/v1/cells/c/evacuate".to_owned(), plain(), about)
            }
            ("POST", "/v1/cells/{cell_id}/join") => {
                deed.token = Some(self.token(Purpose::CellJoin, None).await.0);
                ("/v1/cells/n/join".to_owned(), csr, vec![("cell_id", "n".to_owned())])
            }
            ("POST", "/v1/cells/{cell_id}/certificate") => {
                (deed.token, deed.certificate) = (None, Some(fresh("c")));
                ("/v1/cells/c/certificate".to_owned(), csr, vec![("cell_id", "c".to_owned())])
            }
            ("POST", "/v1/actual-lrps/{process_guid}/{index}/exec") => {
                exec("/v1/actual-lrps/web/0/exec", vec![lrp, a])
            }
            ("POST", "/v1/tasks/{task_guid}/exec") => exec("/v1/tasks/once/exec", vec![once, d]),
            ("POST", "/v1/tokens") => {
                let body = r#"{"role":"reader","domains":["a"],"name":"ci","ttl_ms":60000}"#;
                let about = [("token_role", "reader"), ("token_name", "ci"), ("domains", "a")];
                let about = about.map(|(what, name)| (what, name.to_owned())).to_vec();
                (path.to_owned(), body.to_owned(), about)
            }
            ("DELETE", "/v1/tokens/{token_id}") => {
                let (_, id) = self.token(Purpose::Reader, None).await;
                (format!("/v1/tokens/{id}"), plain(), vec![("token_id", id)])
            }
            _ => return self.secret_deed(method, path).await,
        };
        Deed { line: format!("{method} {place}"), body, about, ..deed }
    }

    async fn secret_deed(&self, method: &str, path: &str) -> Deed {
        if let Some(deed) = job_deed(method, path) {
            return deed;
        }
        let body = match (method, path) {
            ("PUT", "/v1/secrets/{domain}/{secret}") => format!(r#"{{"value":"{SECRET}"}}"#),
            ("DELETE", "/v1/secrets/{domain}/{secret}") => {
                let secrets = self.ledger.secrets(&key()).unwrap();
                secrets.set(&"a".into(), &"db".into(), &Secret::new(SECRET)).await.unwrap();
                String::new()
            }
            _ => panic!("how is {method} {path} asked?"),
        };
        Deed {
            line: format!("{method} /v1/secrets/a/db"),
            body,
            token: Some(TOKEN.to_owned()),
            certificate: None,
            about: vec![("domain", "a".to_owned()), ("secret", "db".to_owned())],
        }
    }

    async fn perform(&self, deed: &Deed, token: Option<&str>) -> Reply {
        let bearer = token.or(deed.token.as_deref());
        let certificate = deed.certificate.as_ref().filter(|_| bearer.is_none());
        let mut more = "x-request-id: r-1\r\n".to_owned();
        more.extend(bearer.map(|token| format!("authorization: Bearer {token}\r\n")));
        ask(self.host.at(), certificate, &deed.line, &more, &deed.body).await
    }

    /// All that was noted.
    async fn records(&self) -> Vec<Value> {
        let more = format!("authorization: Bearer {TOKEN}\r\n");
        let reply = ask(self.host.at(), None, "GET /v1/audit", &more, "").await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        reply.json()["records"].as_array().unwrap().clone()
    }

    fn raw(&self) -> String {
        let read = |path: &Path| fs::read_to_string(path).unwrap();
        let files = fs::read_dir(self.dir.path().join("audit")).unwrap();
        files.map(|it| read(&it.unwrap().path())).collect()
    }
}

/// What is done to a job or a run, if the route is about one.
fn job_deed(method: &str, path: &str) -> Option<Deed> {
    let token = Some(TOKEN.to_owned());
    let deed = |line, body, about| Deed { line, body, token, certificate: None, about };
    if (method, path) == ("POST", "/v1/jobs") {
        let body = format!(
            r#"{{"job_id":"new","domain":"a","command":{{"command":"true","env":[{{"name":"P","value":"{SECRET}"}}]}}}}"#
        );
        let about = vec![("job_id", "new".to_owned()), ("domain", "a".to_owned())];
        return Some(deed(format!("POST {path}"), body, about));
    }
    let (name, id) = match path {
        "/v1/runs/{run_id}/cancel" => ("run_id", "j:1"),
        "/v1/runs/{run_id}/retry" => ("run_id", "j:2"),
        path if path.starts_with("/v1/jobs/{job_id}") => ("job_id", "j"),
        _ => return None,
    };
    let body = if path.ends_with("/backfill") { r#"{"from":1,"to":7200000}"# } else { "" };
    let about = vec![(name, id.to_owned()), ("domain", "d".to_owned())];
    let place = path.replace("{job_id}", id).replace("{run_id}", id);
    Some(deed(format!("{method} {place}"), body.to_owned(), about))
}

#[test]
fn all_that_is_sent_is_noted_but_for_what_cells_say() {
    let noted: BTreeSet<_> = noted().collect();
    let sent: BTreeSet<_> = routes().filter(|(method, _)| *method != "GET").collect();
    assert!(noted.is_subset(&sent));
    let others: Vec<_> = sent.difference(&noted).copied().collect();
    assert_eq!(
        others,
        [
            ("DELETE", "/v1/cells/{cell_id}"),
            ("POST", "/v1/cells/{cell_id}/records"),
            ("POST", "/v1/cells/{cell_id}/reports"),
            ("POST", "/v1/cells/{cell_id}/secrets"),
            ("POST", "/v1/plan"),
            ("PUT", "/v1/cells/{cell_id}"),
        ]
    );
}

#[tokio::test]
async fn every_change_leaves_one_record() {
    let scene = Scene::new().await;
    let mut secrets = vec![TOKEN.to_owned(), SECRET.to_owned()];
    for (at, (method, path)) in noted().enumerate() {
        let deed = scene.deed(method, path).await;
        secrets.extend(deed.token.clone());
        let reply = scene.perform(&deed, None).await;
        assert!(reply.status < 300, "{method} {path}: {}", reply.body);
        let records = scene.records().await;
        assert_eq!(records.len(), at + 1, "{method} {path}");
        let record = &records[at];
        assert_eq!(record["outcome"]["status"], reply.status, "{record}");
        assert_eq!(record["request_id"], "r-1", "{record}");
        assert!(record["from"].as_str().unwrap().starts_with("127.0.0.1:"), "{record}");
        for (what, name) in &deed.about {
            assert_eq!(record["about"][what], name.as_str(), "{record}");
        }
        let (role, subject) = match (&deed.certificate, path.ends_with("/join")) {
            (Some(_), _) => ("cell", Value::from("kapell://cell/c")),
            (None, true) => ("joiner", Value::Null),
            (None, false) => ("operator", Value::Null),
        };
        assert_eq!((&record["role"], &record["subject"]), (&role.into(), &subject), "{record}");
        assert_eq!(record["token"].is_string(), role == "joiner", "{record}");
        if path == "/v1/tokens" {
            assert_eq!(record["about"]["token_id"], reply.json()["id"]);
            secrets.push(reply.json()["token"].as_str().unwrap().to_owned());
        }
    }
    let raw = scene.raw();
    for secret in secrets {
        assert!(!raw.contains(&secret), "{secret} is in {raw}");
    }
}

#[tokio::test]
async fn every_change_that_is_refused_leaves_one_record() {
    let scene = Scene::new().await;
    let (reader, id) = scene.token(Purpose::Reader, Some("a")).await;
    for (at, (method, path)) in noted().enumerate() {
        let deed = scene.deed(method, path).await;
        let reply = scene.perform(&deed, Some(&reader)).await;
        assert_eq!(reply.problem(), (403, "forbidden".to_owned()), "{method} {path}");
        let records = scene.records().await;
        assert_eq!(records.len(), at + 1, "{method} {path}");
        let record = &records[at];
        assert_eq!(record["outcome"], serde_json::json!({"status": 403, "code": "forbidden"}));
        assert_eq!((&record["role"], &record["name"]), (&"reader".into(), &"ann".into()));
        assert_eq!(record["token"], id.as_str());
    }
    assert!(scene.desk.take_asked().is_empty());
    // By the scope, and for what it says.
    let before = scene.records().await.len();
    let (operator, _) = scene.token(Purpose::Operator, Some("b")).await;
    let deed = scene.deed("POST", "/v1/tasks").await;
    assert_eq!(scene.perform(&deed, Some(&operator)).await.status, 403);
    let bad = Deed { body: "{".to_owned(), ..deed };
    assert_eq!(scene.perform(&bad, None).await.status, 400);
    let records = scene.records().await;
    assert_eq!(records.len(), before + 2);
    assert_eq!(records[before]["about"]["domain"], "a");
    assert_eq!(records[before + 1]["outcome"]["code"], "bad_json");
}

#[tokio::test]
async fn what_cannot_be_noted_is_not_done() {
    let scene = Scene::without_disk().await;
    for (method, path) in noted() {
        let deed = scene.deed(method, path).await;
        let before = scene.ledger.list();
        let secrets = scene.ledger.secrets(&key()).unwrap();
        let secrets_before = secrets.list().await.unwrap();
        let reply = scene.perform(&deed, None).await;
        assert_eq!(reply.problem(), (503, "audit_unavailable".to_owned()), "{method} {path}");
        assert!(reply.has("retry-after: 1"), "{}", reply.head);
        assert_eq!(scene.ledger.list(), before, "{method} {path}");
        assert_eq!(secrets.list().await.unwrap(), secrets_before, "{method} {path}");
    }
    assert!(scene.desk.take_asked().is_empty());
    assert!(scene.desk.evacuated.lock().unwrap().is_empty());
    // What cells say goes on, and so does reading.
    let more = format!("authorization: Bearer {TOKEN}\r\n");
    let said = ask(scene.host.at(), None, "PUT /v1/cells/e", &more, &presence("e")).await;
    assert_eq!(said.status, 200, "{}", said.body);
    assert_eq!(ask(scene.host.at(), None, "GET /v1/tasks", &more, "").await.status, 200);
}

#[tokio::test]
async fn what_cells_say_and_what_is_only_read_leaves_no_record() {
    let scene = Scene::new().await;
    let one = fresh("one");
    for (line, body) in [
        ("PUT /v1/cells/one", presence("one")),
        ("POST /v1/cells/one/reports", r#"{"reports":[]}"#.to_owned()),
        ("DELETE /v1/cells/one", String::new()),
    ] {
        ask(scene.host.at(), Some(&one), line, "", &body).await;
    }
    let more = format!("authorization: Bearer {TOKEN}\r\n");
    for line in ["GET /v1/tokens", "GET /v1/tasks", "GET /v1/cells", "GET /healthz", "GET /"] {
        assert_eq!(ask(scene.host.at(), None, line, &more, "").await.status, 200, "{line}");
    }
    assert_eq!(scene.records().await, Vec::<Value>::new());
}

#[tokio::test]
async fn only_operators_of_all_domains_read_who_changed_what() {
    let scene = Scene::new().await;
    let get = |token: String, place: &'static str| {
        let at = scene.host.at();
        let more = format!("authorization: Bearer {token}\r\n");
        async move { ask(at, None, &format!("GET /v1/audit{place}"), &more, "").await }
    };
    for (purpose, domain) in
        [(Purpose::Reader, None), (Purpose::Operator, Some("a")), (Purpose::CellJoin, None)]
    {
        let (token, _) = scene.token(purpose, domain).await;
        assert_eq!(get(token, "").await.problem(), (403, "forbidden".to_owned()));
    }
    let (operator, _) = scene.token(Purpose::Operator, None).await;
    assert_eq!(get(operator, "").await.status, 200);
    for place in ["?limit=0", "?limit=10001", "?since=x"] {
        let refused = get(TOKEN.to_owned(), place).await;
        assert_eq!(refused.problem(), (400, "bad_parameter".to_owned()), "{place}");
    }
    let (off, _) = Host::with_board().await;
    assert_eq!(off.get("/v1/audit").await.problem(), (409, "audit_off".to_owned()));
    let made = off.send("POST", "/v1/tokens", "{}").await;
    assert_eq!(made.status, 400, "{}", made.body);
}

#[tokio::test]
async fn refused_credentials_are_counted_and_noted_once_a_peer() {
    let scene = Scene::new().await;
    let (token, id) = scene.token(Purpose::Operator, None).await;
    let id = scene.ledger.list().into_iter().find(|it| it.issued.claims.id.to_string() == id);
    scene.ledger.end(&id.unwrap().issued.claims.id, How::Revoked).await.unwrap();
    // Who shows nothing was refused nothing.
    assert_eq!(ask(scene.host.at(), None, "GET /v1/tasks", "", "").await.status, 401);
    assert_eq!(scene.records().await, Vec::<Value>::new());
    for bearer in [token.as_str(), "nonsense", token.as_str()] {
        let more = format!("authorization: Bearer {bearer}\r\n");
        assert_eq!(ask(scene.host.at(), None, "POST /v1/tasks", &more, "{}").await.status, 401);
    }
    let records = scene.records().await;
    assert_eq!(records.len(), 1, "{records:?}");
    assert_eq!((&records[0]["kind"], &records[0]["from"]), (&"enter".into(), &"127.0.0.1".into()));
    assert_eq!(records[0]["outcome"]["code"], "token_revoked");
}

#[tokio::test]
async fn a_host_is_believed_whom_it_speaks_for_and_nobody_else() {
    let scene = Scene::new().await;
    let standby = Host::open(0xb, LIMITS, secure()).await.unwrap();
    standby.face.follow(0xa, &format!("https://{}", scene.host.at()));
    let deed = scene.deed("PUT", "/v1/domains/{domain}").await;
    let lie = "kapell-client: 9.9.9.9:9\r\nkapell-forwarded-by: x\r\n";
    let bearer = format!("authorization: Bearer {TOKEN}\r\n");
    let told = ask(standby.at(), None, &deed.line, &bearer, "").await;
    assert!(told.status < 300, "{}", told.body);
    let renew = scene.deed("POST", "/v1/cells/{cell_id}/certificate").await;
    let told = ask(standby.at(), renew.certificate.as_ref(), &renew.line, "", &renew.body).await;
    assert!(told.status < 300, "{}", told.body);
    for (certificate, more) in
        [(None, format!("{bearer}{lie}")), (Some(fresh("c")), lie.to_owned())]
    {
        let to = if certificate.is_some() { &renew } else { &deed };
        let body = if certificate.is_some() { renew.body.as_str() } else { "" };
        let told = ask(scene.host.at(), certificate.as_ref(), &to.line, &more, body).await;
        assert!(told.status < 300, "{}", told.body);
    }
    let records = scene.records().await;
    assert_eq!(records.len(), 4);
    for (record, passed_on) in records.iter().zip([true, true, false, false]) {
        assert_eq!(record["via"].is_string(), passed_on, "{record}");
        assert!(record["from"].as_str().unwrap().starts_with("127.0.0.1:"), "{record}");
        assert_ne!(record["from"], record["via"], "{record}");
    }
    assert_eq!(records[1]["subject"], "kapell://cell/c");
}
