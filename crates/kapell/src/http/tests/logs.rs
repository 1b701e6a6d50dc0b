use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use kapell_api::v1::{Cancel, Problem, Stop, Work, WorkAnswer};
use kapell_backend::containers::{self, Exec, Session};
use kapell_core::board::{ActualState, CellId, CellState, Records, Resources, TaskState};
use kapell_core::log::{Decoder, Frame, Stream};
use kapell_node::cell::{ContainerLogs, LogOf};

use super::super::{Rep, bind_cell, bind_cell_within};
use super::desk::{lrp, task};
use super::*;

/// A cell that has only logs.
#[derive(Debug)]
pub(super) struct FakeRep {
    root: tempfile::TempDir,
    pub(super) live: AtomicBool,
}

impl FakeRep {
    pub(super) fn new() -> Arc<Self> {
        let root = tempfile::tempdir().unwrap();
        Arc::new(Self { root, live: AtomicBool::new(false) })
    }

    fn dir(&self, name: &str) -> PathBuf {
        let dir = self.root.path().join(name);
        fs::create_dir_all(&dir).unwrap();
        dir
    }
}

#[async_trait::async_trait]
impl Rep for FakeRep {
    fn id(&self) -> CellId {
        "c1".into()
    }

    fn state(&self, epoch: Epoch) -> Result<CellState, Problem> {
        if epoch < Epoch(5) {
            let (code, message) = ("stale_epoch".to_owned(), "epoch 5 was seen".to_owned());
            return Err(Problem { code, message, details: Value::Null });
        }
        Ok(CellState::empty(self.id(), String::new(), Resources::default()))
    }

    fn work(&self, _: Epoch, _: Work) -> Result<WorkAnswer, Problem> {
        Ok(WorkAnswer::default())
    }

    fn stop(&self, _: Epoch, _: &Stop) -> Result<(), Problem> {
        Ok(())
    }

    fn cancel(&self, _: Epoch, _: &Cancel) -> Result<(), Problem> {
        Ok(())
    }

    fn evacuate(&self, _: Epoch) -> Result<(), Problem> {
        Ok(())
    }

    fn logs(&self, _: &LogOf) -> Vec<ContainerLogs> {
        let parts = |dir: &Path| [vec![dir.to_owned()], directories(dir)].concat();
        let all = directories(self.root.path()).into_iter();
        all.map(|dir| ContainerLogs { parts: parts(&dir), dir }).collect()
    }

    fn is_live(&self, _: &LogOf) -> bool {
        self.live.load(Ordering::SeqCst)
    }

    async fn exec(&self, of: &LogOf, wanted: Exec) -> Result<Session, containers::Error> {
        exec::fake(self.live.load(Ordering::SeqCst), of, &wanted)
    }
}

fn directories(of: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(of).unwrap().map(|entry| entry.unwrap().path());
    let mut dirs: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    dirs.sort();
    dirs
}

fn write(dir: &Path, segment: u64, stream: Stream, text: &[u8]) {
    append(dir, segment, &Frame { stream, at: Timestamp(5), bytes: text.to_vec() }.encode());
}

fn write_at(dir: &Path, segment: u64, at: i64, text: &str) {
    let (stream, bytes) = (Stream::Out, text.as_bytes().to_vec());
    append(dir, segment, &Frame { stream, at: Timestamp(at), bytes }.encode());
}

fn append(dir: &Path, segment: u64, bytes: &[u8]) {
    let path = dir.join(format!("{segment:08}.log"));
    let mut file = fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
    file.write_all(bytes).unwrap();
}

pub(super) struct Place {
    cell: Server,
    pub(super) rep: Arc<FakeRep>,
    pub(super) host: Host,
    desk: Arc<FakeDesk>,
}

impl Place {
    /// A host and a cell that has an instance `web/0` and a task `t`.
    pub(super) async fn start() -> Self {
        Self::start_with(LIMITS).await
    }

