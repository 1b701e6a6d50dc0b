use super::*;

/// Sends these header lines to a host and tells what became of it.
async fn knock(host: &Host, lines: &[&str]) -> (u16, String) {
    let at = host.at().to_string();
    let lines: String = lines.iter().map(|line| line.replace("AT", &at) + "\r\n").collect();
    let request = format!("GET /healthz HTTP/1.1\r\n{lines}connection: close\r\n\r\n");
    let reply = send(host.at(), &request).await;
    if reply.status == 200 { (200, String::new()) } else { reply.problem() }
}

const BEARER: &str = "authorization: Bearer 0123456789abcdef0123456789abcdef";

#[tokio::test]
async fn nothing_is_shown_without_the_token() {
    let host = Host::leading(0xa).await;
    let no = (401, "unauthorized".to_owned());
    for path in ["/healthz", "/leader", "/metrics", "/v1/lrps", "/"] {
        let request = format!("GET {path} HTTP/1.1\r\nhost: {}\r\n\r\n", host.at());
        let reply = send(host.at(), &request).await;
        assert_eq!(reply.problem(), no, "{path}");
        assert!(reply.has("www-authenticate: bearer realm=\"kapell\""), "{}", reply.head);
        // And nothing more is taken from them.
        assert!(reply.has("connection: close"), "{}", reply.head);
    }
    for line in [
        "authorization: Bearer 0123456789abcdef0123456789abcdeF",
        "authorization: Bearer 0123456789abcdef0123456789abcde",
        "authorization: Bearer 0123456789abcdef0123456789abcdef0",
        "authorization: Bearer ",
        "authorization: Bearer",
        "authorization: Basic 0123456789abcdef0123456789abcdef",
        "authorization: 0123456789abcdef0123456789abcdef",
    ] {
        assert_eq!(knock(&host, &["host: AT", line]).await, no, "{line}");
    }
    assert_eq!(knock(&host, &["host: AT", BEARER, BEARER]).await, no);
    assert_eq!(knock(&host, &["host: AT", BEARER]).await.0, 200);
}

#[tokio::test]
async fn a_wrong_token_is_called_so() {
    let host = Host::start(0xa).await;
    let request =
        format!("GET / HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer no\r\n\r\n", host.at());
    let reply = send(host.at(), &request).await;
    assert!(reply.has("www-authenticate: bearer realm=\"kapell\", error=\"invalid_token\""));
}

#[tokio::test]
async fn requests_must_be_meant_for_this_host() {
    let mut listen = listen("127.0.0.1:0");
    listen.allowed_hosts = vec!["other.example".to_owned()];
    let host = Host::open(0xa, LIMITS, listen).await.unwrap();
    let port = host.at().port();
    for name in ["127.0.0.1", "localhost", "LocalHost", "[::1]", "other.example"] {
        assert_eq!(knock(&host, &[&format!("host: {name}:{port}"), BEARER]).await.0, 200, "{name}");
        assert_eq!(knock(&host, &[&format!("host: {name}"), BEARER]).await.0, 200, "{name}");
    }
    for name in ["kapell.example:7070", "kapell.example"] {
        assert_eq!(knock(&host, &[&format!("host: {name}"), BEARER]).await.0, 200, "{name}");
    }
    let no = (421, "unknown_host".to_owned());
    for name in [
        "evil.example",
        &format!("evil.example:{port}"),
        "localhost.evil.example",
        "localhost:1",
        "10.0.0.1",
        "kapell.example:1",
        "user@localhost",
        "localhost:99999",
        "",
    ] {
        assert_eq!(knock(&host, &[&format!("host: {name}"), BEARER]).await, no, "{name}");
    }
    let bad = (400, "bad_host".to_owned());
    assert_eq!(knock(&host, &[BEARER]).await, bad);
    assert_eq!(knock(&host, &["host: AT", "host: AT", BEARER]).await, bad);
}

#[tokio::test]
async fn an_absolute_target_must_be_ours_too() {
    let host = Host::start(0xa).await;
    let at = host.at();
    for (target, want) in [(at.to_string(), 200), ("evil.example".to_owned(), 421)] {
        let request = format!(
            "GET http://{target}/healthz HTTP/1.1\r\nhost: {at}\r\n{BEARER}\r\nconnection: close\r\n\r\n"
        );
        assert_eq!(send(at, &request).await.status, want, "{target}");
    }
}

#[tokio::test]
async fn pages_of_other_origins_may_not_ask() {
    let host = Host::start(0xa).await;
    let port = host.at().port();
    for origin in ["http://AT", &format!("http://localhost:{port}"), "http://kapell.example:7070"] {
        let line = format!("origin: {origin}");
        assert_eq!(knock(&host, &["host: AT", &line, BEARER]).await.0, 200, "{origin}");
    }
    let no = (403, "foreign_origin".to_owned());
    for origin in [
        "http://evil.example",
        "https://AT",
        "http://localhost",
        "http://localhost:1",
        "http://kapell.example",
        "null",
        "AT",
        "localhost",
        "file://",
        "",
    ] {
        let line = format!("origin: {origin}");
        assert_eq!(knock(&host, &["host: AT", &line, BEARER]).await, no, "{origin}");
    }
    let twice = ["host: AT", "origin: http://AT", "origin: http://AT", BEARER];
    assert_eq!(knock(&host, &twice).await, no);
    // They do not learn whether a token is right.
    let wrong = "authorization: Bearer wrong";
    assert_eq!(knock(&host, &["host: AT", "origin: http://evil.example", wrong]).await, no);
}

#[tokio::test]
async fn a_bad_name_is_refused_at_once() {
    for bad in ["", "a b", "ftp://a", "a/b", "a:x"] {
        let mut listen = listen("127.0.0.1:0");
        listen.allowed_hosts = vec![bad.to_owned()];
        let Err(error) = Host::open(0xa, LIMITS, listen).await else { panic!("{bad}") };
        assert!(matches!(error, Error::Place { .. }), "{error}");
    }
}
