use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::bench::{Bench, LONG};
use super::processes::{Tally, contend, judge};
use super::verdict::{Verdict, Wrong, ensure, same};
use crate::model::{Generation, Key, Write};
use crate::store::Store;

const TASKS: usize = 8;
/// Rounds of a race: all of them where they are cheap, in any case the first.
const ROUNDS: u64 = 200;
const FIRST_ROUNDS: u64 = 20;
const ENOUGH: Duration = Duration::from_secs(5);

/// What is left of a race after so many rounds and so much time.
fn is_over(round: u64, began: Instant) -> bool {
    round >= FIRST_ROUNDS && began.elapsed() > ENOUGH
}

/// Does the same thing in all tasks at once, over all clients.
async fn at_once<F, Act>(bench: &Bench, act: Act) -> Result<Vec<Write>, Wrong>
where
    F: Future<Output = Result<Write, crate::error::Error>> + Send + 'static,
    Act: Fn(usize, Arc<dyn Store>) -> F,
{
    let start = Arc::new(Barrier::new(TASKS));
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let (start, act) = (start.clone(), act(task, bench.client(task).clone()));
        tasks.spawn(async move {
            start.wait().await;
            (task, act.await)
        });
    }
    let mut answers = vec![Write::Lost; TASKS];
    while let Some(ended) = tasks.join_next().await {
        let (task, write) = ended.map_err(|error| Wrong::new(error.to_string()))?;
        answers[task] = write?;
    }
    Ok(answers)
}

fn winner(round: u64, answers: &[Write]) -> Result<usize, Wrong> {
    let winners: Vec<_> = (0..TASKS).filter(|task| answers[*task].is_done()).collect();
    match winners.as_slice() {
        [winner] => Ok(*winner),
        _ => Err(Wrong::new(format!("round {round} of {TASKS} tasks has winners {winners:?}"))),
    }
}

pub(super) async fn inserts(bench: Bench) -> Verdict {
    let (key, began) = (bench.key("a"), Instant::now());
    for round in 0..ROUNDS {
        let answers = at_once(&bench, |task, store| {
            let (key, value) = (key.clone(), task.to_string());
            async move {
                store.insert_if_absent(&key, Generation(round), value.as_bytes(), Some(LONG)).await
            }
        });
        let winner = winner(round, &answers.await?)?.to_string();
        bench.shows(&key, round + 1, Some(winner.as_bytes())).await?;
        let delete = bench.client(1).compare_and_delete(&key, winner.as_bytes()).await?;
        same!(delete, Write::Done, "the winner's delete");
        if is_over(round, began) {
            break;
        }
    }
    Ok(())
}

pub(super) async fn swaps(bench: Bench) -> Verdict {
    let (key, began) = (bench.key("a"), Instant::now());
    let mut value = "start".to_owned();
    bench.insert(&key, 0, value.as_bytes(), Some(LONG)).await?;
    for round in 0..ROUNDS {
        let answers = at_once(&bench, |task, store| {
            let (key, old, new) = (key.clone(), value.clone(), format!("{round}.{task}"));
            async move { store.compare_and_swap(&key, old.as_bytes(), new.as_bytes(), Some(LONG)).await }
        });
        value = format!("{round}.{}", winner(round, &answers.await?)?);
        bench.shows(&key, 1, Some(value.as_bytes())).await?;
        if is_over(round, began) {
            break;
        }
    }
    Ok(())
}

pub(super) async fn deletes(bench: Bench) -> Verdict {
    let (key, began) = (bench.key("a"), Instant::now());
    for round in 0..ROUNDS {
        bench.insert(&key, round, b"x", None).await?;
        let answers = at_once(&bench, |_, store| {
            let key = key.clone();
            async move { store.compare_and_delete(&key, b"x").await }
        });
        winner(round, &answers.await?)?;
        bench.shows(&key, round + 1, None).await?;
        if is_over(round, began) {
            break;
        }
    }
    Ok(())
}

