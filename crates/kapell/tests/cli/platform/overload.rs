//! More than a host takes: those who ask too much are told so, and nobody else notices.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::JoinSet;

use super::Site;
use super::life::{STAYS, text};
use crate::bench::{Bench, pause};
use crate::running::send;

/// Memory that a process has right now.
pub(crate) fn memory_kb(pid: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.unwrap_or_else(|| panic!("process {pid} is gone"))
}

/// What became of requests, by status; what was cut off is 0.
type Counts = BTreeMap<u16, usize>;

/// Clients that ask without a pause until they are told to stop.
struct Flood {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<(Counts, Duration)>,
}

impl Flood {
    fn start(clients: usize, port: u16, token: &str) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (told, token) = (Arc::clone(&stop), token.to_owned());
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async {
                let mut all = JoinSet::new();
                for number in 0..clients {
                    all.spawn(client(number, port, token.clone(), Arc::clone(&told)));
                }
                let (mut counts, mut longest) = (Counts::new(), Duration::ZERO);
                for (own, took) in all.join_all().await {
                    for (status, count) in own {
                        *counts.entry(status).or_default() += count;
                    }
                    longest = longest.max(took);
                }
                (counts, longest)
            })
        });
        Self { stop, thread }
    }

    fn end(self) -> (Counts, Duration) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("the flood ends")
    }
}

/// Writes and reads by turns, each over a connection that it keeps for as long as it may.
async fn client(
    number: usize,
    port: u16,
    token: String,
    stop: Arc<AtomicBool>,
) -> (Counts, Duration) {
    let (mut counts, mut longest) = (Counts::new(), Duration::ZERO);
    let at = SocketAddr::from(([127, 0, 0, 1], port));
    let head = format!("Host: {at}\r\nAuthorization: Bearer {token}\r\n");
    let write = format!(
        "PUT /v1/domains/flood-{number} HTTP/1.1\r\n{head}Content-Type: application/json\r\n\
         Content-Length: 2\r\n\r\n{{}}"
    );
    let read = format!("GET /v1/desired-lrps HTTP/1.1\r\n{head}\r\n");
    let mut kept = None;
    for turn in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let began = Instant::now();
        let request = if turn % 2 == 0 { &write } else { &read };
        let answered = exchange(kept.take(), at, request).await;
        longest = longest.max(began.elapsed());
        let status = match answered {
            Some((status, stream)) => {
                kept = stream;
                status
            }
            None => 0,
        };
        *counts.entry(status).or_default() += 1;
    }
    (counts, longest)
}

/// The status, and the connection if it can be used again.
async fn exchange(
    kept: Option<tokio::net::TcpStream>,
    at: SocketAddr,
    request: &str,
) -> Option<(u16, Option<tokio::net::TcpStream>)> {
    let mut stream = match kept {
        Some(stream) => stream,
        None => tokio::net::TcpStream::connect(at).await.ok()?,
    };
    // Who is turned away may be told so before all was sent.
    let _sent = stream.write_all(request.as_bytes()).await;
    let mut bytes = Vec::new();
    let mut piece = vec![0; 1 << 16];
    loop {
        let count = stream.read(&mut piece).await.unwrap_or(0);
        bytes.extend_from_slice(&piece[..count]);
        let head = bytes.windows(4).position(|it| it == b"\r\n\r\n");
        let text = String::from_utf8_lossy(&bytes[..head.unwrap_or(0)]).to_ascii_lowercase();
        let status = text.split(' ').nth(1).and_then(|it| it.parse().ok());
        if let (Some(head), Some(status)) = (head, status) {
            let length = text.lines().find_map(|line| line.strip_prefix("content-length: "));
            let is_whole = match length.and_then(|it| it.parse::<usize>().ok()) {
                Some(length) => bytes.len() >= head + 4 + length,
                None => status == 204 || bytes.ends_with(b"0\r\n\r\n"),
            };
            if is_whole {
                let goes_on = !text.contains("connection: close");
                return Some((status, goes_on.then_some(stream)));
            }
        }
        if count == 0 {
            return None;
        }
    }
}

