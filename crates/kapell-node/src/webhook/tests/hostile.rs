//! Servers on this machine that are slow, broken or mean.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use kapell_core::constraint::delivery::Answer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::testing::{TokioClock, within};
use crate::webhook::{HttpOutbound, Outbound as _, Sent};

/// How long a test may take that is to take no time.
const SOON: Duration = Duration::from_secs(20);

#[derive(Debug, Clone)]
enum Manner {
    Says(String),
    /// Takes the call and never answers.
    Silent,
    /// Begins an answer and never ends it.
    Endless,
    /// Sends headers without end.
    EndlessHead,
    Hangs,
}

struct Server {
    url: String,
    heard: Arc<Mutex<Vec<String>>>,
    _tasks: JoinSet<()>,
}

async fn request(stream: &mut TcpStream) -> String {
    let mut all = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&all).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
            if body.len() >= length.unwrap_or(0) {
                return text;
            }
        }
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return text,
            Ok(count) => all.extend_from_slice(&buffer[..count]),
        }
    }
}

async fn serve(mut stream: TcpStream, manner: Manner, heard: Arc<Mutex<Vec<String>>>) {
    let text = request(&mut stream).await;
    heard.lock().unwrap().push(text);
    let begin: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n";
    match manner {
        Manner::Says(text) => drop(stream.write_all(text.as_bytes()).await),
        Manner::Silent => std::future::pending().await,
        Manner::Endless => {
            let mut sent = stream.write_all(begin).await;
            while sent.is_ok() {
                sent = stream.write_all(&[b'x'; 4096]).await;
            }
        }
        Manner::EndlessHead => {
            let mut sent = stream.write_all(b"HTTP/1.1 200 OK\r\n").await;
            while sent.is_ok() {
                sent = stream.write_all(b"x-more: of the same\r\n").await;
            }
        }
        Manner::Hangs => {}
    }
}

async fn server(manner: Manner) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let heard = Arc::new(Mutex::new(Vec::new()));
    let (mut tasks, all) = (JoinSet::new(), Arc::clone(&heard));
    tasks.spawn(async move {
        let mut streams = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            streams.spawn(serve(stream, manner.clone(), Arc::clone(&all)));
        }
    });
    Server { url, heard, _tasks: tasks }
}

fn says(status: &str, headers: &str) -> Manner {
    Manner::Says(format!("HTTP/1.1 {status}\r\n{headers}content-length: 0\r\n\r\n"))
}

fn sent(url: &str, limit: Duration) -> Sent {
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    Sent {
        method: "POST",
        url: url.to_owned(),
        headers: vec![header("webhook-id", "msg_1")],
        private: vec![header("authorization", "Bearer t")],
        body: bytes::Bytes::from_static(b"{\"a\":1}"),
        limit,
        follow: true,
    }
}

async fn call(url: &str, limit: Duration) -> Answer {
    within(
        "an answer",
        SOON,
        HttpOutbound::new(None, Arc::new(TokioClock::new())).send(&sent(url, limit)),
    )
    .await
}

const SHORT: Duration = Duration::from_millis(200);

#[tokio::test]
async fn what_is_sent_arrives() {
    let server = server(says("200 OK", "")).await;
    let answer = call(&format!("{}/hook?x=1", server.url), SOON).await;
    assert_eq!(answer, Answer::Status { status: 200, retry_after: None });
    let heard = server.heard.lock().unwrap()[0].clone();
    assert!(heard.starts_with("POST /hook?x=1 HTTP/1.1\r\n"), "{heard}");
    for part in ["webhook-id: msg_1\r\n", "authorization: Bearer t\r\n", "\r\n\r\n{\"a\":1}"] {
        assert!(heard.contains(part), "{part} {heard}");
    }
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_left() {
    for manner in [Manner::Silent, Manner::Hangs] {
        let server = server(manner.clone()).await;
        let answer = call(&server.url, SHORT).await;
        assert!(matches!(&answer, Answer::None(_)), "{manner:?}: {answer:?}");
    }
}

#[tokio::test]
async fn a_server_that_is_down_may_be_called_again() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let answer = call(&format!("http://{free}"), SOON).await;
    assert!(
        matches!(&answer, Answer::None(why) if why.contains("cannot be reached")),
        "{answer:?}"
    );
}

