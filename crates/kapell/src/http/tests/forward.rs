use super::upstream::{Echo, Slow};
use super::*;

#[tokio::test]
async fn a_standby_has_the_leader_answer() {
    let leader = Host::leading(0xa).await;
    let standby = Host::behind(&leader.at()).await;
    let reply = standby.get("/v1/lrps").await;
    assert_eq!(reply.problem(), (404, "not_found".to_owned()));
    assert!(reply.has("kapell-served-by: 000000000000000a"), "{}", reply.head);
    assert!(reply.has("via: 1.1 kapell"), "{}", reply.head);
    // What it knows itself it says itself.
    assert!(standby.get("/healthz").await.has("kapell-served-by: 000000000000000b"));
}

#[tokio::test]
async fn a_page_of_the_standby_may_ask_the_leader() {
    let leader = Host::leading(0xa).await;
    let standby = Host::behind(&leader.at()).await;
    let more = format!("origin: http://{}\r\n\r\n", standby.at());
    assert_eq!(standby.ask("GET", "/v1/lrps", &more).await.status, 404);
}

#[tokio::test]
async fn a_request_goes_on_as_it_came() {
    let leader = Echo::start().await;
    let standby = Host::behind(&leader.at).await;
    let more = "x-mine: 1\r\nx-mine: 2\r\nconnection: x-hop\r\nx-hop: 1\r\nkeep-alive: 5\r\nte: trailers\r\n\
                proxy-authorization: Basic x\r\nupgrade: websocket\r\nvia: 1.0 other\r\ncontent-length: 5\r\n\r\nhello";
    let reply = standby.ask("PATCH", "/a/b%20c?d=e&f", more).await;
    assert_eq!((reply.status, reply.body.as_str()), (202, "hello"));
    let at = leader.at;
    for line in [
        "x-line: patch /a/b%20c?d=e&f",
        "got-x-mine: 1",
        "got-x-mine: 2",
        "got-content-length: 5",
        "got-via: 1.0 other",
        "got-via: 1.1 kapell",
        "got-kapell-forwarded-by: 000000000000000b",
        &format!("got-host: {at}"),
        &format!("got-authorization: bearer {TOKEN}"),
        "content-length: 5",
    ] {
        assert!(reply.has(line), "{line} in {}", reply.head);
    }
    for gone in [
        "got-connection",
        "got-x-hop",
        "got-keep-alive",
        "got-te:",
        "got-proxy-authorization",
        "got-upgrade",
        "x-secret",
    ] {
        assert!(!reply.head.contains(gone), "{gone} in {}", reply.head);
    }
    let head = standby.ask("HEAD", "/", "").await;
    assert_eq!((head.status, head.body.as_str()), (202, ""));
}

