use super::upstream::Slow;
use super::*;

#[tokio::test]
async fn requests_in_flight_are_finished() {
    let leader = Slow::start().await;
    let Host { server, face } = Host::behind(&leader.at).await;
    let at = server.local_addr();
    let mut idle = TcpStream::connect(at).await.unwrap();
    let mut client = TcpStream::connect(at).await.unwrap();
    let request = format!("GET /x HTTP/1.1\r\nhost: {at}\r\nauthorization: Bearer {TOKEN}\r\n\r\n");
    client.write_all(request.as_bytes()).await.unwrap();
    leader.asked().await;
    let stop = async {
        server.stop(DEADLINE).await;
        drop(face);
    };
    let finish = async {
        // Whoever waits with nothing to ask is sent away, and nobody new comes in.
        assert_eq!(rest(&mut idle).await, b"");
        assert!(TcpStream::connect(at).await.is_err());
        leader.go.notify_one();
        Reply::parse(&rest(&mut client).await)
    };
    let ((), reply) = timeout(DEADLINE, async { tokio::join!(stop, finish) }).await.unwrap();
    assert_eq!((reply.status, reply.body.as_str()), (200, "late"));
    assert!(reply.has("connection: close"), "{}", reply.head);
}

#[tokio::test]
async fn the_grace_ends() {
    let leader = Slow::start().await;
    let Host { server, .. } = Host::behind(&leader.at).await;
    let at = server.local_addr();
    let mut client = TcpStream::connect(at).await.unwrap();
    let request = format!("GET /x HTTP/1.1\r\nhost: {at}\r\nauthorization: Bearer {TOKEN}\r\n\r\n");
    client.write_all(request.as_bytes()).await.unwrap();
    leader.asked().await;
    timeout(DEADLINE, server.stop(Duration::from_millis(20))).await.unwrap();
    assert_eq!(rest(&mut client).await, b"");
    leader.gone().await;
}

#[tokio::test]
async fn nothing_is_left_after_a_stop() {
    let host = Host::start(0xa).await;
    host.get("/healthz").await;
    let (at, face) = (host.at(), Arc::downgrade(&host.face));
    host.server.stop(Duration::ZERO).await;
    drop(host.face);
    assert!(face.upgrade().is_none(), "somebody still shows it");
    // The address is free again.
    Host::open(0xa, LIMITS, listen(&at.to_string())).await.unwrap();
}