#[tokio::test]
async fn errors_of_a_server_are_told_with_when_to_come_back() {
    for (status, headers, right) in [
        ("500 Oh", "", Answer::Status { status: 500, retry_after: None }),
        (
            "503 Later",
            "Retry-After: 120\r\n",
            Answer::Status { status: 503, retry_after: Some(Duration::from_secs(120)) },
        ),
        ("429 Slowly", "retry-after: soon\r\n", Answer::Status { status: 429, retry_after: None }),
        (
            "503 Then",
            "date: Sun, 06 Nov 1994 08:49:37 GMT\r\nretry-after: Sun, 06 Nov 1994 08:51:07 GMT\r\n",
            Answer::Status { status: 503, retry_after: Some(Duration::from_secs(90)) },
        ),
        (
            // 2023-11-14 22:13:20 is now.
            "429 Then",
            "retry-after: Tue, 14 Nov 2023 22:13:50 GMT\r\n",
            Answer::Status { status: 429, retry_after: Some(Duration::from_secs(30)) },
        ),
        (
            "302 There",
            "location: http://127.0.0.1:1/\r\n",
            Answer::Status { status: 302, retry_after: None },
        ),
    ] {
        let server = server(says(status, headers)).await;
        assert_eq!(call(&server.url, SOON).await, right);
    }
}

#[tokio::test]
async fn an_answer_without_end_is_not_read() {
    let server = server(Manner::Endless).await;
    assert_eq!(call(&server.url, SOON).await, Answer::Status { status: 200, retry_after: None });
}

#[tokio::test]
async fn headers_without_end_are_no_answer() {
    let server = server(Manner::EndlessHead).await;
    let answer = call(&server.url, SOON).await;
    assert!(matches!(&answer, Answer::None(_)), "{answer:?}");
}

#[tokio::test]
async fn forbidden_addresses_are_not_called_by_redirect_either() {
    for place in
        ["http://169.254.169.254/latest/meta-data", "http://[fe80::1]/", "http://[fd00:ec2::254]/"]
    {
        let direct = call(place, SOON).await;
        assert!(
            matches!(&direct, Answer::Refused(why) if why.contains("must not be called")),
            "{direct:?}"
        );
        for status in ["307 There", "308 There"] {
            let server = server(says(status, &format!("location: {place}\r\n"))).await;
            let answer = call(&server.url, SOON).await;
            assert!(
                matches!(&answer, Answer::Refused(why) if why.contains("must not be called")),
                "{answer:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_redirect_is_followed_without_what_is_for_the_first_place_alone() {
    let there = server(says("200 OK", "")).await;
    let here = server(says("307 There", &format!("location: {}/next\r\n", there.url))).await;
    assert_eq!(call(&here.url, SOON).await, Answer::Status { status: 200, retry_after: None });
    let heard = there.heard.lock().unwrap()[0].clone();
    assert!(heard.starts_with("POST /next ") && heard.ends_with("{\"a\":1}"), "{heard}");
    assert!(heard.contains("webhook-id: msg_1") && !heard.contains("authorization"), "{heard}");
}

#[tokio::test]
async fn redirects_in_a_circle_end() {
    let server = server(says("308 Again", "location: /again\r\n")).await;
    let answer = call(&server.url, SOON).await;
    assert_eq!(answer, Answer::Refused("it redirects more than 3 times".to_owned()));
    assert_eq!(server.heard.lock().unwrap().len(), 4);
    let odd = self::server(says("308 Again", "location: http://[\r\n")).await;
    assert_eq!(
        call(&odd.url, SOON).await,
        Answer::Refused("it redirects to what is no URL".to_owned())
    );
}

#[tokio::test]
async fn a_secret_that_no_header_can_hold_is_refused_and_not_told() {
    let mut sent = sent("http://127.0.0.1:1/", SOON);
    sent.private = vec![("authorization".to_owned(), "hunter2\r\nx: y".to_owned())];
    let answer = HttpOutbound::new(None, Arc::new(TokioClock::new())).send(&sent).await;
    assert!(
        matches!(&answer, Answer::Refused(why) if why.contains("authorization") && !why.contains("hunter2")),
        "{answer:?}"
    );
}