#[tokio::test]
async fn bodies_pass_while_they_come() {
    let leader = Echo::start().await;
    let standby = Host::behind(&leader.at).await;
    let mut stream = TcpStream::connect(standby.at()).await.unwrap();
    let head = format!(
        "POST / HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {TOKEN}\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n",
        standby.at()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    for word in ["one", "two", "six"] {
        stream.write_all(format!("3\r\n{word}\r\n").as_bytes()).await.unwrap();
        // It comes back before the next was sent.
        until(&mut stream, &format!("3\r\n{word}\r\n")).await;
    }
    stream.write_all(b"0\r\n\r\n").await.unwrap();
    assert_eq!(rest(&mut stream).await, b"0\r\n\r\n");
}

#[tokio::test]
async fn a_large_body_passes_whole() {
    let leader = Echo::start().await;
    let standby = Host::behind(&leader.at).await;
    let bytes: Vec<u8> = (0..8 * 1024 * 1024_u32).map(|at| (at % 251) as u8).collect();
    let head = format!(
        "POST / HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {TOKEN}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        standby.at(),
        bytes.len()
    );
    let (mut reader, mut writer) = TcpStream::connect(standby.at()).await.unwrap().into_split();
    let write = async {
        writer.write_all(head.as_bytes()).await.unwrap();
        writer.write_all(&bytes).await.unwrap();
    };
    let ((), got) = tokio::join!(write, rest(&mut reader));
    let start = got.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    assert!(got[start..] == bytes, "{} of {} bytes", got.len() - start, bytes.len());
}

#[tokio::test]
async fn nothing_is_forwarded_twice() {
    let (one, two) = (Host::start(0xa).await, Host::start(0xb).await);
    one.face.follow(0xb, &two.at());
    two.face.follow(0xa, &one.at());
    let reply = one.get("/v1/lrps").await;
    assert_eq!(reply.problem(), (503, "forwarded_twice".to_owned()));
    assert!(reply.has("kapell-served-by: 000000000000000b") && reply.has("retry-after: 1"));
    let details = &reply.json()["details"];
    assert_eq!(details["forwarded_by"], "000000000000000a");
    assert_eq!(details["owner"], "000000000000000a");
}

#[tokio::test]
async fn a_host_does_not_forward_to_itself() {
    let host = Host::leading(0xa).await;
    host.face.leader.lock().unwrap().as_mut().unwrap().here = false;
    let reply = host.get("/v1/lrps").await;
    assert_eq!(reply.problem(), (503, "not_leading".to_owned()));
    assert!(reply.has("retry-after: 1"));
    // Nor by the address of somebody who is gone.
    host.face.follow(0xdead, &host.at());
    assert_eq!(host.get("/v1/lrps").await.problem(), (503, "forwarded_twice".to_owned()));
}

#[tokio::test]
async fn without_a_leader_there_is_no_answer() {
    let reply = Host::start(0xb).await.ask("POST", "/v1/lrps", "").await;
    assert_eq!(reply.problem(), (503, "no_leader".to_owned()));
    assert!(reply.has("retry-after: 1"));
}

#[tokio::test]
async fn a_leader_that_is_not_there_is_a_bad_gateway() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = listener.local_addr().unwrap();
    drop(listener);
    let standby = Host::behind(&nobody).await;
    let reply = standby.get("/v1/lrps").await;
    assert_eq!(reply.problem(), (502, "leader_unreachable".to_owned()));
    let details = &reply.json()["details"];
    assert_eq!(
        (&details["address"], &details["sent"]),
        (&nobody.to_string().into(), &false.into())
    );
    for (address, code) in [
        ("", "leader_unreachable"),
        ("not an address", "leader_unreachable"),
        ("10.0.0.1:7070", "leader_unreachable"),
        ("http://10.0.0.1:7070", "leader_insecure"),
    ] {
        standby.face.follow(0xa, address);
        assert_eq!(standby.get("/x").await.problem(), (502, code.to_owned()), "{address}");
    }
}

#[tokio::test]
async fn a_leader_that_hangs_up_is_a_bad_gateway() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let standby = Host::behind(&listener.local_addr().unwrap()).await;
    let hang_up = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        until(&mut stream, "\r\n\r\n").await;
    };
    let ((), reply) = tokio::join!(hang_up, standby.get("/x"));
    assert_eq!(reply.problem(), (502, "leader_failed".to_owned()));
    assert_eq!(reply.json()["details"]["sent"], true);
}

#[tokio::test]
async fn a_leader_that_breaks_off_is_not_taken_for_one_that_ended() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let standby = Host::behind(&listener.local_addr().unwrap()).await;
    let mut client = TcpStream::connect(standby.at()).await.unwrap();
    let request = format!(
        "GET /x HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {TOKEN}\r\n\r\n",
        standby.at()
    );
    client.write_all(request.as_bytes()).await.unwrap();
    let (mut leader, _) = timeout(DEADLINE, listener.accept()).await.unwrap().unwrap();
    until(&mut leader, "\r\n\r\n").await;
    let part = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n";
    leader.write_all(part.as_bytes()).await.unwrap();
    until(&mut client, "3\r\none\r\n").await;
    drop(leader);
    assert_eq!(rest(&mut client).await, b"");
}

#[tokio::test]
async fn a_client_that_leaves_takes_its_request_along() {
    let leader = Slow::start().await;
    let standby = Host::behind(&leader.at).await;
    let mut stream = TcpStream::connect(standby.at()).await.unwrap();
    let request = format!(
        "GET /x HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {TOKEN}\r\n\r\n",
        standby.at()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    leader.asked().await;
    drop(stream);
    leader.gone().await;
}
