use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{join, join_all};
use kapell_core::seat::Epoch;
use tokio::task::{JoinSet, yield_now};
use tokio::time::Instant;

use super::bench::Bench;
use super::chance::Dice;
use super::cuts::through;
use super::history::{Done, Fenced, Log, Told, Ttl, explain_entry, explain_shard};
use super::proxy::{Proxy, Wire};
use super::timed::pass;
use super::verdict::{Verdict, Wrong, ensure};
use crate::error::Error;
use crate::model::{Commit, Expiry, Fence, Generation, Held, Key, Op, Raise, Shard, Write};
use crate::store::Store;

/// How many tasks share a key, and how often each of them asks.
const TASKS: usize = 6;
const CALLS: u32 = 25;
/// After so many calls without an answer a task gives up: they make the search long.
const UNKNOWN: u32 = 4;
/// Later than anybody looks.
const LATE: Duration = Duration::from_secs(3600);

type EntryLog = Log<Ttl, Told>;

/// What a task does with a key, and how fast.
#[derive(Debug, Clone)]
struct Habit {
    tasks: usize,
    calls: u32,
    ttl: Option<Duration>,
    pause: Duration,
}

pub(super) async fn entries(bench: Bench) -> Verdict {
    let habit = Habit { tasks: TASKS, calls: CALLS, ttl: None, pause: Duration::ZERO };
    let stores: Vec<_> = bench.clients.to_vec();
    told(&bench, &stores, 24, &habit).await
}

pub(super) async fn entries_that_expire(bench: Bench) -> Verdict {
    let ttl = bench.short();
    // Few enough that an entry is often left alone for as long as it lives.
    let habit = Habit { tasks: 3, calls: 8, ttl: Some(ttl), pause: ttl };
    let stores: Vec<_> = bench.clients.to_vec();
    told(&bench, &stores, 60, &habit).await
}

/// Half of the clients lose their connections again and again.
pub(super) async fn entries_with_cuts(bench: Bench) -> Verdict {
    let Some((proxy, flaky)) = through(&bench).await? else { return Ok(()) };
    let stores = [bench.client(0).clone(), flaky, bench.client(1).clone()];
    let pause = Duration::from_millis(20);
    let habit = Habit { tasks: TASKS, calls: CALLS, ttl: None, pause };
    while_cutting(&proxy, told(&bench, &stores, 8, &habit)).await
}

async fn told(bench: &Bench, stores: &[Arc<dyn Store>], keys: usize, habit: &Habit) -> Verdict {
    let mut tasks = JoinSet::new();
    let mut logs = Vec::new();
    for number in 0..keys {
        let (key, log) = (bench.key(&number.to_string()), Arc::new(EntryLog::new()));
        for task in 0..habit.tasks {
            let (key, log, habit) = (key.clone(), log.clone(), habit.clone());
            let store = stores[(task + number) % stores.len()].clone();
            tasks.spawn(async move { live(store.as_ref(), &key, &log, task, &habit).await });
        }
        logs.push(log);
    }
    tasks.join_all().await;
    for log in logs {
        let calls = log.calls();
        let answered = calls.iter().filter(|call| call.answer.is_some()).count();
        ensure!(answered > 0, "no call was answered");
        if let Err(error) = explain_entry(&calls, expiry(bench)) {
            let stuck: Vec<_> = error.stuck.iter().map(|call| &calls[*call]).collect();
            return Err(Wrong::new(format!("{error}:\n{stuck:#?}")));
        }
    }
    Ok(())
}

/// Where each client counts from when it first looked, an entry goes as late as somebody has looked.
fn expiry(bench: &Bench) -> Expiry {
    let expiry = bench.client(0).expiry();
    if bench.client(0).observes() { Expiry { lag: LATE, ..expiry } } else { expiry }
}

