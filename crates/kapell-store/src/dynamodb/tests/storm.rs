use std::time::Duration;

use tokio::time::Instant;

use super::front::Fate;
use super::{LEASE, Place, SHARD, key, raised};
use crate::model::{Commit, Generation, Op, Write};
use crate::store::{Shards as _, Ttl as _};

/// Fair weather between all kinds of bad.
const WEATHER: [Fate; 12] = [
    Fate::Passes,
    Fate::Refused(400, "ThrottlingException"),
    Fate::Passes,
    Fate::DoneBut(500, "InternalServerError"),
    Fate::Cut,
    Fate::Refused(500, "InternalServerError"),
    Fate::Passes,
    Fate::Refused(400, "ProvisionedThroughputExceededException"),
    Fate::DoneBut(503, "ServiceUnavailable"),
    Fate::Refused(400, "RequestLimitExceeded"),
    Fate::Cut,
    Fate::Passes,
];
const COMMITS: u64 = 36;
const SOON: Duration = Duration::from_secs(60);

/// A leader renews and commits through it, sends again what it got no answer to, and in the end nothing is missing.
#[tokio::test]
async fn a_leader_in_a_storm_loses_nothing() {
    let test = "storm::a_leader_in_a_storm_loses_nothing";
    let Some(place) = Place::find(test).await else { return };
    let (store, seat) = (place.through().await, key("seat"));
    let insert = store.insert_if_absent(&seat, Generation(0), b"me", LEASE).await.unwrap();
    assert_eq!(insert, Write::Done);
    let mut at = raised(&store).await;
    place.front.set(WEATHER.repeat(100), Fate::Passes);
    let (end, mut unknown) = (Instant::now() + SOON, 0);
    for number in 0..COMMITS {
        let ops = [Op::Put(key(&format!("{number:03}")), number.to_string().into_bytes())];
        loop {
            assert!(Instant::now() < end, "commit {number} takes too long");
            match store.commit(SHARD, at, &ops).await {
                Ok(Commit::Done) => break,
                Ok(Commit::Fenced(by)) => {
                    assert!(by == at.next() && unknown > 0, "fenced by {by} at {at}");
                    break;
                }
                Err(error) => {
                    assert!(error.may_pass(), "{error:?}");
                    unknown += 1;
                }
            }
        }
        at = at.next();
        match store.compare_and_swap(&seat, b"me", b"me", LEASE).await {
            Ok(write) => assert_eq!(write, Write::Done, "nobody else is there"),
            Err(error) => assert!(error.may_pass(), "{error:?}"),
        }
    }
    assert!(unknown > 0, "there was no storm");
    let direct = place.direct().await;
    assert_eq!(direct.fence(SHARD).await.unwrap(), at);
    let found = direct.scan(SHARD, None).await.unwrap();
    let found: Vec<_> = found.items.into_iter().map(|item| item.value).collect();
    let want: Vec<_> = (0..COMMITS).map(|number| number.to_string().into_bytes()).collect();
    assert_eq!(found, want);
    assert_eq!(direct.read(&seat).await.unwrap().held.unwrap().value, b"me");
}
