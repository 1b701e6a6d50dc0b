//! Downloads and uploads.

use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use kapell_api::v1::Cancel;
use kapell_backend::containers::Containers as _;
use kapell_core::board::{Action, Download, Task, Upload};

use super::recipes::{is_completed, job, serial};
use super::stage::{EPOCH, Stage, run, settings};
use crate::cell::{CellSettings, HttpTransfers, LocalProbes, Probes as _, Transfers as _};

/// Of `hello`.
const CHECKSUM: &str = "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

fn download(from: &str, checksum: Option<&str>) -> Action {
    let checksum = checksum.map(str::to_owned);
    Action::Download(Download { from: from.to_owned(), to: "file".to_owned(), checksum })
}

fn upload(from: &str, to: &str) -> Action {
    Action::Upload(Upload { from: from.to_owned(), to: to.to_owned() })
}

/// Runs one thing as a task.
async fn done(stage: &Stage, action: Action) -> Task {
    stage.place_task_with(&job(), action);
    stage.until("it is over", |stage| is_completed(stage) && stage.is_empty()).await;
    assert_eq!(left_over(stage), 0, "nothing is left of what was on its way");
    stage.board.records().tasks.remove(&job()).unwrap()
}

fn left_over(stage: &Stage) -> usize {
    std::fs::read_dir(stage.dir.path().join("downloads")).map_or(0, Iterator::count)
}