/// Reads, inserts, swaps, deletes and lifts as chance will have it, by what it has last seen.
async fn live(store: &dyn Store, key: &Key, log: &EntryLog, task: usize, habit: &Habit) {
    let mut dice = Dice::new();
    let (mut generation, mut value) = (Generation(0), Vec::new());
    let mut unknown = 0;
    for number in 0..habit.calls {
        yield_now().await;
        if !habit.pause.is_zero() {
            pass(Instant::now() + breath(&mut dice, habit.pause)).await;
        }
        let new = format!("{task}.{number}").into_bytes();
        let ask = match dice.roll(20) {
            0..7 => Ttl::Read,
            7..12 => Ttl::Insert { seen: generation, value: new, ttl: habit.ttl },
            12..17 => Ttl::Swap { old: value.clone(), new, ttl: habit.ttl },
            // A lift may prolong what stands, which the model does not know.
            19 if habit.ttl.is_none() => Ttl::Lift { floor: generation.next() },
            _ => Ttl::Delete { old: value.clone() },
        };
        let Some(answer) = log.record(ask.clone(), call(store, key, &ask)).await else {
            unknown += 1;
            if unknown >= UNKNOWN {
                return;
            }
            continue;
        };
        match (answer, ask) {
            (Told::Entry(entry), _) => {
                generation = entry.generation;
                value = entry.held.map_or(value, |held: Held| held.value);
            }
            (Told::Write(Write::Done), Ttl::Insert { seen, value: new, .. }) => {
                (generation, value) = (seen.next(), new);
            }
            (Told::Write(Write::Done), Ttl::Swap { new, .. }) => value = new,
            _ => {}
        }
    }
}

/// Mostly short, often about as long as an entry lives.
fn breath(dice: &mut Dice, pause: Duration) -> Duration {
    let most = u64::try_from(pause.as_micros()).unwrap_or(u64::MAX);
    Duration::from_micros(match dice.roll(2) {
        0 => dice.roll(most / 10),
        _ => most * 9 / 10 + dice.roll(most * 3 / 10),
    })
}

async fn call(store: &dyn Store, key: &Key, ask: &Ttl) -> Result<Told, Error> {
    Ok(match ask {
        Ttl::Insert { seen, value, ttl } => {
            Told::Write(store.insert_if_absent(key, *seen, value, *ttl).await?)
        }
        Ttl::Swap { old, new, ttl } => {
            Told::Write(store.compare_and_swap(key, old, new, *ttl).await?)
        }
        Ttl::Delete { old } => Told::Write(store.compare_and_delete(key, old).await?),
        Ttl::Read => Told::Entry(store.read(key).await?),
        Ttl::Lift { floor } => {
            store.lift(key, *floor).await?;
            Told::Lifted
        }
    })
}

/// Breaks connections now and then until the work is done.
async fn while_cutting(proxy: &Proxy, work: impl Future<Output = Verdict>) -> Verdict {
    let cutting = async {
        let mut dice = Dice::new();
        for turn in 0_usize.. {
            let wires = [Wire::CutAnswer(1), Wire::CutAnswer(2), Wire::CutRequest];
            pass(Instant::now() + Duration::from_millis(60 + dice.roll(80))).await;
            let (before, armed) = (proxy.cuts(), Instant::now());
            proxy.set(wires[turn % wires.len()]);
            while proxy.cuts() == before && armed.elapsed() < Duration::from_millis(200) {
                yield_now().await;
            }
            proxy.set(Wire::Pass);
        }
    };
    tokio::select! {
        verdict = work => verdict,
        () = cutting => Ok(()),
    }
}

type ShardLog = Log<Fenced, Done>;

/// Leaders depose each other, commit, and resend what was not answered; others look on.
pub(super) async fn commits(bench: Bench) -> Verdict {
    let stores: Vec<_> = bench.clients.to_vec();
    led(&bench, &stores, Duration::ZERO).await
}

pub(super) async fn commits_with_cuts(bench: Bench) -> Verdict {
    let Some((proxy, flaky)) = through(&bench).await? else { return Ok(()) };
    let stores = [bench.client(0).clone(), flaky.clone(), flaky, bench.client(1).clone()];
    while_cutting(&proxy, led(&bench, &stores, Duration::from_millis(5))).await
}

const LEADERS: usize = 4;
const WATCHED: u16 = 4;