#[test]
#[expect(clippy::print_stderr, reason = "figures, for whoever looks")]
fn operators_that_ask_too_much_are_told_so_and_cells_notice_nothing() {
    let bench = Bench::new().set("KAPELL_PRESENCE_TTL", "3s").set("KAPELL_CONVERGE_EVERY", "1s");
    let mut site = Site::with(bench, &[]);
    site.desire("web", 1, STAYS);
    site.all_run("web", 1);
    for number in 0..50 {
        site.desire(&format!("more-{number}"), 0, STAYS);
    }
    let flood = Flood::start(700, site.port, &site.token());
    let began = Instant::now();
    let mut restarts = Vec::new();
    // Each crash but the fourth is made up for at once.
    for _ in 0..3 {
        let before = super::fleet::pids(&site.work());
        assert_eq!(before.len(), 1, "{before:?}");
        for pid in &before {
            send(*pid, Signal::SIGKILL);
        }
        let killed = Instant::now();
        site.until("it to be started again", || {
            let now = super::fleet::pids(&site.work());
            (now.len() == 1 && now.is_disjoint(&before)).then_some(())
        });
        restarts.push(killed.elapsed());
        pause(Duration::from_millis(500));
    }
    // For longer than it takes to lose a cell.
    pause(Duration::from_secs(5).saturating_sub(began.elapsed()));
    // Whoever comes now has an answer, if only that there is no room.
    let asked = Instant::now();
    let answer = site.until("an answer", || site.try_ask("GET", "/healthz", None));
    assert!([200, 429].contains(&answer.status), "{answer:?}");
    assert!(asked.elapsed() < Duration::from_secs(2), "{:?}", asked.elapsed());
    let (counts, longest) = flood.end();
    let health = site.until("health", || {
        site.try_ask("GET", "/healthz", None).filter(|answer| answer.status == 200)
    });
    assert_eq!(health.json()["writes"], "accepted");
    eprintln!("flood: {counts:?}, longest {longest:?}, restarts {restarts:?}");
    assert!(counts.keys().all(|status| [0, 200, 201, 204, 429].contains(status)), "{counts:?}");
    assert!(counts[&429] > 100, "{counts:?}");
    assert!(counts[&200] + counts.get(&204).unwrap_or(&0) > 100, "{counts:?}");
    assert!(longest < Duration::from_secs(10), "nobody hangs: {longest:?}");
    assert!(restarts.iter().all(|took| *took < Duration::from_secs(5)), "{restarts:?}");
    let log = site.running.as_mut().expect("it runs").stderr_so_far();
    assert!(!log.contains("not heard of"), "{log}");
    let lrp = site.all_run("web", 1).remove(0);
    assert_eq!(lrp["crash_count"], 3);
}

/// Sends for as long as somebody takes it, and says how much that was and what was answered.
fn pour(at: &str, token: &str, path: &str, chunked: bool) -> (usize, String) {
    const GIGABYTE: usize = 1 << 30;
    let mut stream = TcpStream::connect(at).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a limit");
    stream.set_write_timeout(Some(Duration::from_secs(20))).expect("a limit");
    let size = if chunked {
        "Transfer-Encoding: chunked".to_owned()
    } else {
        format!("Content-Length: {GIGABYTE}")
    };
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {at}\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nkapell-epoch: 1000\r\n{size}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).expect("a head is taken");
    let piece = if chunked {
        [b"10000\r\n".to_vec(), vec![b' '; 1 << 16], b"\r\n".to_vec()].concat()
    } else {
        vec![b' '; 1 << 16]
    };
    let mut sent = 0;
    while sent < GIGABYTE && stream.write_all(&piece).is_ok() {
        sent += 1 << 16;
    }
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Ok(_) => {}
        // What was on its way to us comes first.
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}"),
    }
    (sent, String::from_utf8_lossy(&answer).into_owned())
}

#[test]
#[expect(clippy::print_stderr, reason = "figures, for whoever looks")]
fn a_body_of_a_gigabyte_is_refused_before_it_is_read() {
    let site = Site::up();
    site.desire("web", 1, STAYS);
    site.all_run("web", 1);
    let pid = site.running.as_ref().expect("it runs").pid();
    let cells = site.get("/v1/cells");
    let cell = text(&cells[0], "url").trim_start_matches("http://").to_owned();
    let (host, token) = (format!("127.0.0.1:{}", site.port), site.token());
    let before = memory_kb(pid);
    for (at, path) in [
        (&host, "/v1/tasks"),
        (&host, "/v1/plan"),
        (&host, "/v1/cells/local/reports"),
        (&host, "/no/such/path"),
        (&cell, "/v1/cell/work"),
    ] {
        for chunked in [false, true] {
            let began = Instant::now();
            let (sent, answer) = pour(at, &token, path, chunked);
            let what = format!("{at}{path}, chunked {chunked}, {sent} bytes: {answer}");
            let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{what}"));
            // What has no place at all is refused for that before its size is known.
            let unknown = chunked && path == "/no/such/path";
            assert!(unknown || head.to_lowercase().contains("connection: close"), "{what}");
            let (status, code) =
                if unknown { (" 404 ", "not_found") } else { (" 413 ", "body_too_large") };
            assert!(head.contains(status) && body.contains(code), "{what}");
            assert!(sent < 64 << 20, "{what}");
            assert!(began.elapsed() < Duration::from_secs(5), "{what}");
        }
    }
    let (sent, answer) = pour(&host, "not-the-token", "/v1/tasks", true);
    assert!(answer.contains(" 401 ") && sent < 64 << 20, "{sent}: {answer}");
    let after = memory_kb(pid);
    eprintln!("memory before {before} kB, after {after} kB");
    assert!(after < before + (24 << 10), "{before} kB became {after} kB");
    site.all_run("web", 1);
}
