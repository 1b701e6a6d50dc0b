//! The queue, under time that stands still unless everybody waits.

use std::time::Duration;

use kapell_core::constraint::delivery::Answer;
use kapell_core::constraint::lines::Pace;
use kapell_core::constraint::{Header, Place};
use kapell_core::job::ActionId;
use tokio::time::{Instant, timeout};

use super::stage::{Reply, message, post, status};
use crate::testing::eventually;
use crate::webhook::{DeliveryState, Full, Hold, LEDGER_KEPT, Settled, webhook_id};

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

const URL: &str = "https://example.com/hook?token=x";
const KEY: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

#[tokio::test(start_paused = true)]
async fn a_message_is_sent_signed_and_listed() {
    let post = post(Pace::default());
    post.vault.set("key", KEY);
    post.vault.set("token", "Bearer t");
    let mut message = message(1, URL);
    message.target.secret = Some("key".into());
    message.target.headers = vec![
        ("Authorization".to_owned(), Header::Secret("token".into())),
        ("x-a".to_owned(), Header::Text("b".to_owned())),
    ];
    let ticket = post.handler.deliver(message).unwrap();
    assert_eq!(ticket.settled().await, Settled::Delivered { status: 200 });
    let sent = post.outside.sent().remove(0);
    let header = |name: &str| {
        sent.headers.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_str())
    };
    assert_eq!(
        (header("webhook-id"), header("webhook-timestamp")),
        (Some("msg_1"), Some("1700000000"))
    );
    assert!(header("webhook-signature").unwrap().starts_with("v1,"));
    assert_eq!(header("content-type"), Some("application/json"));
    let private =
        [("authorization".to_owned(), "Bearer t".to_owned()), ("x-a".to_owned(), "b".to_owned())];
    assert_eq!(sent.private, private, "only for the place itself");
    let listed = post.handler.deliveries(|_| true).remove(0);
    assert_eq!(
        (listed.place.as_str(), listed.attempts, listed.status),
        ("https://example.com", 1, Some(200))
    );
    assert_eq!((listed.state, listed.webhook_id.as_str()), (DeliveryState::Delivered, "msg_1"));
}

#[tokio::test(start_paused = true)]
async fn a_message_that_is_not_taken_is_sent_again_later_and_later() {
    let post = post(Pace::default());
    post.outside.will([
        status(500),
        Reply::Never,
        Reply::Now(Answer::None("reset".to_owned())),
        status(204),
    ]);
    let ticket = post.handler.deliver(message(1, URL)).unwrap();
    assert_eq!(ticket.settled().await, Settled::Delivered { status: 204 });
    // Half a second, ten that it hangs and one, two.
    assert_eq!(post.outside.times(), [0, 0, 11, 13]);
    let ids: Vec<String> =
        post.outside.sent().iter().map(|sent| sent.headers[2].1.clone()).collect();
    assert_eq!(ids, ["msg_1"; 4], "the receiver can tell that it is the same");
    assert_eq!(post.handler.deliveries(|_| true)[0].attempts, 4);
}

#[tokio::test(start_paused = true)]
async fn whoever_says_when_is_called_then() {
    let post = post(Pace::default());
    post.outside.will([Reply::Now(Answer::Status { status: 503, retry_after: Some(secs(77)) })]);
    let ticket = post.handler.deliver(message(1, URL)).unwrap();
    assert_eq!(ticket.settled().await, Settled::Delivered { status: 200 });
    assert_eq!(post.outside.times(), [0, 77]);
}

