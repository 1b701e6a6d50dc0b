//! Logs of runs that lie with another host than the one that leads.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use kapell_core::log::{Frame, Stream};
use kapell_core::run::{Run, RunId, RunState};

use super::desk::run;
use super::*;

const JOB: &str = r#"{"job_id":"j","domain":"d","command":"true"}"#;

fn wrote(dir: &Path, run_id: &str, attempt: u32, text: &str) {
    let part = dir.join(run_id).join(attempt.to_string()).join("main");
    std::fs::create_dir_all(&part).unwrap();
    let frame = Frame { stream: Stream::Out, at: Timestamp(7), bytes: text.as_bytes().to_vec() };
    let file = OpenOptions::new().create(true).append(true).open(part.join("00000001.log"));
    file.unwrap().write_all(&frame.encode()).unwrap();
}

/// A host that leads and one that led before and has the logs of its time.
async fn two() -> (Host, Arc<FakeDesk>, Host, tempfile::TempDir) {
    let (leader, desk) = Host::with_board().await;
    let other = Host::start(0xb).await;
    let dir = tempfile::tempdir().unwrap();
    *other.face.run_logs.lock().unwrap() = Some(dir.path().to_owned());
    desk.job(JOB);
    (leader, desk, other, dir)
}

fn led_by(id: &str, state: RunState, host: &Host) -> Run {
    let gone = "127.0.0.1:1".to_owned();
    let mut run = run(id, state, 100_000);
    run.log_hosts = vec![gone.into(), host.at().to_string().into()];
    run
}

#[tokio::test]
async fn a_log_is_fetched_from_the_host_that_led_its_run() {
    let (leader, desk, other, dir) = two().await;
    desk.run(led_by("j:100", RunState::Completed, &other));
    wrote(dir.path(), "j:100", 0, "one\n");
    wrote(dir.path(), "j:100", 0, "two\n");
    for (query, want) in [("", "one\ntwo\n"), ("?tail=1", "two\n"), ("?follow=true", "one\ntwo\n")]
    {
        let reply = leader.get(&format!("/v1/runs/j:100/logs{query}")).await;
        assert_eq!(reply.status, 200, "{query}: {reply:?}");
        assert!(reply.body.contains(want), "{query}: {reply:?}");
    }
    let events = leader.get("/v1/runs/j:100/logs?format=events").await;
    assert!(events.body.contains("event: end"), "{events:?}");
}

#[tokio::test]
async fn a_log_elsewhere_is_followed_while_it_is_written_and_to_the_end_of_the_attempt() {
    let (leader, desk, other, dir) = two().await;
    desk.run(led_by("j:100", RunState::Running, &other));
    wrote(dir.path(), "j:100", 0, "one\n");
    let mut stream = TcpStream::connect(leader.at()).await.unwrap();
    let head = format!(
        "GET /v1/runs/j:100/logs?follow=true HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {TOKEN}\r\nconnection: close\r\n\r\n",
        leader.at()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    until(&mut stream, "one").await;
    wrote(dir.path(), "j:100", 0, "two\n");
    until(&mut stream, "two").await;
    desk.run(led_by("j:100", RunState::Completed, &other));
    timeout(DEADLINE, rest(&mut stream)).await.expect("it ends with the attempt");
}

#[tokio::test]
async fn it_is_told_which_host_has_a_log_and_does_not_answer() {
    let (leader, desk, other, dir) = two().await;
    desk.run(led_by("j:100", RunState::Completed, &other));
    let reply = leader.get("/v1/runs/j:100/logs").await;
    assert_eq!(
        reply.problem(),
        (502, "host_unreachable".to_owned()),
        "one has nothing, one is away"
    );
    assert!(
        reply.body.contains("the log lies with host 127.0.0.1:1, which does not answer"),
        "{reply:?}"
    );
    let mut known = led_by("j:200", RunState::Completed, &other);
    known.log_hosts.remove(0);
    desk.run(known);
    let reply = leader.get("/v1/runs/j:200/logs").await;
    assert_eq!(reply.problem(), (404, "not_found".to_owned()), "all that may have it were asked");
    drop(dir);
}

#[tokio::test]
async fn only_hosts_of_the_cluster_are_given_logs_by_a_host() {
    let (_leader, _desk, other, dir) = two().await;
    wrote(dir.path(), "j:100", 0, "one\n");
    let reply = other.get("/v1/host/logs/j:100/0").await;
    assert_eq!(reply.status, 200, "whoever leads: {reply:?}");
    assert_eq!(other.get("/v1/host/logs/j:100/1").await.status, 404);
    assert_eq!(other.get("/v1/host/logs/..%2fx/1").await.status, 404);
    assert_eq!(other.ask("POST", "/v1/host/logs/j:100/0", "").await.status, 405);
    let mut stream = TcpStream::connect(other.at()).await.unwrap();
    let head = format!(
        "GET /v1/host/logs/j:100/0 HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n",
        other.at()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let answer = String::from_utf8(rest(&mut stream).await).unwrap();
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
}

#[tokio::test]
async fn a_host_that_clears_up_asks_its_board_or_the_leader_which_runs_there_are() {
    let (leader, desk, other, _dir) = two().await;
    desk.run(run("j:1", RunState::Completed, 1_000));
    desk.run(run("j:2", RunState::Running, 2_000));
    let ids = ["j:1", "j:2", "j:3"].map(|id| RunId::parse(id).unwrap());
    let want = BTreeMap::from([(ids[0].clone(), false), (ids[1].clone(), true)]);
    let here = super::super::known_runs(&leader.server, Arc::<Fake>::clone(&leader.face));
    assert_eq!(here.known(&ids).await, Ok(want.clone()));
    let there = super::super::known_runs(&other.server, Arc::<Fake>::clone(&other.face));
    assert!(there.known(&ids).await.is_err(), "nobody leads as far as it knows");
    other.face.follow(0xa, &leader.at());
    assert_eq!(there.known(&ids).await, Ok(want));
    other.face.follow(0xa, "127.0.0.1:1");
    assert!(there.known(&ids).await.is_err(), "who cannot ask does not guess");
}