    /// With these limits at the cell.
    pub(super) async fn start_with(limits: Limits) -> Self {
        let rep =
            Arc::new(FakeRep { root: tempfile::tempdir().unwrap(), live: AtomicBool::new(true) });
        let cell = bind_cell_within(listen("127.0.0.1:0"), rep.clone(), limits).await.unwrap();
        let (host, desk) = Host::with_board().await;
        desk.cell_at("c1", &format!("http://{}", cell.local_addr()));
        desk.instance(lrp("web", 0, ActualState::Running, Some("c1")));
        let mut running = task("t", TaskState::Running);
        running.cell_id = Some("c1".into());
        desk.task(running);
        Self { cell, rep, host, desk }
    }

    async fn ask_cell(&self, method: &str, path: &str, more: &str) -> Reply {
        let at = self.cell.local_addr();
        let request = format!(
            "{method} {path} HTTP/1.0\r\nhost: {at}\r\nauthorization: Bearer {TOKEN}\r\n{more}\r\n"
        );
        send(at, &request).await
    }

    async fn open(&self, path: &str) -> TcpStream {
        let at = self.host.at();
        let mut stream = TcpStream::connect(at).await.unwrap();
        let request =
            format!("GET {path} HTTP/1.0\r\nhost: {at}\r\nauthorization: Bearer {TOKEN}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    }

    async fn read(&self, path: &str) -> Reply {
        Reply::parse(&rest(&mut self.open(path).await).await)
    }
}

#[tokio::test]
async fn a_cell_answers_its_leader_only_with_an_epoch() {
    let place = Place::start().await;
    assert_eq!(place.ask_cell("GET", "/healthz", "").await.json()["cell_id"], "c1");
    assert_eq!(
        place.ask_cell("GET", "/v1/cell/state", "").await.problem(),
        (400, "no_epoch".to_owned())
    );
    let old = place.ask_cell("GET", "/v1/cell/state", "kapell-epoch: 4\r\n").await;
    assert_eq!(old.problem(), (409, "stale_epoch".to_owned()));
    for path in ["/v1/cell/exec/task/t", "/v1/cell/exec/lrp/web/0"] {
        let old = place.ask_cell("POST", path, "kapell-epoch: 4\r\n").await;
        assert_eq!(old.problem(), (409, "stale_epoch".to_owned()));
        assert_eq!(place.ask_cell("POST", path, "").await.problem(), (400, "no_epoch".to_owned()));
    }
    assert_eq!(
        place.ask_cell("GET", "/v1/cell/state", "kapell-epoch: 5\r\n").await.json()["cell_id"],
        "c1"
    );
    assert_eq!(
        place.ask_cell("POST", "/v1/cell/evacuate", "kapell-epoch: 5\r\n").await.status,
        204
    );
    assert_eq!(place.ask_cell("GET", "/v1/cell/evacuate", "").await.problem().0, 405);
    // It shows no pages.
    assert_eq!(place.ask_cell("GET", "/", "").await.problem().0, 404);
    let at = place.cell.local_addr();
    let page =
        send(at, &format!("GET / HTTP/1.0\r\nhost: {at}\r\naccept: text/html\r\n\r\n")).await;
    assert_eq!(page.problem(), (401, "unauthorized".to_owned()));
}

#[tokio::test]
async fn all_that_is_kept_comes_in_order() {
    let place = Place::start().await;
    let (old, new) = (place.rep.dir("1"), place.rep.dir("2"));
    // The first segments are gone already.
    write(&old, 7, Stream::Out, b"one\n");
    write(&old, 8, Stream::Err, b"two\n");
    append(&old, 8, &[1, 0, 0]);
    write(&new, 0, Stream::Note, b"remark\n");
    write(&new, 0, Stream::Out, b"three\n\xff");
    assert_eq!(place.read("/v1/logs/lrp/web/0").await.body, "one\ntwo\nthree\n\u{fffd}");
    let frames = place.read("/v1/logs/lrp/web/0?format=frames").await;
    assert!(frames.has("content-type: application/octet-stream"));
    let tail = place.read("/v1/logs/lrp/web/0?tail=3").await;
    assert_eq!(tail.body, "three\n\u{fffd}", "with the remark, three lines");
    assert_eq!(place.read("/v1/logs/lrp/web/0?tail=0").await.body, "");
    let events = place.read("/v1/logs/lrp/web/0?format=events").await.body;
    assert!(events.contains(r#"data: {"at":5,"stream":"stderr","text":"two\n"}"#), "{events}");
    assert!(events.ends_with("event: end\ndata: {}\n\n"), "{events}");
}

#[tokio::test]
async fn following_goes_on_over_restarts() {
    let place = Place::start().await;
    let first = place.rep.dir("1");
    write(&first, 0, Stream::Out, b"one\n");
    let mut stream = place.open("/v1/logs/lrp/web/0?follow=true").await;
    until(&mut stream, "one\n").await;
    write(&first, 0, Stream::Out, b"two\n");
    until(&mut stream, "two\n").await;
    write(&first, 1, Stream::Out, b"three\n");
    fs::remove_file(first.join("00000000.log")).unwrap();
    until(&mut stream, "three\n").await;
    write(&place.rep.dir("2"), 0, Stream::Out, b"four\n");
    until(&mut stream, "four\n").await;
    // Nobody wants it any more.
    *place.desk.records.lock().unwrap() = Records::default();
    assert_eq!(rest(&mut stream).await, b"");
}

#[tokio::test]
async fn programs_of_one_container_come_by_time() {
    let place = Place::start().await;
    let [a, b, say] = ["1/a", "1/b", "1/say"].map(|name| place.rep.dir(name));
    for (segment, at) in [(1, 1), (2, 4), (2, 5), (3, 7)] {
        write_at(&a, segment, at, &format!("a{at}\n"));
    }
    for at in [2, 3, 8] {
        write_at(&b, 1, at, &format!("b{at}\n"));
    }
    write_at(&say, 1, 6, "s6\n");
    // Of a later container, though its clock was behind.
    write_at(&place.rep.dir("2/a"), 1, 0, "next\n");
    let text = "a1\nb2\nb3\na4\na5\ns6\na7\nb8\nnext\n";
    assert_eq!(place.read("/v1/logs/lrp/web/0").await.body, text);
    assert_eq!(place.read("/v1/logs/lrp/web/0?tail=4").await.body, "s6\na7\nb8\nnext\n");
}

#[tokio::test]
async fn following_reads_all_programs_of_a_container_at_once() {
    let place = Place::start().await;
    let (a, b) = (place.rep.dir("1/a"), place.rep.dir("1/b"));
    write_at(&a, 1, 1, "a1\n");
    let mut stream = place.open("/v1/logs/lrp/web/0?follow=true").await;
    until(&mut stream, "a1\n").await;
    for at in (2..20).step_by(3) {
        write_at(&b, 1, at, &format!("b{at}\n"));
        until(&mut stream, &format!("b{at}\n")).await;
        write_at(&a, 1, at + 1, &format!("a{at}\n"));
        until(&mut stream, &format!("a{at}\n")).await;
        // Others begin while these go on.
        write_at(&place.rep.dir(&format!("1/c{at}")), 1, at + 2, &format!("c{at}\n"));
        until(&mut stream, &format!("c{at}\n")).await;
    }
}

#[tokio::test]
async fn what_was_removed_before_it_was_read_is_told() {
    let place = Place::start().await;
    let dir = place.rep.dir("1/a");
    write_at(&dir, 3, 1, "one\n");
    let mut stream = place.open("/v1/logs/lrp/web/0?follow=true&format=events").await;
    // What was gone before is not told.
    let begin = until(&mut stream, "one").await;
    assert!(!begin.contains("removed"), "{begin}");
    write_at(&dir, 6, 2, "six\n");
    fs::remove_file(dir.join("00000003.log")).unwrap();
    let told = until(&mut stream, "six").await;
    let note =
        "2 files of this log were removed before they were read: about 34 bytes may be missing";
    assert!(told.contains(note), "{told}");
}

#[tokio::test]
async fn following_goes_along_to_another_cell() {
    let place = Place::start().await;
    write(&place.rep.dir("1"), 0, Stream::Out, b"here\n");
    let other =
        Arc::new(FakeRep { root: tempfile::tempdir().unwrap(), live: AtomicBool::new(true) });
    write(&other.dir("1"), 0, Stream::Out, b"there\n");
    let cell = bind_cell(listen("127.0.0.1:0"), other.clone()).await.unwrap();
    place.desk.cell_at("c2", &format!("http://{}", cell.local_addr()));
    let mut stream = place.open("/v1/logs/lrp/web/0?follow=true").await;
    until(&mut stream, "here\n").await;
    place.desk.instance(lrp("web", 0, ActualState::Running, Some("c2")));
    until(&mut stream, "there\n").await;
}

#[tokio::test]
async fn following_a_task_ends_with_it() {
    let place = Place::start().await;
    let dir = place.rep.dir("1");
    let mut stream = place.open("/v1/logs/task/t?follow=true&format=events").await;
    write(&dir, 0, Stream::Out, "hä".as_bytes().split_at(2).0);
    write(&dir, 0, Stream::Out, "hä".as_bytes().split_at(2).1);
    until(&mut stream, r#""text":"ä""#).await;
    place.rep.live.store(false, Ordering::SeqCst);
    let end = String::from_utf8(rest(&mut stream).await).unwrap();
    assert_eq!(end.trim_start(), "event: end\ndata: {}\n\n");
}

#[tokio::test]
async fn what_was_written_last_is_not_lost() {
    let place = Place::start().await;
    write(&place.rep.dir("1"), 0, Stream::Out, b"last words");
    place.rep.live.store(false, Ordering::SeqCst);
    assert_eq!(place.read("/v1/logs/task/t?follow=true").await.body, "last words");
}

#[tokio::test]
async fn damage_is_told_and_the_rest_is_read() {
    let place = Place::start().await;
    let dir = place.rep.dir("1");
    write(&dir, 0, Stream::Out, b"one\n");
    append(&dir, 0, &[9; 40]);
    write(&dir, 1, Stream::Out, b"two\n");
    let text = place.read("/v1/logs/lrp/web/0?format=events").await.body;
    let place_of = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part} in {text}"));
    assert!(place_of("one") < place_of("damaged") && place_of("damaged") < place_of("two"));
}

#[tokio::test]
async fn a_long_log_comes_whole() {
    let place = Place::start().await;
    let dir = place.rep.dir("1");
    let line = "x".repeat(999) + "\n";
    let frame =
        Frame { stream: Stream::Out, at: Timestamp(0), bytes: line.repeat(60).into_bytes() };
    for segment in 0..5 {
        append(&dir, segment, &frame.encode().repeat(10));
    }
    assert_eq!(place.read("/v1/logs/lrp/web/0").await.body.len(), 3_000_000);
    assert_eq!(place.read("/v1/logs/lrp/web/0?tail=100").await.body.len(), 100_000);
    let mut decoder = Decoder::default();
    let bytes = rest(&mut place.open("/v1/logs/lrp/web/0?format=frames").await).await;
    let start = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    decoder.push(&bytes[start..]);
    let mut count = 0;
    while decoder.next_frame().unwrap().is_some() {
        count += 1;
    }
    assert_eq!(count, 50);
}

#[tokio::test]
async fn what_nobody_knows_has_no_log() {
    let place = Place::start().await;
    for path in [
        "/v1/logs/task/none",
        "/v1/logs/lrp/none/0",
        "/v1/logs/lrp/web/x",
        "/v1/logs/task/..%2f..%2fetc",
    ] {
        place.rep.live.store(false, Ordering::SeqCst);
        assert_eq!(place.read(path).await.problem(), (404, "not_found".to_owned()), "{path}");
    }
    assert_eq!(
        place.read("/v1/logs/task/t?format=x").await.problem(),
        (400, "bad_parameter".to_owned())
    );
    // It is there, and has written nothing.
    assert_eq!(place.read("/v1/logs/task/t").await.status, 200);
}

#[tokio::test]
async fn a_cell_that_does_not_answer_is_named() {
    let Place { cell, host, desk, .. } = Place::start().await;
    cell.stop(Duration::ZERO).await;
    let reply = host.get("/v1/logs/task/t").await;
    assert_eq!(reply.problem(), (502, "cell_unreachable".to_owned()));
    assert_eq!(reply.json()["details"]["cell_id"], "c1");
    desk.cells.lock().unwrap()[0].presence.url = "http://10.1.2.3:1".to_owned();
    let reply = host.get("/v1/logs/task/t").await;
    assert!(reply.json()["message"].as_str().unwrap().contains("without TLS"), "{reply:?}");
}