#[tokio::test(start_paused = true)]
async fn it_is_given_up_at_last_and_at_once_where_it_does_not_help() {
    let post = post(Pace::default());
    post.outside.will((0..6).map(|_| status(500)));
    let settled = post.handler.deliver(message(1, URL)).unwrap().settled().await;
    let why = "the answer was 500 (after 6 calls)".to_owned();
    assert_eq!(settled, Settled::GivenUp { status: Some(500), why: why.clone() });
    post.outside.will([status(404)]);
    let settled = post.handler.deliver(message(2, URL)).unwrap().settled().await;
    assert_eq!(
        settled,
        Settled::GivenUp { status: Some(404), why: "the answer was 404".to_owned() }
    );
    let listed = post.handler.deliveries(|_| true);
    assert_eq!((listed[0].attempts, listed[1].attempts), (1, 6), "the newest first");
    assert_eq!((listed[1].state, &listed[1].why), (DeliveryState::GivenUp, &why));
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_is_not_set_is_told_and_one_that_cannot_be_read_is_waited_for() {
    let post = post(Pace::default());
    let secretly = |number| {
        let mut message = message(number, URL);
        message.target.place = Place::Secret("url".into());
        message.target.secret = Some("key".into());
        message.secret_fields = vec![("routing_key".to_owned(), "routing".into())];
        message
    };
    let settled = post.handler.deliver(secretly(1)).unwrap().settled().await;
    let why =
        "secret \"routing\" of domain \"jobs\" is not set: kapell secret set routing --domain jobs"
            .to_owned();
    assert_eq!(settled, Settled::GivenUp { status: None, why });
    for (name, value) in [("routing", "R"), ("url", URL), ("key", KEY)] {
        post.vault.set(name, value);
    }
    *post.vault.away.lock().unwrap() = true;
    let ticket = post.handler.deliver(secretly(2)).unwrap();
    eventually("it was tried", secs(1), async || {
        !post.handler.deliveries(|it| !it.why.is_empty() && it.webhook_id == "msg_2").is_empty()
    })
    .await;
    *post.vault.away.lock().unwrap() = false;
    assert_eq!(ticket.settled().await, Settled::Delivered { status: 200 });
    assert_eq!(post.outside.bodies()[0]["routing_key"], "R");
    assert_eq!(post.outside.sent()[0].url, URL);
    let shown = format!("{:?}", post.handler.deliveries(|_| true));
    assert!(!shown.contains("token=x") && shown.contains("secret jobs/url"), "{shown}");
    post.vault.set("key", "nonsense");
    let settled = post.handler.deliver(secretly(3)).unwrap().settled().await;
    assert!(format!("{settled:?}").contains("is no key for webhooks"), "{settled:?}");
}

#[tokio::test(start_paused = true)]
async fn the_queue_is_bounded_and_what_is_settled_makes_room() {
    let post = post(Pace { waiting: 3, ..Pace::default() });
    post.outside.will([Reply::Never, Reply::Never, Reply::Never]);
    for number in 0..3 {
        drop(post.handler.deliver(message(number, URL)).unwrap());
    }
    assert_eq!(post.handler.deliver(message(3, URL)).unwrap_err(), Full::Full);
    assert_eq!(post.handler.deliveries(|_| true).len(), 3, "what was not taken is not listed");
    eventually("all are delivered", secs(60), async || {
        post.handler.deliveries(|it| it.state == DeliveryState::Delivered).len() == 3
    })
    .await;
    let ticket = post.handler.deliver(message(4, URL)).unwrap();
    assert_eq!(ticket.settled().await, Settled::Delivered { status: 200 });
}

#[tokio::test(start_paused = true)]
async fn a_place_is_not_called_too_often_and_others_do_not_wait_for_it() {
    let post = post(Pace { burst: 2, each: secs(10), calls_to_one: 2, ..Pace::default() });
    let slow: Vec<_> =
        (0..5).map(|number| post.handler.deliver(message(number, URL)).unwrap()).collect();
    let other = post.handler.deliver(message(9, "http://other.example")).unwrap();
    timeout(secs(1), other.settled()).await.unwrap();
    for ticket in slow {
        assert_eq!(ticket.settled().await, Settled::Delivered { status: 200 });
    }
    assert_eq!(post.outside.times(), [0, 0, 0, 10, 20, 30]);
}

#[tokio::test(start_paused = true)]
async fn what_nobody_waits_for_is_withdrawn_or_kept() {
    let post = post(Pace::default());
    post.outside.will([Reply::Never, status(500), status(200)]);
    let ticket = post
        .handler
        .deliver(crate::webhook::Message { hold: Hold::Withdraw, ..message(1, URL) })
        .unwrap();
    eventually("it is called", secs(1), async || post.outside.times().len() == 1).await;
    drop(ticket);
    eventually("it is withdrawn", secs(1), async || {
        post.handler.deliveries(|it| it.state == DeliveryState::Withdrawn).len() == 1
    })
    .await;
    drop(post.handler.deliver(message(2, URL)).unwrap());
    eventually("it is delivered", secs(5), async || {
        post.handler.deliveries(|it| it.state == DeliveryState::Delivered).len() == 1
    })
    .await;
    assert_eq!(post.outside.times().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn the_list_of_messages_is_bounded() {
    let post = post(Pace { burst: 10_000, ..Pace::default() });
    for number in 0..u32::try_from(LEDGER_KEPT).unwrap() + 10 {
        post.handler.deliver(message(number, URL)).unwrap();
    }
    let newest = format!("msg_{}", LEDGER_KEPT + 9);
    eventually("all are sent", secs(60), async || post.outside.times().len() == LEDGER_KEPT + 10)
        .await;
    let listed = post.handler.deliveries(|_| true);
    assert_eq!((listed.len(), &listed[0].webhook_id), (LEDGER_KEPT, &newest));
}

#[tokio::test(start_paused = true)]
async fn the_worker_ends_when_nobody_can_ask_it_and_nothing_is_left() {
    let mut post = post(Pace::default());
    post.outside.will([status(500)]);
    let begin = Instant::now();
    drop(post.handler.deliver(message(1, URL)).unwrap());
    drop(post.handler);
    timeout(secs(10), post.worker.join_next()).await.unwrap().unwrap().unwrap();
    assert_eq!(post.outside.times().len(), 2);
    assert!(begin.elapsed() < secs(2));
}

#[tokio::test(start_paused = true)]
async fn a_handler_without_a_worker_says_so() {
    let mut post = post(Pace::default());
    post.worker.shutdown().await;
    assert_eq!(post.handler.deliver(message(1, URL)).unwrap_err(), Full::Closed);
}

fn lasting(number: u32) -> crate::webhook::Message {
    let id = ActionId(u128::from(number));
    crate::webhook::Message {
        hold: Hold::Outlive(id),
        webhook_id: webhook_id(id),
        ..message(number, URL)
    }
}

#[tokio::test(start_paused = true)]
async fn what_must_outlive_the_host_is_kept_until_it_was_taken() {
    let before = post(Pace::default());
    before.outside.will([Reply::Never]);
    before.handler.entrust(lasting(7)).await.unwrap();
    assert_eq!(before.outbox.messages.lock().unwrap().len(), 1, "it is on disk");
    eventually("it is called", secs(1), async || before.outside.times().len() == 1).await;
    // The host is killed, and the next one sends what is kept.
    let kept: Vec<_> = before.outbox.messages.lock().unwrap().values().cloned().collect();
    let mut before = before;
    before.worker.shutdown().await;
    let next = post(Pace::default());
    next.outbox.messages.lock().unwrap().extend(kept.iter().map(|it| (it.id, it.clone())));
    for message in kept {
        next.handler.resume(message);
    }
    // Its run begins its actions anew.
    next.handler.entrust(lasting(7)).await.unwrap();
    eventually("it is not kept any more", secs(5), async || {
        next.outbox.messages.lock().unwrap().is_empty()
    })
    .await;
    assert_eq!(next.outside.times().len(), 1, "it was not sent twice");
    let [one, other] = [&before, &next].map(|post| post.outside.sent().remove(0));
    assert_eq!((&one.url, &one.body, one.method), (&other.url, &other.body, other.method));
    assert_eq!(one.headers[2], other.headers[2], "under the same id");
    assert_eq!(one.headers[2].1, format!("msg_{:032x}", 7));
    let listed = next.handler.deliveries(|_| true);
    assert_eq!((listed.len(), listed[0].state), (1, DeliveryState::Delivered));
}

#[tokio::test(start_paused = true)]
async fn what_is_given_up_is_not_kept_either_and_what_cannot_be_kept_is_refused() {
    let post = post(Pace::default());
    post.outside.will([status(404)]);
    post.handler.entrust(lasting(1)).await.unwrap();
    eventually("it is not kept any more", secs(5), async || {
        post.outbox.messages.lock().unwrap().is_empty()
    })
    .await;
    assert_eq!(post.handler.deliveries(|_| true)[0].state, DeliveryState::GivenUp);
    *post.outbox.refuses.lock().unwrap() = Some("too long".to_owned());
    assert_eq!(post.handler.entrust(lasting(2)).await, Err("too long".to_owned()));
    assert_eq!(post.outside.times().len(), 1, "nobody was called");
    *post.outbox.refuses.lock().unwrap() = None;
    post.handler.entrust(lasting(2)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_domain_that_fills_the_queue_leaves_room_for_others() {
    let post = post(Pace { waiting: 6, ..Pace::default() });
    post.outside.will((0..8).map(|_| Reply::Never));
    let theirs = |number| {
        let domain = kapell_core::board::Domain::new("theirs");
        crate::webhook::Message { domain, ..message(number, URL) }
    };
    for number in 0..6 {
        drop(post.handler.deliver(message(number, URL)).unwrap());
    }
    assert_eq!(post.handler.deliver(message(9, URL)).unwrap_err(), Full::Full);
    for number in 10..13 {
        drop(post.handler.deliver(theirs(number)).unwrap());
    }
    assert_eq!(post.handler.deliver(theirs(13)).unwrap_err(), Full::Full);
}
