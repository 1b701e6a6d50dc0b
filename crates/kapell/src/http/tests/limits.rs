use std::io::ErrorKind;
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

#[tokio::test]
async fn connections_are_counted() {
    let host = Host::with(0xa, Limits { connections: 1, ..LIMITS }).await;
    let request = format!(
        "GET /metrics HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {TOKEN}\r\n\r\n",
        host.at()
    );
    let mut first = TcpStream::connect(host.at()).await.unwrap();
    first.write_all(request.as_bytes()).await.unwrap();
    until(&mut first, "leading 1\n").await;
    let mut second = TcpStream::connect(host.at()).await.unwrap();
    second.write_all(request.as_bytes()).await.unwrap();
    for _ in 0..20 {
        first.write_all(request.as_bytes()).await.unwrap();
        until(&mut first, "leading 1\n").await;
    }
    let early = second.try_read(&mut [0; 1]);
    assert!(early.is_err_and(|error| error.kind() == ErrorKind::WouldBlock));
    drop(first);
    until(&mut second, "leading 1\n").await;
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
