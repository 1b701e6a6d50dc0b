use http_body_util::BodyExt as _;
use kapell_core::board::Event;
use kapell_node::board::{EventId, Next};

use super::super::body::Body;
use super::*;

fn event(number: u64) -> Next {
    let id = EventId { epoch: Epoch(7), number };
    Next::Event(id, Arc::new(Event::Cell { cell_id: "c\nevil".into(), present: true }))
}

async fn open(host: &Host, target: &str, more: &str) -> TcpStream {
    let mut stream = TcpStream::connect(host.at()).await.unwrap();
    let request = format!(
        "GET {target} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {TOKEN}\r\n{more}\r\n",
        host.at()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

#[tokio::test]
async fn events_come_one_by_one_after_the_one_that_was_seen() {
    let (host, desk) = Host::with_board().await;
    *desk.events.lock().unwrap() =
        vec![event(1), event(2), Next::Gap(EventId { epoch: Epoch(7), number: 5 })];
    let mut stream = open(&host, "/v1/events?after=7-1", "").await;
    let text = until(&mut stream, "event: gap").await;
    assert!(text.contains("content-type: text/event-stream"), "{text}");
    assert!(
        text.contains(
            "id: 7-2\nevent: cell_present\ndata: {\"id\":\"7-2\",\"name\":\"cell_present\","
        ),
        "{text}"
    );
    assert!(!text.contains("id: 7-1\n") && text.contains(r"c\nevil"), "{text}");
    // What a browser sends when it comes back goes before what it began with.
    let mut stream = open(&host, "/v1/events?after=7-0", "last-event-id: 7-2\r\n").await;
    let text = until(&mut stream, "event: gap").await;
    assert!(!text.contains("id: 7-2\n"), "{text}");
    assert_eq!(host.get("/v1/events?after=x").await.problem(), (400, "bad_parameter".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_silent_stream_says_that_it_is_one() {
    let mut body = Body::fed(|pipe| async move {
        // Short waits in between are no reason to speak sooner or later.
        loop {
            let wait = timeout(Duration::from_secs(4), std::future::pending::<()>());
            let Ok(_) = pipe.meanwhile(wait).await else { return };
        }
    });
    for number in 1..=20_u32 {
        let start = tokio::time::Instant::now();
        let frame = body.frame().await.unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), ": still here\n\n");
        assert_eq!(start.elapsed().as_secs(), 15, "{number}");
    }
}

#[tokio::test]
async fn a_writer_waits_for_its_reader_and_ends_with_it() {
    let written = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counter = Arc::clone(&written);
    let mut body = Body::fed(|pipe| async move {
        while pipe.send("x").await.is_ok() {
            counter.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        }
    });
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(written.load(std::sync::atomic::Ordering::SeqCst), 8);
    body.frame().await.unwrap().unwrap();
    drop(body);
    let gone = async {
        while Arc::strong_count(&written) > 1 {
            tokio::task::yield_now().await;
        }
    };
    timeout(DEADLINE, gone).await.unwrap();
}
