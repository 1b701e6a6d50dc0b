//! Programs in containers, from a client over a host to a cell.

use std::sync::atomic::Ordering;

use kapell_api::client::{Client, Options, Token as Bearer, Told};
use kapell_api::v1::{ExecEnd, ExecWanted};
use kapell_backend::containers::{Error as Trouble, Exec, Exit, Session};
use kapell_node::cell::LogOf;
use tokio::io::{duplex, sink};
use tokio::sync::watch;

use super::logs::Place;
use super::*;

/// How often the program `wait` runs. One test only runs it.
static WAITS: std::sync::LazyLock<watch::Sender<usize>> =
    std::sync::LazyLock::new(|| watch::channel(0).0);

struct Waiting;

impl Waiting {
    fn new() -> Self {
        WAITS.send_modify(|count| *count += 1);
        Self
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        WAITS.send_modify(|count| *count -= 1);
    }
}

/// `cat` gives back its input and then returns 3; `wait` never ends; nothing else is there.
pub(super) fn fake(live: bool, of: &LogOf, exec: &Exec) -> Result<Session, Trouble> {
    if !live {
        return Err(Trouble::Unknown(of.to_string()));
    }
    let (stdin, stdout) = duplex(64);
    let exit = Exit { code: Some(3), ..Exit::default() };
    match exec.path.as_str() {
        "cat" => Ok(Session {
            stdin: Box::new(stdin),
            stdout: Box::new(stdout),
            stderr: Box::new(&b"careful"[..]),
            ended: Box::pin(async { Ok(exit) }),
        }),
        "wait" => Ok(Session {
            stdin: Box::new(sink()),
            stdout: Box::new(stdout),
            stderr: Box::new(tokio::io::empty()),
            ended: {
                let waiting = Waiting::new();
                Box::pin(async move {
                    let _both = (waiting, stdin);
                    std::future::pending().await
                })
            },
        }),
        other => Err(Trouble::Unstartable(format!("`{other}` was not found in PATH"))),
    }
}

fn client(place: &Place) -> Client {
    let token = Some(Bearer::new(TOKEN));
    let options = Options { token, ..Options::default() };
    Client::new(&format!("http://{}", place.host.at()), options).unwrap()
}

fn wanted(path: &str) -> ExecWanted {
    ExecWanted { path: path.to_owned(), args: Vec::new(), env: Vec::new() }
}

#[tokio::test]
async fn what_goes_in_comes_out_and_the_exit_code_is_told() {
    let place = Place::start().await;
    let mut session = client(&place).exec_in_lrp("web", 0, &wanted("cat")).await.unwrap();
    let (mut out, mut err, mut end) = (Vec::new(), Vec::new(), None);
    let long = vec![7; 100_000];
    let input = session.input.clone();
    let feed = async {
        // One after the other, while the program runs.
        assert!(input.send(b"one ").await && input.send(&long).await && input.send(b"").await);
    };
    let read = async {
        while let Some(told) = session.next().await.unwrap() {
            match told {
                Told::Out(bytes) => out.extend(bytes),
                Told::Err(bytes) => err.extend(bytes),
                Told::End(told) => end = Some(told),
            }
        }
    };
    timeout(DEADLINE, async { tokio::join!(feed, read) }).await.expect("hangs");
    assert_eq!(out, [&b"one "[..], &long].concat());
    assert_eq!(err, b"careful");
    assert_eq!(end, Some(ExecEnd { code: Some(3), signal: None, trouble: None }));
}

#[tokio::test]
async fn a_program_is_dropped_when_its_client_goes_away() {
    let place = Place::start().await;
    let mut waits = WAITS.subscribe();
    let session = client(&place).exec_in_task("t", &wanted("wait")).await.unwrap();
    timeout(DEADLINE, waits.wait_for(|count| *count == 1)).await.expect("runs").unwrap();
    drop(session);
    timeout(DEADLINE, waits.wait_for(|count| *count == 0)).await.expect("hangs").unwrap();
}

#[tokio::test]
async fn what_cannot_run_is_refused_with_its_reason() {
    let place = Place::start().await;
    let client = client(&place);
    let error = client.exec_in_lrp("web", 0, &wanted("none")).await.unwrap_err();
    assert_eq!(error.problem().unwrap().code, "unstartable");
    assert!(error.to_string().contains("`none` was not found in PATH"), "{error}");
    let error = client.exec_in_lrp("other", 0, &wanted("cat")).await.unwrap_err();
    assert_eq!(error.problem().unwrap().code, "not_running");
    place.rep.live.store(false, Ordering::SeqCst);
    let error = client.exec_in_task("t", &wanted("cat")).await.unwrap_err();
    assert!(error.is_not_found(), "{error}");
    let body = r#"{"path":"cat"}"#;
    let plain =
        access::ask(place.host.at(), TOKEN, "POST", "/v1/actual-lrps/web/0/exec", body).await;
    assert_eq!(plain.problem(), (400, "bad_body".to_owned()));
}
