use std::sync::Arc;

use kapell_core::board::{CellId, Event};
use kapell_core::seat::Epoch;

use crate::board::hub::Hub;
use crate::board::{EventId, KEPT, Next, Subscription};

fn hub() -> Arc<Hub> {
    Arc::new(Hub::new(Epoch(7)))
}

fn publish(hub: &Hub, count: usize) {
    let event = |n| (Event::Cell { cell_id: CellId::new(format!("c{n}")), present: true }, 1);
    hub.publish((0..count).map(event));
}

const fn id(number: u64) -> EventId {
    EventId { epoch: Epoch(7), number }
}

/// `7-3` for an event, `gap 7-3` for a gap, `end`.
async fn next(watcher: &mut Subscription) -> String {
    match watcher.next().await {
        Some(Next::Event(id, _)) => id.to_string(),
        Some(Next::Gap(id)) => format!("gap {id}"),
        None => "end".to_owned(),
    }
}

#[tokio::test]
async fn a_watcher_sees_what_comes() {
    let hub = hub();
    publish(&hub, 3);
    let mut watcher = hub.subscribe(None);
    let (told, ()) = tokio::join!(next(&mut watcher), async { publish(&hub, 2) });
    assert_eq!(told, "7-4");
    assert_eq!(next(&mut watcher).await, "7-5");
    hub.close();
    assert_eq!(next(&mut watcher).await, "end");
}

#[tokio::test]
async fn what_was_published_before_the_end_is_still_told() {
    let hub = hub();
    let mut watcher = hub.subscribe(None);
    publish(&hub, 1);
    hub.close();
    publish(&hub, 1);
    assert_eq!(next(&mut watcher).await, "7-1");
    assert_eq!(next(&mut watcher).await, "7-2");
    assert_eq!(next(&mut watcher).await, "end");
}

#[tokio::test]
async fn a_watcher_resumes_where_it_was() {
    let hub = hub();
    publish(&hub, 5);
    let mut watcher = hub.subscribe(Some(id(3)));
    assert_eq!(next(&mut watcher).await, "7-4");
    let mut from_the_start = hub.subscribe(Some(id(0)));
    assert_eq!(next(&mut from_the_start).await, "7-1");
    let mut at_the_end = hub.subscribe(Some(id(5)));
    publish(&hub, 1);
    assert_eq!(next(&mut at_the_end).await, "7-6");
}

#[tokio::test]
async fn what_cannot_be_resumed_begins_with_a_gap() {
    let hub = hub();
    publish(&hub, KEPT + 2);
    let last = u64::try_from(KEPT).unwrap() + 2;
    let other = EventId { epoch: Epoch(6), number: last };
    for after in [other, id(0), id(1), id(last + 1), id(u64::MAX)] {
        let mut watcher = hub.subscribe(Some(after));
        assert_eq!(next(&mut watcher).await, "gap 7-2", "after {after}");
        for number in 3..=last {
            assert_eq!(next(&mut watcher).await, format!("7-{number}"), "after {after}");
        }
    }
    let mut oldest = hub.subscribe(Some(id(2)));
    assert_eq!(next(&mut oldest).await, "7-3");
}

#[tokio::test]
async fn nothing_is_missed_by_who_asks_for_all_that_ever_happened() {
    let before_all = EventId { epoch: Epoch(0), number: 0 };
    let first = Arc::new(Hub::new(Epoch(1)));
    publish(&first, 2);
    assert_eq!(next(&mut first.subscribe(Some(before_all))).await, "1-1");
    let second = Arc::new(Hub::new(Epoch(2)));
    publish(&second, 1);
    let mut watcher = second.subscribe(Some(before_all));
    assert_eq!(next(&mut watcher).await, "gap 2-0");
    assert_eq!(next(&mut watcher).await, "2-1");
}

#[tokio::test]
async fn whoever_falls_behind_gets_a_gap_and_goes_on() {
    let hub = hub();
    let mut watcher = hub.subscribe(None);
    publish(&hub, KEPT + 1);
    let last = KEPT + 1;
    assert_eq!(next(&mut watcher).await, format!("gap 7-{last}"));
    publish(&hub, 1);
    assert_eq!(next(&mut watcher).await, format!("7-{}", last + 1));
}

/// Large records do not make the ring large.
#[tokio::test]
async fn the_ring_is_bounded_in_bytes_too() {
    let hub = hub();
    let mut watcher = hub.subscribe(None);
    let event = || Event::Cell { cell_id: "c".into(), present: true };
    hub.publish((0..5).map(|_| (event(), 20 << 20)));
    assert_eq!(next(&mut watcher).await, "gap 7-5");
    let mut oldest = hub.subscribe(Some(id(2)));
    assert_eq!(next(&mut oldest).await, "7-3");
}

#[test]
fn an_id_comes_back_from_its_text() {
    assert_eq!(EventId::parse("7-12"), Some(id(12)));
    assert_eq!(EventId::parse(&id(3).to_string()), Some(id(3)));
    for bad in ["", "7", "7-", "-7", "+7-1", "7-1-1", "7-x", "7-99999999999999999999"] {
        assert_eq!(EventId::parse(bad), None, "{bad}");
    }
}
