//! Clusters that answer as a test says, one answer a connection.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use kapell_backend::kubernetes::{Event, choose_cryptography};
use kapell_core::kubernetes::{Access, Cluster, Clusters, Job, Pace};
use kapell_core::run::{Evidence, START_TIMEOUT, StopKind};
use serde_json::{Value as Json, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::task::JoinSet;

use super::rig::work;
use crate::scheduler::backend::{Attempt, Backend as _, News, Work};
use crate::scheduler::conformance::attempt;
use crate::scheduler::kubernetes::held::{Book, Held, Spot};
use crate::scheduler::kubernetes::{FRESH, KubernetesBackend, Parts, exact};
use crate::system::SystemClock;
use crate::testing::within;

const SOON: Duration = Duration::from_secs(10);
const NAMESPACE: &str = "x";

enum Answer {
    Says(u16, Json),
    HangsUp,
}

/// What is answered to a method and a path with a body. Lists are empty, and watches tell nothing.
type Answers = Arc<dyn Fn(&str, &str) -> Answer + Send + Sync>;

/// One cluster that is there beside others that are not.
struct Stage {
    backend: KubernetesBackend,
    posted: Arc<Mutex<Vec<Json>>>,
    _news: UnboundedReceiver<News>,
    _dir: TempDir,
    _server: JoinSet<()>,
}

impl Stage {
    async fn new(answers: impl Fn(&str, &str) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let posted: Arc<Mutex<Vec<Json>>> = Arc::default();
        let mut server = JoinSet::new();
        server.spawn(serve(listener, Arc::new(answers), Arc::clone(&posted)));
        let dir = tempfile::tempdir().unwrap();
        choose_cryptography();
        let cluster = |name: &str, server: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, kubeconfig(server).to_string()).unwrap();
            let access = Access::Kubeconfig { path, context: None };
            let pace = Pace { patience: Duration::from_secs(1), ..Pace::default() };
            let namespaces = vec![NAMESPACE.to_owned()];
            Cluster { pace, namespaces, ..Cluster::new(access) }
        };
        let missing = Access::Kubeconfig { path: "/no/such/file".into(), context: None };
        let all = [
            ("good".to_owned(), cluster("good", &format!("http://{address}"))),
            ("away".to_owned(), cluster("away", "http://127.0.0.1:1")),
            ("unreadable".to_owned(), Cluster::new(missing)),
        ];
        let (newsroom, news) = mpsc::unbounded_channel();
        let backend = KubernetesBackend::open(Parts {
            clusters: Clusters { first: "good".to_owned(), all: all.into_iter().collect() },
            owner: "ours".to_owned(),
            start_timeout: START_TIMEOUT,
            newsroom,
            clock: Arc::new(SystemClock),
            logs: None,
        });
        Self { backend: backend.await, posted, _news: news, _dir: dir, _server: server }
    }

    /// The Job that was sent last, as a watch tells of it.
    fn job(&self) -> Job {
        let mut job = self.posted.lock().unwrap().last().unwrap().clone();
        job["metadata"]["resourceVersion"] = "7".into();
        serde_json::from_value(job).unwrap()
    }

    fn is_empty(&self) -> bool {
        let inner = &self.backend.inner;
        let book = inner.book();
        inner.teller.all().is_empty()
            && book.all.is_empty()
            && book.refused.is_empty()
            && inner.doors.lock().unwrap().is_empty()
    }
}

fn kubeconfig(server: &str) -> Json {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "it",
        "clusters": [{"name": "it", "cluster": {"server": server}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        "users": [{"name": "it", "user": {}}],
    })
}

