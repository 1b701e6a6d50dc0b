//! Very many clients that are slow in every way there is.

use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpSocket;
use tokio::task::JoinSet;
use tokio::time::interval;

use super::Site;
use super::life::{STAYS, text};
use super::overload::memory_kb;
use crate::bench::{Bench, LIMIT, skip, try_eventually};

const CLIENTS: usize = 10_000;
/// Between one that comes and the next.
const APART: Duration = Duration::from_micros(800);

/// The reason if so many files cannot be open.
fn allow_files(count: usize) -> Result<(), String> {
    let pid = std::process::id().to_string();
    let asked = Command::new("prlimit")
        .args(["--pid", &pid, &format!("--nofile={count}:")])
        .output()
        .map_err(|error| format!("prlimit: {error}"))?;
    let why = String::from_utf8_lossy(&asked.stderr).trim().to_owned();
    asked.status.success().then_some(()).ok_or(why)
}

/// Clients of all kinds, some of which may come in.
struct Crowd {
    stop: Arc<AtomicBool>,
    came: Arc<AtomicUsize>,
    thread: JoinHandle<()>,
}

impl Crowd {
    fn start(count: usize, at: SocketAddr, token: &str) -> Self {
        let (stop, came) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (told, counted) = (Arc::clone(&stop), Arc::clone(&came));
        let ways = Arc::new(ways(at, token));
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async {
                let (mut all, mut times) = (JoinSet::new(), interval(APART));
                for number in 0..count {
                    times.tick().await;
                    let (ways, told) = (Arc::clone(&ways), Arc::clone(&told));
                    let came = Arc::clone(&counted);
                    all.spawn(async move {
                        // An answer that is too long to be kept for somebody costs the most by far.
                        let way = if number % 50 == 0 { 0 } else { 1 + number % (ways.len() - 1) };
                        let (begin, drip) = &ways[way];
                        let socket = TcpSocket::new_v4().expect("a socket");
                        socket.set_recv_buffer_size(4096).expect("a small buffer");
                        let connected = socket.connect(at).await;
                        came.fetch_add(1, Ordering::Relaxed);
                        let Ok(mut stream) = connected else { return };
                        let mut open = stream.write_all(begin.as_bytes()).await.is_ok();
                        let mut beat = interval(Duration::from_millis(700));
                        while open && !told.load(Ordering::Relaxed) {
                            beat.tick().await;
                            open = match drip {
                                Drip::Bytes(bytes) => stream.write_all(bytes).await.is_ok(),
                                Drip::Reads => {
                                    stream.read(&mut [0; 1]).await.is_ok_and(|count| count > 0)
                                }
                                Drip::Nothing => true,
                            };
                        }
                    });
                }
                all.join_all().await;
            });
        });
        Self { stop, came, thread }
    }

    fn came(&self) -> usize {
        self.came.load(Ordering::Relaxed)
    }

    fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("the crowd goes");
    }
}

enum Drip {
    Bytes(&'static [u8]),
    Reads,
    Nothing,
}

/// What a client begins with, and how it goes on.
fn ways(at: SocketAddr, token: &str) -> Vec<(String, Drip)> {
    let head = format!("Host: {at}\r\nAuthorization: Bearer {token}\r\n");
    let body = format!(
        "POST /v1/tasks HTTP/1.1\r\n{head}Content-Type: application/json\r\n\
         Content-Length: 9000\r\n\r\n{{"
    );
    let nobody = || ("GET /v1/tasks HTTP/1.1\r\nX: ".to_owned(), Drip::Bytes(b"x"));
    vec![
        (format!("GET /v1/desired-lrps HTTP/1.1\r\n{head}\r\n"), Drip::Reads),
        nobody(),
        (String::new(), Drip::Nothing),
        (body.clone(), Drip::Bytes(b" ")),
        nobody(),
        (String::new(), Drip::Nothing),
        nobody(),
        (body, Drip::Bytes(b" ")),
        (format!("GET /v1/cells HTTP/1.1\r\n{head}\r\n"), Drip::Nothing),
        (String::new(), Drip::Nothing),
    ]
}

fn open_files(pid: i32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).expect("it runs").count()
}

