use kapell_core::board::DesiredUpdate;
use kapell_core::log::{Frame, Stream};
use kapell_core::seams::Timestamp;
use tokio::net::TcpListener;

use super::server::{Server, Turn};
use crate::client::{Client, Error, Options, Token};
use crate::v1::LogQuery;

const NOBODY: Turn =
    Turn::Answer(503, r#"{"code":"no_leader","message":"nobody leads right now","details":null}"#);
const LOST: Turn =
    Turn::Answer(503, r#"{"code":"not_leading","message":"it does not lead","details":{}}"#);
const NONE: Turn = Turn::Answer(200, "[]");
const LRP: Turn = Turn::Answer(
    200,
    r#"{"process_guid":"web","domain":"d","instances":2,"action":{"run":{"path":"x"}}}"#,
);

fn client(urls: &str) -> Client {
    let options = Options { token: Some(Token::new("t0k")), ..Options::default() };
    Client::new(urls, options).unwrap()
}

/// An address where nobody listens.
async fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

#[tokio::test]
async fn a_connection_is_used_again_and_the_token_is_borne() {
    let server = Server::new([NONE, NONE, NONE]).await;
    let client = client(&server.url);
    for _ in 0..3 {
        let listed = client.domains().await.unwrap();
        assert_eq!((listed.items.len(), listed.event_id.as_deref()), (0, Some("3-7")));
    }
    assert_eq!(server.seen(), ["GET /v1/domains authorization=Bearer t0k"; 3]);
    assert_eq!(server.connections(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_sent_twice_goes_over_no_old_connection() {
    let server = Server::new([LRP, LRP, LRP]).await;
    let client = client(&server.url);
    let update = DesiredUpdate::default();
    client.update_desired("web", &update).await.unwrap();
    client.update_desired("web", &update).await.unwrap();
    assert_eq!(server.connections(), 1);
    tokio::time::advance(std::time::Duration::from_secs(2)).await;
    client.update_desired("web", &update).await.unwrap();
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn a_connection_that_was_closed_is_replaced() {
    let server = Server::new([NONE, Turn::HangUp, NONE]).await;
    let options = Options { patience: std::time::Duration::ZERO, ..Options::default() };
    let client = Client::new(&server.url, options).unwrap();
    client.domains().await.unwrap();
    client.domains().await.unwrap();
    assert_eq!((server.seen().len(), server.connections()), (3, 2));
}

#[tokio::test]
async fn nobody_there_is_told_with_what_to_do() {
    let url = nobody().await;
    let error = client(&url).domains().await.unwrap_err();
    let want = format!(
        "no host answers at {url}: is `kapell up` running? Give another by --url or KAPELL_URL"
    );
    assert_eq!(error.to_string(), want);
    assert!(error.passes());
}

#[tokio::test]
async fn the_next_host_is_asked_if_one_is_gone_or_does_not_lead() {
    let first = Server::new([NOBODY, NONE]).await;
    let second = Server::new([NONE, NONE]).await;
    let client = client(&format!("{},{},{}", nobody().await, first.url, second.url));
    client.domains().await.unwrap();
    client.domains().await.unwrap();
    // The one that answered is asked first from then on.
    assert_eq!((first.seen().len(), second.seen().len()), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn a_leader_is_waited_for_but_not_for_ever() {
    let server = Server::new([NOBODY, NOBODY, NONE]).await;
    client(&server.url).domains().await.unwrap();
    assert_eq!(server.seen().len(), 3);

    let server = Server::new(vec![NOBODY; 100]).await;
    let error = client(&server.url).domains().await.unwrap_err();
    assert_eq!(error.to_string(), "nobody leads right now");
    assert!((5..20).contains(&server.seen().len()), "{}", server.seen().len());
}

#[tokio::test(start_paused = true)]
async fn what_may_have_happened_is_asked_again_only_if_it_does_no_harm() {
    let server = Server::new([Turn::HangUp, LOST, NONE]).await;
    client(&server.url).domains().await.unwrap();
    assert_eq!(server.seen().len(), 3);

    let update = DesiredUpdate { instances: Some(2), ..DesiredUpdate::default() };
    let server = Server::new([Turn::HangUp, LRP]).await;
    let error = client(&server.url).update_desired("web", &update).await.unwrap_err();
    assert!(matches!(error, Error::NoAnswer { .. }), "{error:?}");
    let want = format!("{} gave no answer to `PATCH /v1/desired-lrps/web`", server.url);
    assert_eq!(error.to_string(), want);
    assert_eq!(server.seen().len(), 1);

    let server = Server::new([LOST, LRP]).await;
    assert!(client(&server.url).update_desired("web", &update).await.is_err());
    let server = Server::new([NOBODY, LRP]).await;
    let lrp = client(&server.url).update_desired("web", &update).await.unwrap();
    assert_eq!(lrp.instances, 2);
    let line = r#"PATCH /v1/desired-lrps/web authorization=Bearer t0k {"instances":2}"#;
    assert_eq!(server.seen(), [line, line]);
}

#[tokio::test]
async fn refusals_are_told_and_what_is_no_kapell_host_too() {
    let text = r#"{"code":"not_found","message":"there is no task `x`","details":{}}"#;
    let page = "<html>404</html>";
    let answers = [Turn::Answer(404, text), Turn::Answer(404, page), Turn::Answer(200, page)];
    let server = Server::new(answers).await;
    let client = client(&server.url);
    let error = client.task("x").await.unwrap_err();
    assert!(error.is_not_found() && error.to_string() == "there is no task `x`", "{error:?}");
    for _ in 0..2 {
        let error = client.task("x").await.unwrap_err();
        let text = error.to_string();
        assert!(text.contains("does not answer as a Kapell host does"), "{text}");
    }
}

#[tokio::test]
async fn streams_come_piece_by_piece_and_resume() {
    let text = "id: 3-8\nevent: cell_gone\ndata: {\"kind\":\"cell\",\"cell_id\":\"c\",\"present\":false}\n\n\
        id: 3-9\nevent: gap\ndata: {}\n\n\
        data: {\"id\":\"3-10\",\"name\":\"cell_present\",\"event\":{\"kind\":\"cell\",\"cell_id\":\"c\",\"present\":true}}\n\n";
    let server = Server::new([Turn::Answer(200, text)]).await;
    let mut events = client(&server.url).events(Some("3-7")).await.unwrap();
    let mut seen = Vec::new();
    while let Some(event) = events.next().await.unwrap() {
        seen.push((event.id, event.name, event.event.is_some()));
    }
    let want = [("3-8", "cell_gone", true), ("3-9", "gap", false), ("3-10", "cell_present", true)];
    assert_eq!(seen, want.map(|(id, name, is)| (id.to_owned(), name.to_owned(), is)));
    assert_eq!(server.seen(), ["GET /v1/events authorization=Bearer t0k last-event-id=3-7"]);
}

#[tokio::test]
async fn logs_come_as_frames() {
    let frame = Frame { stream: Stream::Err, at: Timestamp(5), bytes: b"oh\n".to_vec() };
    let text = String::from_utf8(frame.encode()).unwrap().leak();
    let server = Server::new([Turn::Answer(200, text), Turn::Answer(200, "")]).await;
    let client = client(&server.url);
    let query = LogQuery { follow: true, tail: Some(3), ..LogQuery::default() };
    let mut logs = client.lrp_logs("web", 1, query).await.unwrap();
    assert_eq!(logs.next().await.unwrap(), Some(frame));
    assert_eq!(logs.next().await.unwrap(), None);
    let mut logs = client.task_logs("t", LogQuery::default()).await.unwrap();
    assert_eq!(logs.next().await.unwrap(), None);
    let seen = [
        "GET /v1/logs/lrp/web/1?format=frames&follow=true&tail=3 authorization=Bearer t0k",
        "GET /v1/logs/task/t?format=frames&follow=false authorization=Bearer t0k",
    ];
    assert_eq!(server.seen(), seen);
}
