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

#[tokio::test]
async fn connections_are_counted() {
    let host = Host::with(0xa, Limits { connections: 1, ..LIMITS }).await;
    let mut first = TcpStream::connect(host.at()).await.unwrap();
    first.write_all(metrics(&host).as_bytes()).await.unwrap();
    until(&mut first, "leading 1\n").await;
    let mut second = TcpStream::connect(host.at()).await.unwrap();
    let refused = Reply::parse(&rest(&mut second).await);
    assert_eq!(refused.problem(), (503, "too_many_connections".to_owned()));
    assert!(refused.has("retry-after: 1"));
    first.write_all(metrics(&host).as_bytes()).await.unwrap();
    until(&mut first, "leading 1\n").await;
    drop(first);
    let again = async || host.get("/metrics").await.status == 200;
    eventually(again).await;
}

#[tokio::test]
async fn strangers_make_room_for_those_who_are_let_in() {
    let host = Host::with(0xa, Limits { connections: 3, ..LIMITS }).await;
    let mut known = TcpStream::connect(host.at()).await.unwrap();
    known.write_all(metrics(&host).as_bytes()).await.unwrap();
    until(&mut known, "leading 1\n").await;
    let mut strangers = Vec::new();
    for _ in 0..20 {
        let mut stranger = TcpStream::connect(host.at()).await.unwrap();
        stranger.write_all(b"GET / HT").await.unwrap();
        strangers.push(stranger);
    }
    assert_eq!(host.get("/metrics").await.status, 200);
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
        assert_eq!(reply.problem(), (503, "busy".to_owned()));
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