#[tokio::test(start_paused = true)]
async fn a_file_comes_in_is_worked_on_and_leaves() {
    let stage = Stage::new().await;
    stage.outside.files.lock().unwrap().insert("http://a/in".to_owned(), b"hello".to_vec());
    let get = download("http://a/in", Some(CHECKSUM));
    let put = upload("out", "http://a/out");
    stage.place_task_with(&job(), serial(&[get, run("work"), put]));
    stage.until("it is worked on", |stage| stage.containers.paths() == ["work"]).await;
    let dir = stage.containers.dir("i-job");
    assert_eq!(std::fs::read(dir.join("file")).unwrap(), b"hello");
    std::fs::write(dir.join("out"), "bye").unwrap();
    stage.containers.exit_with("i-job", 0);
    stage.until("it is over", |stage| is_completed(stage) && stage.is_empty()).await;
    let task = stage.board.task(&job()).unwrap();
    assert!(!task.failed, "{task:?}");
    assert_eq!(*stage.outside.sent.lock().unwrap(), [("http://a/out".to_owned(), b"bye".to_vec())]);
    assert_eq!(left_over(&stage), 0);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_moved_is_a_failure_that_says_why() {
    let small = CellSettings { download_bytes: 5, upload_bytes: 5, ..settings() };
    let stage = Stage::with(small).await;
    stage.outside.files.lock().unwrap().insert("http://a/in".to_owned(), b"hello".to_vec());
    stage.outside.files.lock().unwrap().insert("http://a/long".to_owned(), b"hello!".to_vec());
    stage.outside.is_ill("http://a/out", Some("the answer is 500"));
    let wrong = format!("{}0", &CHECKSUM[..CHECKSUM.len() - 1]);
    for (action, reason) in [
        (download("http://a/absent", None), "the answer is 404"),
        (download("http://a/long", None), "it is longer than 5 bytes"),
        (download("http://a/in", Some(&wrong)), "its checksum is sha256:2cf24dba"),
        (download("http://a/in", Some("md5:00")), "its checksum `md5:00` is not `sha256:…`"),
        (upload("absent", "http://a/out"), "No such file"),
    ] {
        let task = done(&stage, action).await;
        assert!(task.failed && task.failure_reason.contains(reason), "{task:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn files_of_the_machine_are_had_only_from_where_its_operator_says() {
    let laid_out = tempfile::tempdir().unwrap();
    let at = |name: &str| laid_out.path().join(name);
    std::fs::write(at("good"), "hello").unwrap();
    std::fs::write(at("long"), "hello, hello").unwrap();
    std::fs::create_dir(at("dir")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", at("link")).unwrap();
    std::os::unix::fs::symlink("/etc", at("etc")).unwrap();
    let url = |path: &Path| format!("file://{}", path.display());
    let none = Stage::new().await;
    let task = done(&none, download(&url(&at("good")), None)).await;
    assert!(task.failure_reason.contains("this cell gives none of its files away"), "{task:?}");
    let downloads = Some(laid_out.path().to_owned());
    let stage = Stage::with(CellSettings { downloads, download_bytes: 8, ..settings() }).await;
    let task = done(&stage, download(&url(&at("good")), Some(CHECKSUM))).await;
    assert!(!task.failed, "{task:?}");
    let only = "only files below";
    for (from, reason) in [
        (url(Path::new("/etc/passwd")), only),
        (url(&at("../passwd")), only),
        (url(&at("link")), only),
        (url(&at("etc/passwd")), only),
        (url(&at("dir")), "it is not a plain file"),
        (url(&at("long")), "it is longer than 8 bytes"),
        (url(&at("absent")), "No such file"),
        ("file://elsewhere/file".to_owned(), "it names no file of this machine"),
    ] {
        let task = done(&stage, download(&from, None)).await;
        assert!(task.failed && task.failure_reason.contains(reason), "{from}: {task:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_transfer_that_hangs_is_cancelled_or_takes_too_long() {
    let limit = Duration::from_secs(15);
    let stage = Stage::with(CellSettings { transfer_limit: limit, ..settings() }).await;
    stage.outside.hangs("http://a/in");
    stage.place_task_with(&job(), download("http://a/in", None));
    stage.until("it is under way", |stage| stage.outside.asked("http://a/in") == 1).await;
    stage.board.records().tasks.clear();
    let cancel = Cancel { task_guid: job(), instance_guid: "i-job".into(), at_once: false };
    stage.cell.cancel(EPOCH, &cancel).unwrap();
    stage.within(Duration::from_secs(2), "it is gone", Stage::is_empty).await;
    let task = done(&stage, download("http://a/in", None)).await;
    assert!(task.failure_reason.contains("the download took longer than 15s"), "{task:?}");
}

#[tokio::test(start_paused = true)]
async fn transfers_are_few_at_once() {
    let stage = Stage::with(CellSettings { transfers: 2, ..settings() }).await;
    stage.outside.hangs("http://a/in");
    let all = (0..5).map(|_| download("http://a/in", None)).collect();
    let several = kapell_core::board::action::Several { actions: all };
    stage.place_task_with(&job(), Action::Parallel(several));
    stage.until("two are under way", |stage| stage.outside.asked("http://a/in") == 2).await;
    stage.place_task(&"other".into());
    stage.until("another runs", |stage| stage.containers.paths() == ["job"]).await;
    assert_eq!(stage.outside.most_at_once.lock().unwrap().1, 2);
}

/// Answers once, over a real connection, and gives what it was asked.
fn answers_once(answer: &'static str) -> (u16, std::thread::JoinHandle<String>) {
    use std::io::{Read as _, Write as _};
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut asked = [0; 4096];
        let length = stream.read(&mut asked).unwrap();
        stream.write_all(answer.as_bytes()).unwrap();
        String::from_utf8_lossy(&asked[..length]).into_owned()
    });
    (port, server)
}

#[tokio::test]
async fn files_are_moved_by_http_and_never_from_where_secrets_are() {
    let dir = tempfile::tempdir().unwrap();
    let into = dir.path().join("new/file");
    let web = HttpTransfers::new(None, Duration::from_secs(20));
    let hello = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";
    let (port, server) = answers_once(hello);
    web.fetch(&format!("http://127.0.0.1:{port}/a?b=c"), &into, 5).await.unwrap();
    assert!(server.join().unwrap().starts_with("GET /a?b=c HTTP/1.1\r\n"));
    assert_eq!(std::fs::read(&into).unwrap(), b"hello");
    let (port, _server) = answers_once(hello);
    let long = web.fetch(&format!("http://127.0.0.1:{port}/"), &into, 4).await.unwrap_err();
    assert!(long.contains("longer than 4 bytes"), "{long}");
    let (port, _server) = answers_once("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n");
    let absent = web.fetch(&format!("http://127.0.0.1:{port}/"), &into, 4).await.unwrap_err();
    assert_eq!(absent, "the answer is 404 Not Found");
    let secret = web.fetch("http://169.254.169.254/secret", &into, 4).await.unwrap_err();
    assert!(secret.contains("must not be called"), "{secret}");
    let (port, server) = answers_once("HTTP/1.1 201 Created\r\ncontent-length: 0\r\n\r\n");
    web.send(&format!("http://127.0.0.1:{port}/up"), b"bye".to_vec()).await.unwrap();
    assert!(server.join().unwrap().starts_with("PUT /up HTTP/1.1\r\n"));
    let secret = web.send("http://169.254.169.254/", Vec::new()).await.unwrap_err();
    assert!(secret.contains("must not be called"), "{secret}");
}

#[tokio::test]
async fn ports_are_asked_over_real_connections() {
    for (answer, well) in [("204 No Content", true), ("302 Found", true), ("503 Busy", false)] {
        let text = format!("HTTP/1.1 {answer}\r\ncontent-length: 0\r\n\r\n");
        let (port, server) = answers_once(Box::leak(text.into_boxed_str()));
        let asked = LocalProbes.http(port, "/health").await;
        assert_eq!(asked.is_ok(), well, "{asked:?}");
        assert!(server.join().unwrap().starts_with("GET /health HTTP/1.1\r\n"));
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    LocalProbes.tcp(port).await.unwrap();
    drop(listener);
    let refused = LocalProbes.tcp(port).await.unwrap_err();
    assert!(refused.starts_with(&format!("cannot connect to port {port}: ")), "{refused}");
}