/// Half of the tasks insert what the other half deletes: generations count the inserts, and
/// nothing is deleted that was not inserted.
pub(super) async fn inserts_and_deletes(bench: Bench) -> Verdict {
    let (key, began) = (bench.key("a"), Instant::now());
    let (mut inserted, mut deleted) = (0, 0);
    for round in 0..ROUNDS {
        let answers = at_once(&bench, |task, store| {
            let key = key.clone();
            async move {
                if task % 2 == 0 {
                    return store.compare_and_delete(&key, b"x").await;
                }
                let seen = store.read(&key).await?.generation;
                store.insert_if_absent(&key, seen, b"x", Some(LONG)).await
            }
        });
        for (task, answer) in answers.await?.into_iter().enumerate() {
            let count = if task % 2 == 0 { &mut deleted } else { &mut inserted };
            *count += u64::from(answer.is_done());
        }
        let entry = bench.client(0).read(&key).await?;
        same!(entry.generation, Generation(inserted), "the generation after {inserted} inserts");
        let stands = u64::from(entry.held.is_some());
        same!(inserted - deleted.min(inserted), stands, "{inserted} inserts, {deleted} deletes");
        if is_over(round, began) {
            break;
        }
    }
    Ok(())
}

/// A leader renews at the last moment while others wait for its end: either it goes on, or it
/// has lost and exactly one follows. Never both.
pub(super) async fn renewal_and_takeover(bench: Bench) -> Verdict {
    let mut rounds = JoinSet::new();
    for round in 0..6_u32 {
        let (bench, key) = (bench.clone(), bench.key(&round.to_string()));
        rounds.spawn(async move { last_moment(&bench, &key, round).await });
    }
    while let Some(ended) = rounds.join_next().await {
        ended.map_err(|error| Wrong::new(error.to_string()))??;
    }
    Ok(())
}

async fn last_moment(bench: &Bench, key: &Key, round: u32) -> Verdict {
    let ttl = bench.short();
    let first = bench.insert(key, 0, b"leader", Some(ttl)).await?;
    // Between a little before and a little after the entry may go.
    let moment = first.done + ttl + bench.lag() * round / 6 - Duration::from_millis(2)
        + Duration::from_micros(800) * round;
    let answers = at_once(bench, |task, store| {
        let key = key.clone();
        async move {
            tokio::time::sleep_until(moment).await;
            if task == 0 {
                return store.compare_and_swap(&key, b"leader", b"leader", Some(LONG)).await;
            }
            let value = format!("successor {task}");
            loop {
                let insert =
                    store.insert_if_absent(&key, Generation(1), value.as_bytes(), Some(LONG));
                let past = Instant::now() > moment + ttl + store.expiry().lag;
                match insert.await? {
                    Write::Lost if !past => tokio::task::yield_now().await,
                    answer @ (Write::Lost | Write::Done) => return Ok(answer),
                }
            }
        }
    });
    let winner = winner(round.into(), &answers.await?)?;
    let (generation, value) = match winner {
        0 => (1, "leader".to_owned()),
        task => (2, format!("successor {task}")),
    };
    bench.shows(key, generation, Some(value.as_bytes())).await
}

/// Whoever holds the seat can renew in time, however many others ask for it meanwhile.
pub(super) async fn renewal_among_contenders(bench: Bench) -> Verdict {
    let (key, over) = (bench.key("a"), Arc::new(AtomicBool::new(false)));
    bench.insert(&key, 0, b"leader", Some(LONG)).await?;
    let mut contenders = JoinSet::new();
    for task in 1..TASKS {
        let (store, key, over) = (bench.client(task).clone(), key.clone(), over.clone());
        contenders.spawn(async move {
            while !over.load(Ordering::SeqCst) {
                let insert = store.insert_if_absent(&key, Generation(1), b"x", Some(LONG)).await?;
                same!(insert, Write::Lost, "an insert beside a leader that renews");
                tokio::task::yield_now().await;
            }
            Ok::<_, Wrong>(())
        });
    }
    for _ in 0..50 {
        let call = bench.client(0).compare_and_swap(&key, b"leader", b"leader", Some(LONG));
        same!(call.await?, Write::Done, "a renewal among contenders");
    }
    over.store(true, Ordering::SeqCst);
    while let Some(ended) = contenders.join_next().await {
        ended.map_err(|error| Wrong::new(error.to_string()))??;
    }
    bench.shows(&key, 1, Some(b"leader")).await
}

/// The same contention that several processes are put to.
pub(super) async fn contention(bench: Bench) -> Verdict {
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let (store, seat) = (bench.client(task).clone(), bench.seat);
        let name = bench.case.to_owned();
        tasks.spawn(async move { contend(store.as_ref(), &name, seat, task, 60).await });
    }
    let mut tallies: Vec<Tally> = Vec::new();
    while let Some(ended) = tasks.join_next().await {
        tallies.push(ended.map_err(|error| Wrong::new(error.to_string()))??);
    }
    ensure!(tallies.len() == TASKS, "a task is missing");
    judge(bench.client(0).as_ref(), bench.case, bench.seat, &tallies).await
}
