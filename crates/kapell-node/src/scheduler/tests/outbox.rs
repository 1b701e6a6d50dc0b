//! Messages of actions lie on the board until they were sent.

use std::sync::Arc;

use kapell_core::constraint::lines::Pace;
use kapell_core::job::ActionId;
use tokio::task::JoinSet;

use super::stage::{Lead, Stage, secs};
use crate::scheduler::outbox::BoardOutbox;
use crate::testing::eventually;
use crate::webhook::tests::stage::{NoChance, Outside, Reply, Vault, message, status};
use crate::webhook::{Handler, Hold, Message, Parts, webhook_id};

/// What sends the messages of one leader.
struct Sender {
    handler: Handler,
    outside: Arc<Outside>,
    _worker: JoinSet<()>,
}

fn sender(stage: &Stage, lead: &Lead) -> Sender {
    let (outside, outbox) = (Outside::new(), BoardOutbox(lead.show.board.clone()));
    let parts = Parts {
        outbound: Arc::clone(&outside) as _,
        keys: Arc::new(Vault::default()),
        outbox: Arc::new(outbox.clone()),
        clock: Arc::clone(&stage.theatre.clock) as _,
        ids: Arc::new(NoChance),
    };
    let (handler, worker) = Handler::new(parts, Pace::default());
    outbox.resume(&handler);
    let mut running = JoinSet::new();
    running.spawn(worker.run());
    Sender { handler, outside, _worker: running }
}

fn lasting(number: u32) -> Message {
    let id = ActionId(u128::from(number));
    let url = "https://example.com/hook";
    Message { hold: Hold::Outlive(id), webhook_id: webhook_id(id), ..message(number, url) }
}

fn kept(lead: &Lead) -> usize {
    let mut count = 0;
    lead.show.board.look_at_all(|records| count += records.messages.len());
    count
}

#[tokio::test(start_paused = true)]
async fn what_a_leader_has_not_sent_the_next_one_sends_under_the_same_id() {
    let stage = Stage::new();
    let lead = stage.open().await;
    let first = sender(&stage, &lead);
    assert_eq!(kept(&lead), 0, "nothing to say costs nothing");
    first.outside.will([status(500), Reply::Never, Reply::Never]);
    for number in 1..=2 {
        first.handler.entrust(lasting(number)).await.unwrap();
    }
    assert_eq!(kept(&lead), 2);
    eventually("they were tried", secs(5), async || first.outside.times().len() >= 2).await;
    drop(first);
    lead.die().await;
    let lead = stage.open().await;
    let next = sender(&stage, &lead);
    eventually("all are sent", secs(60), async || kept(&lead) == 0).await;
    let mut ids: Vec<String> =
        next.outside.sent().iter().map(|sent| sent.headers[2].1.clone()).collect();
    ids.sort();
    assert_eq!(ids, [1, 2].map(|number| webhook_id(ActionId(number))));
    lead.die().await;
    let lead = stage.open().await;
    let last = sender(&stage, &lead);
    assert!(last.handler.deliveries(|_| true).is_empty(), "what was sent is not sent again");
}
