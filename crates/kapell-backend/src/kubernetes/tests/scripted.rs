//! A server that gives the answers that it was told, one a connection.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use kapell_core::kubernetes::{Access, Cluster, Job, Pace};
use serde_json::{Value as Json, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::kubernetes::{Calls, Client, Created, Event, watch};

const PATIENCE: Duration = Duration::from_secs(20);

enum Answer {
    Says(u16, String),
    HangsUp,
}

struct Server {
    address: String,
    seen: Arc<Mutex<Vec<String>>>,
    client: Client,
    _tasks: JoinSet<()>,
}

impl Server {
    async fn new(answers: Vec<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let mut tasks = JoinSet::new();
        tasks.spawn(serve(listener, answers, Arc::clone(&seen)));
        let address = format!("http://{address}");
        let pace = Pace { calls_per_second: 1_000, patience: Duration::from_secs(5) };
        let client = client(&address, pace).await;
        Self { address, seen, client, _tasks: tasks }
    }

    /// One more, at its own pace.
    async fn client_with(&self, pace: Pace) -> Client {
        client(&self.address, pace).await
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

async fn client(server: &str, pace: Pace) -> Client {
    let dir = tempfile::tempdir().unwrap();
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "it",
        "clusters": [{"name": "it", "cluster": {"server": server}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        "users": [{"name": "it", "user": {}}],
    });
    let path = dir.path().join("kubeconfig");
    std::fs::write(&path, config.to_string()).unwrap();
    let access = Access::Kubeconfig { path, context: None };
    Client::open("it", &Cluster { pace, ..Cluster::new(access) }).await.unwrap()
}

/// Without an answer left it says nothing, and does not hang up.
async fn serve(listener: TcpListener, answers: Vec<Answer>, seen: Arc<Mutex<Vec<String>>>) {
    let mut held = Vec::new();
    let mut answers = answers.into_iter();
    while let Ok((mut stream, _)) = listener.accept().await {
        let line = request(&mut stream).await;
        seen.lock().unwrap().push(line);
        match answers.next() {
            Some(Answer::Says(code, body)) => {
                let lines = format!(
                    "HTTP/1.1 {code} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                    body.len()
                );
                stream.write_all(lines.as_bytes()).await.unwrap();
                stream.write_all(body.as_bytes()).await.unwrap();
            }
            Some(Answer::HangsUp) => {}
            None => held.push(stream),
        }
    }
}

/// The first line of a request, all of which is read.
async fn request(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    let mut bytes = [0; 4096];
    loop {
        let count = stream.read(&mut bytes).await.unwrap();
        text.push_str(&String::from_utf8_lossy(&bytes[..count]));
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        if count == 0 || body.len() >= length.map_or(0, |it| it.parse().unwrap()) {
            return head.lines().next().unwrap_or_default().to_owned();
        }
    }
}

fn ok(body: &Json) -> Answer {
    Answer::Says(200, body.to_string())
}

fn status(code: u16, reason: &str) -> Answer {
    let body = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": "so it is",
    });
    Answer::Says(code, body.to_string())
}

fn job(name: &str, version: &str) -> Json {
    json!({"metadata": {"name": name, "resourceVersion": version}})
}

fn events(all: &[(&str, Json)]) -> Answer {
    let line =
        |(kind, object): &(&str, Json)| format!("{}\n", json!({"type": kind, "object": object}));
    Answer::Says(200, all.iter().map(line).collect())
}

#[tokio::test]
async fn a_watch_goes_on_where_it_was_and_lists_again_when_that_is_too_long_ago() {
    let list = |version: &str, items: Json| {
        ok(&json!({"metadata": {"resourceVersion": version}, "items": items}))
    };
    let mark =
        json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"resourceVersion": "15"}});
    let stale = json!({"kind": "Status", "status": "Failure", "code": 410, "reason": "Expired", "message": "too old"});
    let server = Server::new(vec![
        list("10", json!([job("a", "9")])),
        events(&[("ADDED", job("b", "11")), ("BOOKMARK", mark)]),
        events(&[("DELETED", job("a", "16"))]),
        events(&[("ERROR", stale)]),
        list("20", json!([job("b", "11")])),
    ])
    .await;
    let (tell, mut told) = mpsc::unbounded_channel();
    let mut tasks = JoinSet::new();
    let names =
        |jobs: Vec<Job>| -> Vec<String> { jobs.into_iter().map(|job| job.metadata.name).collect() };
    tasks.spawn(watch::<Job>(
        server.client.clone(),
        "x".to_owned(),
        "a/b=c".to_owned(),
        move |event| {
            let text = match event {
                Event::All(jobs) => format!("all {}", names(jobs).join(" ")),
                Event::Seen(job) => format!("seen {}", job.metadata.name),
                Event::Gone(job) => format!("gone {}", job.metadata.name),
                Event::Blind(error) => format!("blind {error}"),
            };
            drop(tell.send(text));
        },
    ));
    for want in ["all a", "seen b", "gone a", "all b"] {
        assert_eq!(timeout(PATIENCE, told.recv()).await.unwrap().unwrap(), want);
    }
    let seen = server.seen();
    let versions: Vec<&str> = seen
        .iter()
        .map(|line| {
            line.split("resourceVersion=").nth(1).map_or("list", |it| it.split(' ').next().unwrap())
        })
        .collect();
    assert_eq!(versions[..5], ["list", "10", "15", "16", "list"]);
    assert!(seen.iter().all(|line| line.contains("labelSelector=a%2Fb%3Dc")), "{seen:?}");
}