async fn serve(listener: TcpListener, answers: Answers, posted: Arc<Mutex<Vec<Json>>>) {
    let mut held = Vec::new();
    while let Ok((mut stream, _)) = listener.accept().await {
        let (line, body) = request(&mut stream).await;
        let mut words = line.split(' ');
        let (method, path) = (words.next().unwrap(), words.next().unwrap_or_default());
        let answer = match method {
            "GET" if path.contains("watch=true") => {
                let begins = "HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\n";
                stream.write_all(begins.as_bytes()).await.unwrap();
                held.push(stream);
                continue;
            }
            "GET" if path.contains("limit=") => {
                Answer::Says(200, json!({"metadata": {"resourceVersion": "1"}, "items": []}))
            }
            "POST" => {
                posted.lock().unwrap().push(serde_json::from_str(&body).unwrap());
                answers(method, path)
            }
            _ => answers(method, path),
        };
        if let Answer::Says(code, body) = answer {
            let body = body.to_string();
            let text = format!(
                "HTTP/1.1 {code} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
            stream.write_all(text.as_bytes()).await.unwrap();
        }
    }
}

/// The first line of a request, and its body.
async fn request(stream: &mut TcpStream) -> (String, String) {
    let mut text = String::new();
    let mut bytes = [0; 4096];
    loop {
        let count = stream.read(&mut bytes).await.unwrap();
        text.push_str(&String::from_utf8_lossy(&bytes[..count]));
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        if count == 0 || body.len() >= length.map_or(0, |it| it.parse().unwrap()) {
            return (head.lines().next().unwrap_or_default().to_owned(), body.to_owned());
        }
    }
}

fn status(code: u16, reason: &str) -> Answer {
    Answer::Says(
        code,
        json!({
            "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": "so it is",
        }),
    )
}

fn on(cluster: &str, attempt: &Attempt) -> Work {
    work(attempt, &json!({"image": "a", "cluster": cluster}))
}

#[tokio::test]
async fn what_was_refused_is_stopped_at_once_whatever_becomes_of_other_clusters() {
    let stage = Stage::new(|_, _| status(403, "Forbidden")).await;
    let backend = &stage.backend;
    for (cluster, want) in [
        ("good", "forbidden by the cluster: so it is"),
        ("away", "the cluster cannot be reached"),
        ("unreadable", "cluster `unreadable` cannot be used: `/no/such/file`"),
        ("none", "is not among the clusters of the settings (away, good, unreadable)"),
    ] {
        let work = on(cluster, &attempt(cluster, 0));
        let why = within("an answer", SOON, backend.launch(&work)).await.unwrap_err();
        assert!(why.contains(want), "{why}");
        let place = backend.place_of(&work.definition);
        let stopped = backend.stop(&work.attempt, &place, StopKind::AtOnce);
        assert_eq!(within("it is stopped", SOON, stopped).await, Ok(()), "{cluster}");
    }
    let tried: Vec<bool> =
        ["good", "away", "none"].map(|it| backend.calls(&attempt(it, 0)) > 0).into();
    assert_eq!(tried, [true, true, false], "what was refused is counted too");
    for cluster in ["good", "away", "unreadable", "none"] {
        backend.release(&attempt(cluster, 0)).await;
    }
    assert!(stage.is_empty());
}

#[tokio::test]
async fn work_is_looked_for_where_it_was_to_be_launched() {
    let stage = Stage::new(|_, _| status(404, "NotFound")).await;
    let backend = &stage.backend;
    let place = |cluster| backend.place_of(&on(cluster, &attempt("it", 0)).definition);
    assert_eq!((place("good"), place("unreadable")), ("good/x".into(), "unreadable/".into()));
    let never = attempt("never", 0);
    let found = within("an answer", SOON, backend.find(&never, &place("good"))).await;
    assert_eq!(found, Evidence::Absent);
    let good = place("good");
    let stopped = backend.stop(&never, &good, StopKind::Graceful);
    assert_eq!(within("an answer", SOON, stopped).await, Ok(()));
    // From here on nothing is waited for that takes its time.
    tokio::time::pause();
    let why = backend.stop(&never, &place("away"), StopKind::Graceful).await.unwrap_err();
    assert!(why.contains("cannot be reached"), "{why}");
    let why = backend.stop(&never, &place("unreadable"), StopKind::Graceful).await.unwrap_err();
    assert!(why.contains("`/no/such/file`"), "{why}");
    assert_eq!(backend.known().await, Ok(Vec::new()), "of the one that can be looked at");
}

#[tokio::test]
async fn what_is_found_is_told_before_all_was_seen() {
    let stage = Stage::new(|_, _| Answer::Says(201, json!({}))).await;
    let backend = &stage.backend;
    let one = attempt("early", 0);
    backend.launch(&on("good", &one)).await.unwrap();
    let (job, tasks) = (stage.job(), Arc::downgrade(&backend.tasks));
    backend.inner.teller.forget(&one);
    let seen = async {
        tokio::task::yield_now().await;
        let spot = Spot { cluster: "good".into(), namespace: NAMESPACE.into() };
        let changed = backend.inner.book().take(&spot, Event::Seen(job));
        backend.inner.told(&changed, true, &tasks);
    };
    // Where it was to be is not known, and some clusters say nothing.
    let found = async { tokio::join!(backend.find(&one, ""), seen).0 };
    assert_eq!(within("an answer", SOON, found).await, Evidence::Launched);
}

#[tokio::test]
async fn nothing_is_kept_of_runs_that_were_released_while_something_was_seen_of_them() {
    type Hook = Box<dyn Fn() + Send + Sync>;
    let meanwhile: Arc<Mutex<Option<Hook>>> = Arc::default();
    let hook = Arc::clone(&meanwhile);
    let stage = Stage::new(move |method, _| {
        if let ("DELETE", Some(hook)) = (method, &*hook.lock().unwrap()) {
            hook();
        }
        Answer::Says(200, json!({}))
    })
    .await;
    for number in 0..5 {
        let one = attempt("gone", number);
        stage.backend.launch(&on("good", &one)).await.unwrap();
        let (inner, tasks) =
            (Arc::clone(&stage.backend.inner), Arc::downgrade(&stage.backend.tasks));
        let (spot, job) =
            (Spot { cluster: "good".into(), namespace: NAMESPACE.into() }, stage.job());
        let sees = move |event: Event<Job>| {
            let changed = inner.book().take(&spot, event);
            inner.told(&changed, true, &tasks);
        };
        sees(Event::Seen(job.clone()));
        let (again, gone) = (sees.clone(), job.clone());
        *meanwhile.lock().unwrap() = Some(Box::new(move || again(Event::Seen(job.clone()))));
        stage.backend.release(&one).await;
        assert_eq!(stage.backend.inner.teller.all(), [], "nothing more is told of it");
        sees(Event::Gone(gone));
    }
    assert!(stage.is_empty());
}

#[tokio::test]
async fn a_launch_in_doubt_is_looked_for_though_a_later_try_was_refused() {
    let tries = Arc::new(OnceLock::new());
    let stage = Stage::new(move |method, _| match method {
        "POST" if tries.set(()).is_ok() => Answer::HangsUp,
        "PATCH" => status(404, "NotFound"),
        _ => status(403, "Forbidden"),
    })
    .await;
    let (backend, one) = (&stage.backend, attempt("doubt", 0));
    let work = on("good", &one);
    let why = backend.launch(&work).await.unwrap_err();
    assert!(why.contains("so it is"), "{why}");
    assert!(backend.inner.held(&one).is_some(), "it may be there");
    let place = backend.place_of(&work.definition);
    let stopped = backend.stop(&one, &place, StopKind::AtOnce);
    assert_eq!(stopped.await, Ok(()), "and is not");
    assert!(backend.inner.held(&one).is_none());
    backend.release(&one).await;
    assert!(stage.is_empty());
}

#[tokio::test]
async fn what_was_seen_is_not_forgotten_because_it_was_refused() {
    let stage = Stage::new(|_, _| Answer::Says(201, json!({}))).await;
    let one = attempt("seen", 0);
    stage.backend.launch(&on("good", &one)).await.unwrap();
    let spot = Spot { cluster: "good".into(), namespace: NAMESPACE.into() };
    let mut book = Book::default();
    book.all.insert(one.clone(), Held::new(spot.clone(), "it".to_owned()));
    book.take(&spot, Event::Seen(stage.job()));
    assert!(!book.refuse(&one) && book.all.contains_key(&one));
    book.all.insert(one.clone(), Held::new(spot, "it".to_owned()));
    assert!(book.refuse(&one) && book.all.is_empty() && book.refused.contains_key(&one));
}

#[test]
fn what_a_watch_tells_late_was_when_the_cluster_says() {
    let at =
        |ms: u64| kapell_core::seams::Timestamp(1_763_290_800_000).after(Duration::from_millis(ms));
    let (told, fresh) = (at(0), FRESH.as_millis().try_into().unwrap());
    assert_eq!(exact(Some(told), at(900), true), at(900), "clusters count in seconds");
    assert_eq!(exact(Some(told), at(fresh), true), at(fresh));
    assert_eq!(exact(Some(told), at(fresh + 1), true), told, "it was away");
    assert_eq!(exact(Some(told), at(900), false), told, "it was there before we looked");
    assert_eq!(exact(Some(at(5_000)), at(900), true), at(900), "a clock that is ahead");
    assert_eq!(exact(None, at(900), false), at(900));
}
