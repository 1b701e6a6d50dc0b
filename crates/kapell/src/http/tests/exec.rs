//! Programs in containers, from a client over a host to a cell.

use std::sync::atomic::Ordering;

use kapell_api::client::{Client, Options, Token as Bearer, Told};
use kapell_api::v1::{ExecEnd, ExecWanted};
use kapell_backend::containers::{Error as Trouble, Exec, Exit, Session};
use kapell_core::exec::Size;
use kapell_node::cell::LogOf;
use tokio::io::{duplex, repeat, sink};
use tokio::sync::watch;

use kapell_core::access::Purpose;
use kapell_node::access::Wanted;
use kapell_node::system::{SystemClock, SystemIds};
use kapell_store::mem::Mem;

use super::logs::Place;
use super::*;

/// How often the program `wait` runs. One test only runs it.
static WAITS: std::sync::LazyLock<watch::Sender<usize>> =
    std::sync::LazyLock::new(|| watch::channel(0).0);

/// How large the terminal of the program `size` is. One test only runs it.
static SIZES: std::sync::LazyLock<watch::Sender<Option<Size>>> =
    std::sync::LazyLock::new(|| watch::channel(None).0);

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

/// `cat` gives back its input and then returns 3; `wait`, `flood` and `size` never end; nothing else is there.
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
            resize: None,
            ended: Box::pin(async { Ok(exit) }),
        }),
        "wait" => Ok(Session {
            stdin: Box::new(sink()),
            stdout: Box::new(stdout),
            stderr: Box::new(tokio::io::empty()),
            resize: None,
            ended: {
                let waiting = Waiting::new();
                Box::pin(async move {
                    let _both = (waiting, stdin);
                    std::future::pending().await
                })
            },
        }),
        // All that there is, and who does not read it must not be in the way of others.
        "flood" => Ok(Session {
            stdin: Box::new(sink()),
            stdout: Box::new(repeat(b'x')),
            stderr: Box::new(tokio::io::empty()),
            resize: None,
            ended: Box::pin(std::future::pending()),
        }),
        "size" => {
            SIZES.send_replace(exec.terminal);
            Ok(Session {
                stdin: Box::new(sink()),
                stdout: Box::new(stdout),
                stderr: Box::new(tokio::io::empty()),
                resize: Some(Box::new(|size| {
                    SIZES.send_replace(Some(size));
                })),
                ended: Box::pin(async move {
                    let _open = stdin;
                    std::future::pending().await
                }),
            })
        }
        other => Err(Trouble::Absent(format!("`{other}` was not found in PATH"))),
    }
}

fn client(place: &Place) -> Client {
    let token = Some(Bearer::new(TOKEN));
    let options = Options { token, ..Options::default() };
    Client::new(&format!("http://{}", place.host.at()), options).unwrap()
}

fn wanted(path: &str) -> ExecWanted {
    ExecWanted { path: path.to_owned(), args: Vec::new(), env: Vec::new(), terminal: None }
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
async fn a_terminal_is_asked_for_and_resized() {
    let place = Place::start().await;
    let mut sizes = SIZES.subscribe();
    let (small, large) = (Size { rows: 5, cols: 6 }, Size { rows: 50, cols: 60 });
    let wanted = ExecWanted { terminal: Some(small), ..wanted("size") };
    let mut session = client(&place).exec_in_lrp("web", 0, &wanted).await.unwrap();
    let input = session.input.clone();
    let resize = async {
        sizes.wait_for(|size| *size == Some(small)).await.unwrap();
        assert!(input.resize(large).await);
        sizes.wait_for(|size| *size == Some(large)).await.unwrap();
    };
    // Nothing is sent while nobody reads.
    let both = async {
        tokio::select! {
            biased;
            told = session.next() => panic!("{told:?}"),
            () = resize => {}
        }
    };
    timeout(DEADLINE, both).await.expect("hangs");
}

#[tokio::test]
async fn who_does_not_read_is_in_nobodys_way() {
    let place = Place::start().await;
    let client = client(&place);
    let floods = [
        client.exec_in_lrp("web", 0, &wanted("flood")).await.unwrap(),
        client.exec_in_task("t", &wanted("flood")).await.unwrap(),
    ];
    let mut session = client.exec_in_lrp("web", 0, &wanted("cat")).await.unwrap();
    session.input.send(b"").await;
    let end = async {
        loop {
            match session.next().await.unwrap().expect("an end") {
                Told::Out(_) | Told::Err(_) => {}
                Told::End(end) => return end,
            }
        }
    };
    assert_eq!(timeout(DEADLINE, end).await.expect("hangs").code, Some(3));
    drop(floods);
}

#[tokio::test]
async fn a_cell_runs_so_many_programs_and_no_more() {
    let place = Place::start_with(Limits { execs: 1, ..LIMITS }).await;
    let client = client(&place);
    let flood = client.exec_in_lrp("web", 0, &wanted("flood")).await.unwrap();
    let error = client.exec_in_task("t", &wanted("cat")).await.unwrap_err();
    assert_eq!(error.problem().unwrap().code, "too_many_programs");
    drop(flood);
    let again = async {
        while client.exec_in_task("t", &wanted("cat")).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    timeout(DEADLINE, again).await.expect("there is a place again");
}

#[tokio::test]
async fn only_operators_of_its_domain_run_programs() {
    let place = Place::start().await;
    let store = Arc::new(Mem::new(Arc::new(SystemClock)));
    let ledger = Ledger::open(store, Arc::new(SystemClock), Arc::new(SystemIds)).await.unwrap();
    let ledger = Arc::new(ledger);
    *place.host.face.ledger.lock().unwrap() = Some(Arc::clone(&ledger));
    for (purpose, domain, code) in [
        (Purpose::Reader, None, Some("forbidden")),
        (Purpose::Reader, Some("d"), Some("forbidden")),
        (Purpose::Operator, Some("other"), Some("not_found")),
        (Purpose::Operator, Some("d"), None),
    ] {
        let domains = domain.map(|it| [it.into()].into());
        let (name, ttl) = ("ann".to_owned(), Duration::from_secs(60));
        let made = ledger.issue(Wanted { purpose, domains, name, ttl, cell_id: None }).await;
        let token = Some(Bearer::new(key().sign(&made.unwrap().claims)));
        let options = Options { token, ..Options::default() };
        let client = Client::new(&format!("http://{}", place.host.at()), options).unwrap();
        for ran in [
            client.exec_in_lrp("web", 0, &wanted("cat")).await,
            client.exec_in_task("t", &wanted("cat")).await,
        ] {
            let why = ran.err().map(|error| error.problem().unwrap().code.clone());
            assert_eq!(why.as_deref(), code, "{purpose:?} of {domain:?}");
        }
    }
}

#[tokio::test]
async fn what_cannot_run_is_refused_with_its_reason() {
    let place = Place::start().await;
    let client = client(&place);
    let error = client.exec_in_lrp("web", 0, &wanted("none")).await.unwrap_err();
    assert_eq!(error.problem().unwrap().code, "program_not_found");
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
