use super::*;

#[tokio::test]
async fn health_says_what_the_host_does() {
    let host = Host::start(0xb).await;
    let reply = host.get("/healthz").await;
    assert_eq!(reply.status, 200);
    assert_eq!(
        reply.body,
        "{\"status\":\"standby\",\"store_reachable\":true,\"writes\":\"forwarded\",\"since\":7}\n"
    );
    assert!(reply.has("kapell-served-by: 000000000000000b"), "{}", reply.head);
    *host.face.store_trouble.lock().unwrap() = Some("the disk is full".to_owned());
    let reply = host.get("/healthz").await.json();
    assert_eq!(
        (&reply["store_reachable"], &reply["reason"]),
        (&false.into(), &"the disk is full".into())
    );
    *host.face.role.lock().unwrap() = Role::Leading;
    assert_eq!(host.get("/healthz?verbose").await.json()["status"], "leading");
    *host.face.store_trouble.lock().unwrap() = None;
    *host.face.writes.lock().unwrap() =
        Writes::Refused { why: "no space".to_owned(), since: Some(Timestamp(5)) };
    let reply = host.get("/healthz").await.json();
    assert_eq!(
        (&reply["writes"], &reply["reason"], &reply["refused_since"]),
        (&"refused".into(), &"no space".into(), &5.into())
    );
    *host.face.writes.lock().unwrap() = Writes::Accepted;
    let reply = host.get("/healthz").await.json();
    assert_eq!((&reply["writes"], reply.get("reason")), (&"accepted".into(), None));
    *host.face.role.lock().unwrap() = Role::Stopping;
    let reply = host.get("/healthz").await;
    assert_eq!(reply.problem(), (503, "stopping".to_owned()));
    assert_eq!(reply.json()["details"]["status"], "stopping");
}

#[tokio::test]
async fn the_leader_is_named_if_there_is_one() {
    let host = Host::start(0xb).await;
    let reply = host.get("/leader").await;
    assert_eq!(reply.problem(), (503, "no_leader".to_owned()));
    assert!(reply.has("retry-after: 1"), "{}", reply.head);
    host.face.follow(0xa, "10.0.0.1:7070");
    let reply = host.get("/leader").await;
    assert_eq!(reply.status, 200);
    assert_eq!(
        reply.body.trim(),
        r#"{"seat":1,"epoch":3,"owner":"000000000000000a","address":"10.0.0.1:7070","expires_in_ms":9000,"here":false}"#
    );
    host.face.follow(0xb, "10.0.0.1:7070");
    assert_eq!(host.get("/leader").await.json()["here"], true);
}

#[tokio::test]
async fn figures_are_in_the_text_format() {
    let reply = Host::start(0xb).await.get("/metrics").await;
    assert_eq!((reply.status, reply.body.as_str()), (200, "kapell_host_leading 1\n"));
    assert!(reply.has("content-type: text/plain; version=0.0.4; charset=utf-8"));
}

#[tokio::test]
async fn head_is_get_without_a_body() {
    let host = Host::start(0xb).await;
    for path in ["/healthz", "/leader", "/metrics"] {
        let (get, head) = (host.get(path).await, host.ask("HEAD", path, "").await);
        assert_eq!(get.status, head.status);
        assert_eq!(head.body, "");
        assert!(head.has(&format!("content-length: {}", get.body.len())), "{}", head.head);
    }
}

#[tokio::test]
async fn other_methods_are_not_allowed() {
    let host = Host::start(0xb).await;
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "BREW"] {
        let reply = host.ask(method, "/leader", "").await;
        assert_eq!(reply.problem(), (405, "method_not_allowed".to_owned()));
        assert!(reply.has("allow: get, head"), "{}", reply.head);
    }
    let (at, token) = (host.at(), TOKEN);
    let request = format!(
        "CONNECT {at} HTTP/1.1\r\nhost: {at}\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n"
    );
    assert_eq!(send(at, &request).await.problem().0, 405);
}

#[tokio::test]
async fn the_leader_knows_what_it_does_not_have() {
    let host = Host::leading(0xa).await;
    let reply = host.get("/v1/lrps").await;
    assert_eq!(reply.problem(), (404, "not_found".to_owned()));
    assert_eq!(reply.json()["details"]["path"], "/v1/lrps");
    assert!(reply.has("kapell-served-by: 000000000000000a"));
}

#[tokio::test]
async fn connections_serve_many_requests() {
    let host = Host::start(0xb).await;
    let mut stream = TcpStream::connect(host.at()).await.unwrap();
    let request = format!(
        "GET /metrics HTTP/1.1\r\nhost: {}\r\nauthorization: bearer {TOKEN}\r\n\r\n",
        host.at()
    );
    for _ in 0..3 {
        stream.write_all(request.as_bytes()).await.unwrap();
        until(&mut stream, "leading 1\n").await;
    }
}

#[tokio::test]
async fn a_taken_address_is_named() {
    let host = Host::start(0xb).await;
    let at = host.at();
    let Err(error) = Host::open(0xc, LIMITS, listen(&at.to_string())).await else { panic!() };
    let want = format!(
        "`{at}` is taken by another process: stop it, or listen elsewhere by --listen (`kapell up`: --port)"
    );
    assert_eq!(error.to_string(), want);
}