async fn led(bench: &Bench, stores: &[Arc<dyn Store>], rest: Duration) -> Verdict {
    let logs: Arc<[ShardLog]> = (0..WATCHED).map(|_| ShardLog::new()).collect();
    let mut tasks = JoinSet::new();
    for task in 0..LEADERS * 2 {
        let (bench, logs) = (bench.clone(), logs.clone());
        let store = stores[task % stores.len()].clone();
        tasks.spawn(async move {
            if task < LEADERS {
                lead(&bench, store.as_ref(), &logs, task, rest).await;
            } else {
                look_on(&bench, store.as_ref(), &logs, rest).await;
            }
        });
    }
    tasks.join_all().await;
    for (log, number) in logs.iter().zip(0_u16..) {
        let calls = log.calls();
        ensure!(calls.iter().any(|call| call.answer.is_some()), "no call was answered");
        if let Err(error) = explain_shard(&calls) {
            let stuck: Vec<_> = error.stuck.iter().map(|call| calls[*call].clone()).collect();
            return Err(Wrong::new(format!("shard {number}: {error}:\n{stuck:#?}")));
        }
    }
    Ok(())
}

async fn lead(bench: &Bench, store: &dyn Store, logs: &[ShardLog], task: usize, rest: Duration) {
    let mut dice = Dice::new();
    let mut unknown = 0;
    for reign in 0..8 {
        let epoch = Epoch((reign * LEADERS + task + 1) as u64);
        // A seat's raise is one call that is seen by every shard.
        let raise = raise(bench, store, logs, epoch).await;
        let Some(Raise::Done(mut fences)) = raise else { continue };
        for number in 0..dice.roll(24) {
            pass(Instant::now() + rest).await;
            let shard = bench.shard(u16::try_from(dice.roll(WATCHED.into())).unwrap_or_default());
            let (log, at) = (&logs[usize::from(shard.number)], fences[usize::from(shard.number)]);
            let writes = epoch.0 << 32 | number;
            match commit(store, log, shard, at, writes).await {
                Some(Commit::Done) => fences[usize::from(shard.number)] = at.next(),
                // What it sent before and got no answer to has landed.
                Some(Commit::Fenced(by)) if by == at.next() => {
                    fences[usize::from(shard.number)] = by;
                }
                Some(Commit::Fenced(_)) => break,
                None => unknown += 1,
            }
            if unknown >= UNKNOWN {
                return;
            }
        }
    }
}

async fn raise(bench: &Bench, store: &dyn Store, logs: &[ShardLog], epoch: Epoch) -> Option<Raise> {
    let (share, shared) = tokio::sync::watch::channel(None);
    let records = logs.iter().enumerate().map(|(number, log)| {
        let mut shared = shared.clone();
        log.record(Fenced::Raise(epoch), async move {
            // Each log's call spans the one real call, which is made after all have begun.
            let answer = shared.wait_for(Option::is_some).await;
            match answer.ok().and_then(|answer| answer.clone()) {
                Some(Some(Raise::Done(fences))) => Ok(Done::Raised(fences[number])),
                Some(Some(Raise::Fenced(by))) => Ok(Done::NotRaised(by)),
                None | Some(None) => Err(Error::Absent { store: "no answer".to_owned() }),
            }
        })
    });
    let real = async {
        let answer = store.raise(bench.seat, epoch).await.ok();
        share.send_replace(Some(answer.clone()));
        answer
    };
    // In this order: the records begin before the call does.
    let (_, answer) = join(join_all(records), real).await;
    answer
}

async fn commit(
    store: &dyn Store,
    log: &ShardLog,
    shard: Shard,
    at: Fence,
    writes: u64,
) -> Option<Commit> {
    let ops = [Op::Put(Key::new(*b"last"), writes.to_be_bytes().to_vec())];
    let call = async { store.commit(shard, at, &ops).await.map(Done::Commit) };
    match log.record(Fenced::Commit { at, writes }, call).await {
        Some(Done::Commit(commit)) => Some(commit),
        _ => None,
    }
}

async fn look_on(bench: &Bench, store: &dyn Store, logs: &[ShardLog], rest: Duration) {
    let mut dice = Dice::new();
    for _ in 0..60 {
        pass(Instant::now() + rest).await;
        yield_now().await;
        let shard = bench.shard(u16::try_from(dice.roll(WATCHED.into())).unwrap_or_default());
        let log = &logs[usize::from(shard.number)];
        let fence = async { store.fence(shard).await.map(Done::Fence) };
        log.record(Fenced::Fence, fence).await;
        let scan = async {
            let page = store.scan(shard, None).await?;
            let value = page.items.first().and_then(|item| item.value.as_slice().try_into().ok());
            Ok(Done::Scan(value.map(u64::from_be_bytes)))
        };
        log.record(Fenced::Scan, scan).await;
    }
}
