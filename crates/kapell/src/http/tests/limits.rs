use std::time::Instant;

use super::upstream::Slow;
use super::*;

const SHORT: Duration = Duration::from_millis(300);

#[tokio::test]
async fn a_head_that_never_ends_is_not_waited_for() {
    let host = Host::with(0xa, Limits { head: SHORT, ..LIMITS }).await;
    for start in ["", "GET /healthz HTTP/1.1\r\nhost: loc"] {
        let mut stream = TcpStream::connect(host.at()).await.unwrap();
        stream.write_all(start.as_bytes()).await.unwrap();
        assert_eq!(String::from_utf8_lossy(&rest(&mut stream).await), "");
    }
}

#[tokio::test]
async fn an_idle_connection_is_closed() {
    let host = Host::with(0xa, Limits { head: SHORT, ..LIMITS }).await;
    let mut stream = TcpStream::connect(host.at()).await.unwrap();
    let request = format!(
        "GET /metrics HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {TOKEN}\r\n\r\n",
        host.at()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    assert_eq!(Reply::parse(&rest(&mut stream).await).status, 200);
}

#[tokio::test]
async fn a_head_has_a_size() {
    let host = Host::start(0xa).await;
    let mut stream = TcpStream::connect(host.at()).await.unwrap();
    let head = format!("GET / HTTP/1.1\r\nx: {}", "x".repeat(LIMITS.head_bytes + 8192));
    // It may hang up before all was sent.
    let _sent = stream.write_all(head.as_bytes()).await;
    let got = rest(&mut stream).await;
    assert!(got.is_empty() || got.starts_with(b"HTTP/1.1 431 "), "{got:?}");
}

#[tokio::test]
async fn a_body_for_us_has_a_size() {
    let host = Host::leading(0xa).await;
    let more = format!("content-length: {}\r\n\r\n", LIMITS.body_bytes + 1);
    let reply = host.ask("POST", "/x", &more).await;
    assert_eq!(reply.problem(), (413, "body_too_large".to_owned()));
    let reply = host.ask("POST", "/x", "content-length: 5\r\n\r\nhello").await;
    assert_eq!(reply.status, 404);
}

async fn eventually(is_so: impl AsyncFn() -> bool) {
    let look = async {
        while !is_so().await {
            tokio::task::yield_now().await;
        }
    };
    timeout(DEADLINE, look).await.unwrap();
}

fn metrics(host: &Host) -> String {
    format!("GET /metrics HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {TOKEN}\r\n\r\n", host.at())
}

/// A reader of events, who may stay for as long as they like.
async fn reader(host: &Host) -> TcpStream {
    let mut stream = TcpStream::connect(host.at()).await.unwrap();
    let request = format!(
        "GET /v1/events HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {TOKEN}\r\n\r\n",
        host.at()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    until(&mut stream, "retry: 1000").await;
    stream
}

async fn host_with(limits: Limits) -> (Host, Arc<FakeDesk>) {
    let (host, desk) = (Host::with(0xa, limits).await, FakeDesk::new());
    host.face.follow(0xa, &host.at());
    *host.face.board.lock().unwrap() = Some(Arc::clone(&desk));
    (host, desk)
}

/// Whoever is turned away may not even get to send what they want.
async fn is_let_in(host: &Host) -> bool {
    let mut stream = TcpStream::connect(host.at()).await.unwrap();
    let _sent = stream.write_all(metrics(host).as_bytes()).await;
    let mut head = [0; 12];
    stream.read_exact(&mut head).await.is_ok() && &head == b"HTTP/1.1 200"
}

const PRESENCE: &str = r#"{"cell_id":"c","url":"http://127.0.0.1:1","zone":"z","capacity":{"memory_mb":1,"disk_mb":1,"containers":1}}"#;

#[tokio::test]
async fn connections_are_counted() {
    let (host, _desk) = host_with(Limits { connections: 1, reserve: 0, ..LIMITS }).await;
    let first = reader(&host).await;
    let mut second = TcpStream::connect(host.at()).await.unwrap();
    let refused = Reply::parse(&rest(&mut second).await);
    assert_eq!(refused.problem(), (429, "too_many_connections".to_owned()));
    assert!(refused.has("retry-after: 1"));
    drop(first);
    eventually(async || is_let_in(&host).await).await;
}

#[tokio::test]
async fn cells_have_room_that_others_cannot_take() {
    let (host, _desk) = host_with(Limits { connections: 1, reserve: 1, ..LIMITS }).await;
    let _first = reader(&host).await;
    for _ in 0..3 {
        let refused = host.get("/metrics").await;
        assert_eq!(refused.problem(), (429, "too_many_connections".to_owned()));
        assert!(refused.has("retry-after: 1") && refused.has("connection: close"));
        let heard = host.send("PUT", "/v1/cells/c", PRESENCE).await;
        assert_eq!(heard.status, 200, "{heard:?}");
    }
}

#[tokio::test]
async fn requests_are_counted_and_those_of_cells_are_not() {
    let (host, desk) = host_with(Limits { requests: 1, ..LIMITS }).await;
    desk.hold();
    let others = async {
        eventually(async || !desk.asked.lock().unwrap().is_empty()).await;
        let refused = host.get("/v1/tasks").await;
        assert_eq!(refused.problem(), (429, "busy".to_owned()));
        assert!(refused.has("retry-after: 1"));
        assert_eq!(host.send("PUT", "/v1/cells/c", PRESENCE).await.status, 200);
        assert_eq!(host.get("/healthz").await.status, 200);
        desk.let_go();
    };
    let (first, ()) = tokio::join!(host.send("PUT", "/v1/domains/d", "{}"), others);
    assert_eq!(first.status, 204, "{first:?}");
    assert_eq!(host.get("/v1/tasks").await.status, 200);
}

#[tokio::test]
async fn who_keeps_us_waiting_makes_room_for_others() {
    let (host, _desk) = host_with(Limits { connections: 2, reserve: 1, ..LIMITS }).await;
    let request = format!(
        "POST /v1/tasks HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {TOKEN}\r\n\
         content-type: application/json\r\ncontent-length: 100\r\n\r\n{{",
        host.at()
    );
    let mut slow = Vec::new();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(host.at()).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        slow.push(stream);
    }
    // First nobody is kept waiting for long, then they are.
    eventually(async || is_let_in(&host).await).await;
    let mut first = slow.remove(0);
    assert_eq!(rest(&mut first).await, b"");
}

#[tokio::test]
async fn a_body_that_takes_too_long_is_refused() {
    let (host, _desk) = host_with(Limits { body: SHORT, ..LIMITS }).await;
    let more = "content-type: application/json\r\ncontent-length: 100\r\n\r\n{";
    let reply = host.ask("POST", "/v1/tasks", more).await;
    assert_eq!(reply.problem(), (408, "body_stalled".to_owned()));
    assert!(reply.has("connection: close"));
    let more = "origin: http://kapell.example:7070\r\ncontent-length: 100\r\n\r\nt";
    let host = Host::with(0xa, Limits { head: SHORT, ..LIMITS }).await;
    assert_eq!(host.ask("POST", "/login", more).await.status, 408);
}

#[tokio::test]
async fn an_answer_that_nobody_takes_is_given_up() {
    let (host, desk) = host_with(Limits { stall: SHORT, ..LIMITS }).await;
    let annotation = "x".repeat(9_000);
    for number in 0..2_000 {
        desk.desire(&format!(
            r#"{{"process_guid":"p{number}","domain":"d","instances":0,"annotation":"{annotation}","action":{{"run":{{"path":"true"}}}}}}"#
        ));
    }
    let mut stream = TcpStream::connect(host.at()).await.unwrap();
    let request = format!(
        "GET /v1/desired-lrps HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {TOKEN}\r\n\r\n",
        host.at()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    // What was on its way can be read; the rest never comes.
    eventually(async || host.server.open() == 1).await;
    eventually(async || host.server.open() == 0).await;
    let mut taken = 0;
    let mut bytes = vec![0; 1 << 16];
    while let Ok(count @ 1..) = stream.read(&mut bytes).await {
        taken += count;
    }
    assert!(taken < 2_000 * 9_000, "{taken}");
}

#[tokio::test]
async fn strangers_make_room_for_those_who_are_let_in() {
    let host = Host::with(0xa, Limits { connections: 2, reserve: 1, ..LIMITS }).await;
    let mut known = TcpStream::connect(host.at()).await.unwrap();
    known.write_all(metrics(&host).as_bytes()).await.unwrap();
    until(&mut known, "leading 1\n").await;
    let mut strangers = Vec::new();
    for _ in 0..20 {
        let mut stranger = TcpStream::connect(host.at()).await.unwrap();
        // Whoever finds no room is turned away at once.
        let _sent = stranger.write_all(b"GET / HT").await;
        strangers.push(stranger);
    }
    // Everybody has a moment to say who they are.
    eventually(async || is_let_in(&host).await).await;
    // Those who came first went first, and whoever was let in stays.
    let mut byte = [0; 1];
    let gone = timeout(DEADLINE, strangers[0].read(&mut byte)).await.unwrap();
    assert!(matches!(gone, Ok(0) | Err(_)), "{gone:?}");
    known.write_all(metrics(&host).as_bytes()).await.unwrap();
    until(&mut known, "leading 1\n").await;
}

#[tokio::test]
async fn streams_leave_connections_for_others() {
    let host = Host::with(0xa, Limits { streams: 2, forwards: 4, ..LIMITS }).await;
    host.face.follow(0xa, &host.at());
    *host.face.board.lock().unwrap() = Some(FakeDesk::new());
    let standby = Host::with(0xb, Limits { streams: 2, forwards: 2, ..LIMITS }).await;
    standby.face.follow(0xa, &host.at());
    let open = async |host: &Host| {
        let mut stream = TcpStream::connect(host.at()).await.unwrap();
        let request = format!(
            "GET /v1/events HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {TOKEN}\r\n\r\n",
            host.at()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        until(&mut stream, "retry: 1000").await;
        stream
    };
    let _forwarded = open(&standby).await;
    let refused = standby.get("/v1/events").await;
    assert_eq!(refused.problem(), (503, "too_many_streams".to_owned()));
    assert_eq!(standby.get("/v1/tasks").await.status, 200);
    let second = open(&host).await;
    for path in ["/v1/events", "/v1/logs/task/t?follow=true"] {
        let refused = host.get(path).await;
        assert_eq!(refused.problem(), (503, "too_many_streams".to_owned()), "{path}");
        assert!(refused.has("retry-after: 1"));
    }
    assert_eq!(host.get("/v1/tasks").await.status, 200);
    drop(second);
    let again = async || {
        let mut stream = TcpStream::connect(host.at()).await.unwrap();
        let request = format!(
            "GET /v1/events HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {TOKEN}\r\n\r\n",
            host.at()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut head = [0; 12];
        stream.read_exact(&mut head).await.unwrap();
        &head == b"HTTP/1.1 200"
    };
    eventually(again).await;
}

#[tokio::test]
async fn requests_under_way_are_counted() {
    let leader = Slow::start().await;
    let standby = Host::with(0xb, Limits { forwards: 1, ..LIMITS }).await;
    standby.face.follow(0xa, &leader.at);
    let second = async {
        leader.asked().await;
        let reply = standby.get("/second").await;
        assert_eq!(reply.problem(), (429, "busy".to_owned()));
        assert!(reply.has("retry-after: 1"));
        leader.go.notify_one();
    };
    let (first, ()) = tokio::join!(standby.get("/first"), second);
    assert_eq!((first.status, first.body.as_str()), (200, "late"));
}

#[tokio::test]
async fn a_silent_leader_is_not_waited_for() {
    let leader = Slow::start().await;
    let standby = Host::with(0xb, Limits { stall: SHORT, ..LIMITS }).await;
    standby.face.follow(0xa, &leader.at);
    assert_eq!(standby.get("/x").await.problem(), (504, "leader_silent".to_owned()));
    leader.gone().await;
}

#[tokio::test]
async fn a_body_that_moves_may_take_long() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let stall = Duration::from_millis(300);
    let standby = Host::with(0xb, Limits { stall, ..LIMITS }).await;
    standby.face.follow(0xa, &listener.local_addr().unwrap());
    let mut client = TcpStream::connect(standby.at()).await.unwrap();
    let head = format!(
        "POST / HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {TOKEN}\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n",
        standby.at()
    );
    client.write_all(head.as_bytes()).await.unwrap();
    let (mut leader, _) = timeout(DEADLINE, listener.accept()).await.unwrap().unwrap();
    let start = Instant::now();
    while start.elapsed() < stall * 3 {
        client.write_all(b"3\r\none\r\n").await.unwrap();
        until(&mut leader, "3\r\none\r\n").await;
    }
    leader.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
    assert_eq!(Reply::parse(&rest(&mut client).await).status, 204);
}