#[tokio::test]
async fn what_may_come_to_something_is_tried_again_and_counted() {
    let server = Server::new(vec![
        status(503, "ServiceUnavailable"),
        status(429, "TooManyRequests"),
        ok(&job("a", "1")),
    ])
    .await;
    let calls = Calls::default();
    let made = server.client.create("x", "a", &json!({}), &calls).await.unwrap();
    assert!(matches!(made, Created::Made(job) if job.metadata.name == "a"));
    assert_eq!(calls.count(), 3);
}

#[tokio::test]
async fn a_launch_without_an_answer_finds_what_it_made() {
    let server =
        Server::new(vec![Answer::HangsUp, status(409, "AlreadyExists"), ok(&job("a", "1"))]).await;
    let calls = Calls::default();
    let made = server.client.create("x", "a", &json!({}), &calls).await.unwrap();
    assert!(matches!(made, Created::Exists(job) if job.metadata.name == "a"));
    assert!(
        server.seen()[2].starts_with("GET /apis/batch/v1/namespaces/x/jobs/a"),
        "{:?}",
        server.seen()
    );
}

#[tokio::test]
async fn what_stays_refused_is_not_tried_again() {
    for (code, reason) in [(403, "Forbidden"), (422, "Invalid"), (401, "Unauthorized")] {
        let server = Server::new(vec![status(code, reason)]).await;
        let calls = Calls::default();
        let error = server.client.create("x", "a", &json!({}), &calls).await.unwrap_err();
        assert_eq!((calls.count(), error.is_in_doubt()), (1, false), "{error}");
        assert!(error.to_string().contains("so it is"), "{error}");
    }
}

#[tokio::test]
async fn a_refusal_does_not_say_what_became_of_a_try_before_it() {
    let server = Server::new(vec![Answer::HangsUp, status(403, "Forbidden")]).await;
    let error = server.client.create("x", "a", &json!({}), &Calls::default()).await.unwrap_err();
    assert!(error.is_in_doubt(), "the first one may have made it: {error}");
    assert!(error.to_string().contains("so it is"), "{error}");
    // Something is there that may not be read.
    let server = Server::new(vec![status(409, "AlreadyExists"), status(403, "Forbidden")]).await;
    let error = server.client.create("x", "a", &json!({}), &Calls::default()).await.unwrap_err();
    assert!(error.is_in_doubt(), "{error}");
    // What is gone is gone.
    let server = Server::new(vec![Answer::HangsUp, status(404, "NotFound")]).await;
    assert!(!server.client.delete_job("x", "a", &Calls::default()).await.unwrap());
}

#[tokio::test]
async fn the_wait_for_a_turn_uses_up_no_patience() {
    let server = Server::new(vec![status(503, "ServiceUnavailable"), ok(&job("a", "1"))]).await;
    let pace = Pace { calls_per_second: 2, patience: Duration::from_millis(400) };
    let client = server.client_with(pace).await;
    client.limiter.pass().await;
    let asked = tokio::time::Instant::now();
    client.create("x", "a", &json!({}), &Calls::default()).await.unwrap();
    assert!(asked.elapsed() > Duration::from_millis(500), "{:?}", asked.elapsed());
}
