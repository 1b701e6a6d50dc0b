use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kapell_core::seams::{Clock, Moment, Timestamp};

use super::front::Fate;
use super::{LEASE, Place, key};
use crate::model::{Generation, Write};
use crate::open::How;
use crate::store::Ttl as _;
use crate::testing::how;

const ENTRIES: usize = 10;

/// A clock that can be set forward.
#[derive(Debug)]
struct Ahead {
    clock: Arc<dyn Clock>,
    seconds: AtomicU64,
}

impl Clock for Ahead {
    fn now(&self) -> Moment {
        self.clock.now().after(Duration::from_secs(self.seconds.load(Ordering::Relaxed)))
    }

    fn wall(&self) -> Timestamp {
        self.clock.wall()
    }
}

/// Each of those that have run out is removed before that is said, and there may be many.
#[tokio::test]
async fn a_list_may_take_longer_than_one_question() {
    let Some(place) = Place::find("listing::a_list_may_take_longer_than_one_question").await else {
        return;
    };
    let clock = Arc::new(Ahead { clock: how().clock, seconds: AtomicU64::new(0) });
    let timeout = Duration::from_secs(1);
    let store = place.through_with(&How { timeout, clock: Arc::clone(&clock) as _, ..how() }).await;
    for number in 0..ENTRIES {
        let key = key(&format!("seat-{number}"));
        let insert = store.insert_if_absent(&key, Generation(0), b"me", LEASE).await.unwrap();
        assert_eq!(insert, Write::Done);
    }
    clock.seconds.store(3600, Ordering::Relaxed);
    // Four pauses, of 150 ms together at least and 300 at most, for each removal.
    let slow = [Fate::Refused(400, "ThrottlingException"); 4].into_iter().chain([Fate::Passes]);
    let slow = std::iter::repeat_n(slow, ENTRIES).flatten();
    place.front.set([Fate::Passes].into_iter().chain(slow), Fate::Passes);
    let listed = store.list().await.unwrap();
    assert_eq!(listed.len(), ENTRIES);
    for (key, entry) in listed {
        assert_eq!((entry.generation, entry.held), (Generation(1), None), "{key}");
    }
    let took: Duration = place.front.pauses().into_iter().sum();
    assert!(took > timeout, "it took {took:?} only");
}
