//! Cassandra tells nobody of changes, so whoever watches asks again and again.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::Cassandra;
use super::fault::Failure;
use super::link::Link;
use super::query::Query;
use crate::watch::{Bell, Watch};

/// Between two questions: this, half of it more or less by chance, so that many who watch do not ask in step.
const POLL: Duration = Duration::from_millis(200);

/// What changes with everything that is to be told: the generation, and when the value was written.
type Sight = Option<(Option<i64>, Option<i64>)>;

async fn peek(link: &Link, key: &[u8]) -> Result<Sight, Failure> {
    let found = link.ask(Query::Peek, (link.store(), key)).await?.into_rows_result()?;
    Ok(found.maybe_first_row()?)
}

fn pause(chance: &RandomState, turn: u64) -> Duration {
    let permille = u32::try_from(chance.hash_one(turn) % 1000).unwrap_or_default();
    POLL / 2 + POLL * permille / 1000
}

impl Cassandra {
    /// It was looked at before this returns, so no change that comes later is missed.
    pub(super) async fn watch_key(&self, key: Vec<u8>) -> Result<Watch, Failure> {
        let mut seen = peek(&self.link, &key).await?;
        let (bell, link, patience) = (Bell::new(), Arc::clone(&self.link), self.timeout);
        let own = Arc::clone(&self.own);
        let watch = bell.watch();
        let follow = async move {
            let chance = RandomState::new();
            for turn in 0.. {
                sleep(pause(&chance, turn)).await;
                if own.holds(&key) {
                    continue;
                }
                // Whoever cannot be told any more is cut off, and watches again.
                let Ok(Ok(now)) = timeout(patience, peek(&link, &key)).await else { return };
                if now != seen {
                    seen = now;
                    bell.ring();
                }
            }
        };
        let mut watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        while watches.try_join_next().is_some() {}
        Ok(watch.fed_by(watches.spawn(follow)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_asked_out_of_step() {
        let chance = RandomState::new();
        let pauses: Vec<_> = (0..200).map(|turn| pause(&chance, turn)).collect();
        assert!(pauses.iter().all(|each| (POLL / 2..=POLL * 3 / 2).contains(each)), "{pauses:?}");
        let (least, most) = (pauses.iter().min().unwrap(), pauses.iter().max().unwrap());
        assert!(most.saturating_sub(*least) > POLL / 2, "{least:?} to {most:?}");
    }
}
