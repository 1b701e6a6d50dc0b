//! Contention whose outcome can be judged afterwards, wherever the contenders run.

use std::collections::BTreeMap;
use std::time::Duration;

use kapell_core::seat::{Epoch, Seat};
use tokio::task::yield_now;
use tokio::time::Instant;

use super::chance::Dice;
use super::scan::all;
use super::timed::pass;
use super::verdict::{Verdict, Wrong, ensure, same};
use crate::model::{Commit, Fence, Generation, Key, Op, Raise, Shard, Write};
use crate::store::Store;

/// What one contender has won: the generations of its inserts, the numbers that it has swapped,
/// the commits that it has made. As lines of text it passes from one process to another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    pub who: usize,
    pub inserts: Vec<u64>,
    pub swaps: Vec<u64>,
    pub commits: Vec<u64>,
}

impl Tally {
    pub fn to_text(&self) -> String {
        let line = |name: &str, numbers: &[u64]| {
            let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
            format!("{name} {}\n", numbers.join(" "))
        };
        [
            line("who", &[self.who as u64]),
            line("inserts", &self.inserts),
            line("swaps", &self.swaps),
            line("commits", &self.commits),
        ]
        .concat()
    }

    pub fn from_text(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let mut numbers = |name: &str| {
            let line = lines.next()?.strip_prefix(name)?;
            line.split_whitespace().map(|number| number.parse().ok()).collect::<Option<Vec<u64>>>()
        };
        let who = usize::try_from(*numbers("who")?.first()?).ok()?;
        let (inserts, swaps) = (numbers("inserts")?, numbers("swaps")?);
        Some(Self { who, inserts, swaps, commits: numbers("commits")? })
    }
}

/// Takes part until each of the three contests has seen `rounds`.
pub async fn contend(
    store: &dyn Store,
    name: &str,
    seat: Seat,
    who: usize,
    rounds: u64,
) -> Result<Tally, Wrong> {
    Ok(Tally {
        who,
        inserts: seats(store, name, who, rounds).await?,
        swaps: counts(store, name, rounds).await?,
        commits: commits(store, seat, who, rounds).await?,
    })
}

/// Steps back after a loss: a queue of those who never do can starve one of them for seconds,
/// which is a matter of speed and not judged here.
async fn step_back(dice: &mut Dice) {
    pass(Instant::now() + Duration::from_micros(dice.roll(3_000))).await;
}

/// Inserts where nothing stands, and deletes that again.
async fn seats(store: &dyn Store, name: &str, who: usize, rounds: u64) -> Result<Vec<u64>, Wrong> {
    let (key, mut won, mut dice) = (key(name, "seat"), Vec::new(), Dice::new());
    let value = who.to_string();
    loop {
        yield_now().await;
        let entry = store.read(&key).await?;
        if entry.generation.0 >= rounds {
            return Ok(won);
        }
        let insert = store.insert_if_absent(&key, entry.generation, value.as_bytes(), None).await?;
        if insert.is_done() {
            won.push(entry.generation.next().0);
            let delete = store.compare_and_delete(&key, value.as_bytes()).await?;
            same!(delete, Write::Done, "{who} deletes what it has inserted");
        } else {
            step_back(&mut dice).await;
        }
    }
}

/// Counts a number up by one.
async fn counts(store: &dyn Store, name: &str, rounds: u64) -> Result<Vec<u64>, Wrong> {
    let (key, mut won, mut dice) = (key(name, "count"), Vec::new(), Dice::new());
    loop {
        yield_now().await;
        let entry = store.read(&key).await?;
        let Some(held) = entry.held else {
            // Whoever loses here finds it in the next round.
            let _ = store.insert_if_absent(&key, Generation(0), &0_u64.to_be_bytes(), None).await?;
            continue;
        };
        let bytes = held.value.as_slice().try_into();
        let number = u64::from_be_bytes(bytes.map_err(|_| Wrong::new("the count is no number"))?);
        if number >= rounds {
            return Ok(won);
        }
        let next = (number + 1).to_be_bytes();
        if store.compare_and_swap(&key, &held.value, &next, None).await?.is_done() {
            won.push(number);
        } else {
            step_back(&mut dice).await;
        }
    }
}

/// Commits to one shard under one epoch, which the trait leaves to a single writer.
async fn commits(
    store: &dyn Store,
    seat: Seat,
    who: usize,
    rounds: u64,
) -> Result<Vec<u64>, Wrong> {
    let (shard, mut won, mut dice) = (Shard { seat, number: 11 }, Vec::new(), Dice::new());
    let raise = store.raise(seat, Epoch(1)).await?;
    ensure!(matches!(raise, Raise::Done(_)), "{who} raises to what stands: {raise:?}");
    let mut at = store.fence(shard).await?;
    while at.seq < rounds {
        yield_now().await;
        let ops = [Op::Put(Key::new(at.seq.to_be_bytes()), who.to_string().into_bytes())];
        at = match store.commit(shard, at, &ops).await? {
            Commit::Done => {
                won.push(at.seq);
                at.next()
            }
            Commit::Fenced(stands) => {
                ensure!(stands > at, "a commit at {at} was fenced by {stands}");
                step_back(&mut dice).await;
                stands
            }
        };
    }
    Ok(won)
}

/// Everything was won by exactly one of them, and the store remembers it so.
pub async fn judge(store: &dyn Store, name: &str, seat: Seat, tallies: &[Tally]) -> Verdict {
    let generation = store.read(&key(name, "seat")).await?.generation.0;
    once("generation", tallies, |tally| &tally.inserts, 1..=generation)?;
    let held = store.read(&key(name, "count")).await?.held.map(|held| held.value);
    let count = tallies.iter().map(|tally| tally.swaps.len() as u64).sum::<u64>();
    same!(held, Some(count.to_be_bytes().to_vec()), "the count after {count} swaps");
    once("count", tallies, |tally| &tally.swaps, 0..=count.saturating_sub(1))?;
    let shard = Shard { seat, number: 11 };
    let commits = tallies.iter().map(|tally| tally.commits.len() as u64).sum::<u64>();
    let fence = Fence { epoch: Epoch(1), seq: commits };
    same!(store.fence(shard).await?, fence, "the fence after {commits} commits");
    let winners = once("commit", tallies, |tally| &tally.commits, 0..=commits.saturating_sub(1))?;
    let records = all(store, shard).await?;
    let found: Vec<_> = records.into_iter().map(|item| item.value).collect();
    let want: Vec<_> = winners.into_values().map(|who| who.to_string().into_bytes()).collect();
    same!(found, want, "who has made each commit");
    Ok(())
}

fn once(
    what: &str,
    tallies: &[Tally],
    of: fn(&Tally) -> &Vec<u64>,
    all: std::ops::RangeInclusive<u64>,
) -> Result<BTreeMap<u64, usize>, Wrong> {
    let mut winners = BTreeMap::new();
    for tally in tallies {
        for number in of(tally) {
            let other = winners.insert(*number, tally.who);
            ensure!(other.is_none(), "{what} {number}: won by {} and {other:?}", tally.who);
        }
    }
    let missing: Vec<u64> = all.filter(|number| !winners.contains_key(number)).collect();
    ensure!(missing.is_empty(), "{what}: nobody has won {missing:?}");
    Ok(winners)
}

fn key(name: &str, contest: &str) -> Key {
    Key::new(format!("{name}/{contest}").into_bytes())
}