/// How long somebody waits for what they may see, whoever else is there.
#[track_caller]
fn served_within(site: &Site, path: &str) -> Duration {
    let began = Instant::now();
    let mut last = None;
    let served = try_eventually(LIMIT, || {
        last = site.try_ask("GET", path, None).map(|it| it.status);
        (last == Some(200)).then_some(())
    });
    assert!(served.is_some(), "{path} is not served: {last:?}");
    began.elapsed()
}

#[test]
#[expect(clippy::print_stderr, reason = "figures, for whoever looks")]
fn ten_thousand_slow_clients_keep_nobody_from_being_served() {
    let name = "ten_thousand_slow_clients_keep_nobody_from_being_served";
    if let Err(reason) = allow_files(CLIENTS + 2_000) {
        return skip(&format!("platform::slow::{name}"), &reason);
    }
    let mut site = Site::with(Bench::new().set("KAPELL_PRESENCE_TTL", "3s"), &[]);
    site.desire("web", 1, STAYS);
    let before = site.all_run("web", 1);
    for number in 0..40 {
        let mut lrp = site.lrp(&format!("more-{number}"), 0, STAYS);
        lrp["annotation"] = "x".repeat(9_000).into();
        site.ask("POST", "/v1/desired-lrps", Some(&lrp)).expect(201);
    }
    let pid = site.running.as_ref().expect("it runs").pid();
    let (memory, files) = (memory_kb(pid), open_files(pid));
    let at = SocketAddr::from(([127, 0, 0, 1], site.port));
    let crowd = Crowd::start(CLIENTS, at, &site.token());
    let mut waits = Vec::new();
    let began = Instant::now();
    let mut after = None;
    // While they come, and for a while with all of them there.
    while after.is_none_or(|since: Instant| since.elapsed() < Duration::from_secs(3)) {
        waits.push(served_within(&site, "/v1/cells"));
        waits.push(served_within(&site, "/healthz"));
        if crowd.came() == CLIENTS {
            after.get_or_insert_with(Instant::now);
        }
        assert!(began.elapsed() < LIMIT, "{} came", crowd.came());
    }
    let (most, most_files) = (memory_kb(pid), open_files(pid));
    let came = began.elapsed();
    crowd.end();
    site.until("all of them to be gone", || (open_files(pid) <= files + 8).then_some(()));
    let left = memory_kb(pid);
    waits.sort_unstable();
    let (most_waits, longest) = (waits[waits.len() * 95 / 100], waits[waits.len() - 1]);
    eprintln!(
        "slow: {CLIENTS} within {came:?}, {} waits, 95 % within {most_waits:?}, all within {longest:?}, files {files} to {most_files}, \
         memory {memory} kB to {most} kB, then {left} kB",
        waits.len()
    );
    assert!(most_waits < Duration::from_secs(1), "{most_waits:?}");
    // A machine that has much else to do makes somebody wait, but not for the slow ones to go.
    assert!(longest < Duration::from_secs(5), "{longest:?}");
    assert!(most_files < 1_000, "{most_files}");
    assert!(left < memory + (96 << 10), "{memory} kB became {left} kB");
    assert_eq!(site.instances("web"), before);
    let log = site.running.as_mut().expect("it runs").stderr_so_far();
    assert!(!log.contains("not heard of"), "{log}");
}

#[test]
fn slow_clients_of_a_cell_keep_its_leader_from_nothing() {
    let name = "slow_clients_of_a_cell_keep_its_leader_from_nothing";
    if let Err(reason) = allow_files(3_000) {
        return skip(&format!("platform::slow::{name}"), &reason);
    }
    let site = Site::up();
    let cells = site.get("/v1/cells");
    let at = text(&cells[0], "url").trim_start_matches("http://").parse().expect("an address");
    let crowd = Crowd::start(1_000, at, &site.token());
    site.until("all to come", || (crowd.came() == 1_000).then_some(()));
    let began = Instant::now();
    site.desire("web", 3, STAYS);
    site.all_run("web", 3);
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    crowd.end();
}
