use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};
use kapell_core::seat::Epoch;
use tokio::time::{Instant, timeout};

use super::bench::{Bench, LONG};
use super::clock::how;
use super::commit::committed;
use super::proxy::{Proxy, Wire};
use super::raise::{fence, raised};
use super::scan::{all, put, record};
use super::timed::pause;
use super::verdict::{Verdict, Wrong, ensure, same};
use crate::error::Error;
use crate::model::{Commit, Fence, Generation, Key, Raise, Shard, Write};
use crate::open::How;
use crate::store::Store;

/// How soon a client must be of use again after its connection is.
const SOON: Duration = Duration::from_secs(10);
/// What a client whose server is silent is told to wait, and what it may take longer.
const PATIENCE: Duration = Duration::from_secs(1);
const LATE: Duration = Duration::from_millis(1500);

/// Where a conversation may break: before it, or at one of the answers.
const BREAKS: [Wire; 7] = [
    Wire::CutRequest,
    Wire::CutAnswer(1),
    Wire::CutAnswer(2),
    Wire::CutAnswer(3),
    Wire::CutAnswer(4),
    Wire::CutAnswer(5),
    Wire::CutAnswer(1),
];

/// A client behind a wire that can be cut; none if there is no wire.
pub(super) async fn through(bench: &Bench) -> Result<Option<(Proxy, Arc<dyn Store>)>, Wrong> {
    through_with(bench, &how()).await
}

async fn through_with(bench: &Bench, how: &How) -> Result<Option<(Proxy, Arc<dyn Store>)>, Wrong> {
    let Some(server) = bench.fresh.server() else { return Ok(None) };
    let proxy = Proxy::open(server).await.map_err(|error| Wrong::new(error.to_string()))?;
    let store = bench.fresh.client_through(proxy.address(), how).await?;
    Ok(Some((proxy, store)))
}

/// Looks until the client gets answers again.
async fn recovered(proxy: &Proxy, store: &dyn Store, key: &Key) -> Verdict {
    proxy.set(Wire::Pass);
    let end = Instant::now() + SOON;
    loop {
        match store.read(key).await {
            Ok(_) => return Ok(()),
            Err(error) if Instant::now() > end => return Err(error.into()),
            Err(_) => pause().await,
        }
    }
}

/// Makes one call over a wire that breaks.
async fn broken<T>(
    proxy: &Proxy,
    wire: Wire,
    call: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    proxy.set(wire);
    let answer = call.await;
    proxy.set(Wire::Pass);
    answer
}

/// Nobody contests the write, so it cannot lose: to take a broken answer, or its own first
/// attempt, for someone else's success is how leaders are lost.
fn uncontested(write: &Result<Write, Error>, what: &str) -> Verdict {
    ensure!(!matches!(write, Ok(Write::Lost)), "{what} that nobody contests has lost");
    Ok(())
}

pub(super) async fn inserts(bench: Bench) -> Verdict {
    let Some((proxy, store)) = through(&bench).await? else { return Ok(()) };
    for (turn, wire) in BREAKS.into_iter().enumerate() {
        let key = bench.key(&turn.to_string());
        recovered(&proxy, store.as_ref(), &key).await?;
        let call = store.insert_if_absent(&key, Generation(0), b"ours", Some(LONG));
        let write = broken(&proxy, wire, call).await;
        uncontested(&write, "an insert")?;
        // Settles it: after this a late one cannot land any more.
        let settle =
            bench.client(1).insert_if_absent(&key, Generation(0), b"settled", None).await?;
        ensure!(write.is_err() || settle == Write::Lost, "an acknowledged insert is gone");
        let value: &[u8] = if settle.is_done() { b"settled" } else { b"ours" };
        bench.shows(&key, 1, Some(value)).await?;
        recovered(&proxy, store.as_ref(), &key).await?;
        bench.shows(&key, 1, Some(value)).await?;
    }
    Ok(())
}

pub(super) async fn swaps(bench: Bench) -> Verdict {
    let Some((proxy, store)) = through(&bench).await? else { return Ok(()) };
    for (turn, wire) in BREAKS.into_iter().enumerate() {
        let key = bench.key(&turn.to_string());
        bench.insert(&key, 0, b"old", Some(LONG)).await?;
        recovered(&proxy, store.as_ref(), &key).await?;
        let call = store.compare_and_swap(&key, b"old", b"new", Some(LONG));
        let write = broken(&proxy, wire, call).await;
        uncontested(&write, "a swap")?;
        let settle = bench.client(1).compare_and_swap(&key, b"old", b"settled", None).await?;
        ensure!(write.is_err() || settle == Write::Lost, "an acknowledged swap is gone");
        let value: &[u8] = if settle.is_done() { b"settled" } else { b"new" };
        bench.shows(&key, 1, Some(value)).await?;
        recovered(&proxy, store.as_ref(), &key).await?;
        bench.shows(&key, 1, Some(value)).await?;
    }
    Ok(())
}

pub(super) async fn deletes(bench: Bench) -> Verdict {
    let Some((proxy, store)) = through(&bench).await? else { return Ok(()) };
    for (turn, wire) in BREAKS.into_iter().enumerate() {
        let key = bench.key(&turn.to_string());
        bench.insert(&key, 0, b"old", None).await?;
        recovered(&proxy, store.as_ref(), &key).await?;
        let write = broken(&proxy, wire, store.compare_and_delete(&key, b"old")).await;
        uncontested(&write, "a delete")?;
        let settle = bench.client(1).compare_and_swap(&key, b"old", b"settled", None).await?;
        ensure!(write.is_err() || settle == Write::Lost, "an acknowledged delete is undone");
        let value: Option<&[u8]> = settle.is_done().then_some(b"settled");
        bench.shows(&key, 1, value).await?;
        recovered(&proxy, store.as_ref(), &key).await?;
        bench.shows(&key, 1, value).await?;
    }
    Ok(())
}

/// After an error the same commit is sent again until there is an answer; then it has landed
/// exactly once.
pub(super) async fn commits(bench: Bench) -> Verdict {
    let Some((proxy, store)) = through(&bench).await? else { return Ok(()) };
    let (shard, key) = (bench.shard(4), bench.key("a"));
    raised(&bench, 0, 1).await?;
    let mut want = Vec::new();
    for (seq, wire) in (0..).zip(BREAKS.into_iter().chain(BREAKS)) {
        let (at, name) = (fence(1, seq), format!("{seq:03}"));
        let ops = [put("last", &name), put(&name, "x")];
        recovered(&proxy, store.as_ref(), &key).await?;
        let first = broken(&proxy, wire, store.commit(shard, at, &ops)).await;
        if let Ok(commit) = &first {
            same!(*commit, Commit::Done, "a commit that nobody contests");
        } else {
            recovered(&proxy, store.as_ref(), &key).await?;
            let again = store.commit(shard, at, &ops).await?;
            let landed = [Commit::Done, Commit::Fenced(at.next())].contains(&again);
            ensure!(landed, "the same commit at {at} sent again: {again:?}");
        }
        want.push(record(&name, "x"));
        let found = all(bench.client(1).as_ref(), shard).await?;
        let expected: Vec<_> = want.iter().cloned().chain([record("last", &name)]).collect();
        same!(found, expected, "the records after commit {seq}");
        same!(bench.client(2).fence(shard).await?, at.next(), "the fence after commit {seq}");
    }
    Ok(())
}

pub(super) async fn raises(bench: Bench) -> Verdict {
    let Some((proxy, store)) = through(&bench).await? else { return Ok(()) };
    let key = bench.key("a");
    for (epoch, wire) in (1..).zip(BREAKS) {
        recovered(&proxy, store.as_ref(), &key).await?;
        let call = store.raise(bench.seat, Epoch(epoch));
        let raise = broken(&proxy, wire, call).await;
        ensure!(!matches!(raise, Ok(Raise::Fenced(_))), "raising to {epoch}: {raise:?}");
        recovered(&proxy, store.as_ref(), &key).await?;
        let again = raised(&bench, 0, epoch).await?;
        ensure!(again.iter().all(|each| *each == fence(epoch, 0)), "raised to {again:?}");
        committed(&bench, 1, bench.shard(0), fence(epoch, 0), &[]).await?;
        let kept = store.raise(bench.seat, Epoch(epoch)).await?;
        let Raise::Done(fences) = kept else {
            return Err(Wrong::new(format!("raising to {epoch} again: {kept:?}")));
        };
        same!(fences[0], fence(epoch, 1), "the fence of a shard with a commit");
    }
    Ok(())
}

/// A former leader is stopped at some point of its commit, and the next one takes over. It must
/// not have to wait for the former, and what it finds is final.
pub(super) async fn held_back_by_a_raise(bench: Bench) -> Verdict {
    let Some((proxy, store)) = through(&bench).await? else { return Ok(()) };
    let (shard, key) = (bench.shard(8), bench.key("a"));
    let mut held = 0;
    for (epoch, wire) in
        (1..).zip([Wire::Hang, Wire::HoldAnswer(1), Wire::HoldAnswer(2), Wire::HoldAnswer(3)])
    {
        raised(&bench, 0, epoch).await?;
        recovered(&proxy, store.as_ref(), &key).await?;
        proxy.set(wire);
        let ops = [put("last", &epoch.to_string())];
        let commit = store.commit(shard, fence(epoch, 0), &ops);
        let successor = async {
            let stopped = async {
                if wire == Wire::Hang {
                    pause().await;
                } else {
                    proxy.held(held + 1).await;
                }
            };
            let is_held = timeout(PATIENCE, stopped).await.is_ok() && wire != Wire::Hang;
            let raised = timeout(PATIENCE * 6, raised(&bench, 1, epoch + 1)).await;
            let raised = raised.map_err(|_| Wrong::new("a stopped leader keeps the next one out"));
            raised??;
            let found = all(bench.client(2).as_ref(), shard).await?;
            proxy.set(Wire::Pass);
            Ok::<_, Wrong>((found, is_held))
        };
        let (commit, successor) = futures_util::future::join(commit, successor).await;
        let (found, is_held) = successor?;
        held += u64::from(is_held);
        let is_in = found.contains(&record("last", &epoch.to_string()));
        match commit {
            Ok(Commit::Done) => ensure!(is_in, "an acknowledged commit is not there"),
            Ok(Commit::Fenced(by)) => {
                ensure!(!is_in && by == fence(epoch + 1, 0), "fenced by {by} with {found:?}");
            }
            Err(_) => {}
        }
        same!(all(bench.client(3).as_ref(), shard).await?, found, "what the successor has found");
        same!(bench.client(3).fence(shard).await?, fence(epoch + 1, 0), "the fence");
    }
    Ok(())
}

/// Slow is not gone.
pub(super) async fn slow_but_there(bench: Bench) -> Verdict {
    let Some((proxy, store)) = through(&bench).await? else { return Ok(()) };
    let (key, shard) = (bench.key("a"), bench.shard(0));
    raised(&bench, 0, 1).await?;
    proxy.set(Wire::Delay(Duration::from_millis(40)));
    let insert = store.insert_if_absent(&key, Generation(0), b"x", Some(LONG)).await?;
    same!(insert, Write::Done, "a slow insert");
    let swap = store.compare_and_swap(&key, b"x", b"y", Some(LONG)).await?;
    same!(swap, Write::Done, "a slow swap");
    let commit = store.commit(shard, fence(1, 0), &[put("a", "1")]).await?;
    same!(commit, Commit::Done, "a slow commit");
    same!(all(store.as_ref(), shard).await?, [record("a", "1")], "the records, read slowly");
    same!(store.compare_and_delete(&key, b"y").await?, Write::Done, "a slow delete");
    bench.shows(&key, 1, None).await
}

/// No call outlasts its time limit, whatever it waits for.
pub(super) async fn silent_server(bench: Bench) -> Verdict {
    let how = How { timeout: PATIENCE, ..how() };
    let Some((proxy, store)) = through_with(&bench, &how).await? else { return Ok(()) };
    let (key, shard) = (bench.key("a"), bench.shard(0));
    recovered(&proxy, store.as_ref(), &key).await?;
    proxy.set(Wire::Hang);
    let began = Instant::now();
    let late = || began.elapsed() > PATIENCE + LATE;
    let open = async {
        let open = bench.fresh.client_through(proxy.address(), &how).await;
        ensure!(open.is_err(), "a silent server was opened");
        ensure!(!late(), "opening took {:?}", began.elapsed());
        Ok(())
    };
    let calls = every_call(store.as_ref(), &key, shard).into_iter().map(async |(name, call)| {
        let failed = call.await;
        ensure!(failed, "`{name}` was answered by a silent server");
        ensure!(!late(), "`{name}` took {:?}, limit {PATIENCE:?}", began.elapsed());
        Ok::<_, Wrong>(())
    });
    let (calls, open) = futures_util::future::join(join_all(calls), open).await;
    calls.into_iter().chain([open]).collect::<Result<Vec<()>, Wrong>>()?;
    // It may watch or not; it may not keep anyone waiting for that.
    let watch = timeout(PATIENCE + LATE, store.watch(&key)).await;
    ensure!(watch.is_ok(), "`watch` outlasts its limit");
    recovered(&proxy, store.as_ref(), &key).await
}

/// A server that is not there is an error at once or in time, and changes nothing.
pub(super) async fn refused(bench: Bench) -> Verdict {
    let how = How { timeout: PATIENCE, ..how() };
    let Some((proxy, store)) = through_with(&bench, &how).await? else { return Ok(()) };
    let (key, shard) = (bench.key("a"), bench.shard(0));
    let mut watch = store.watch(&key).await?;
    proxy.set(Wire::Reset);
    let began = Instant::now();
    let calls = every_call(store.as_ref(), &key, shard).into_iter();
    for (name, failed) in join_all(calls.map(async |(name, call)| (name, call.await))).await {
        ensure!(failed, "`{name}` was answered by nobody");
    }
    let took = began.elapsed();
    ensure!(took < PATIENCE + LATE, "calls to nobody took {took:?}, limit {PATIENCE:?}");
    bench.shows(&key, 0, None).await?;
    same!(bench.client(1).fence(shard).await?, Fence::default(), "the fence");
    recovered(&proxy, store.as_ref(), &key).await?;
    bench.insert(&key, 0, b"x", Some(LONG)).await?;
    // Told or cut: a watch that has lost its server must not stay silent.
    let told = timeout(SOON, watch.changed()).await;
    ensure!(told.is_ok(), "a watch whose connection has broken stays silent");
    Ok(())
}

/// Every call that needs the server; each says whether it has failed.
fn every_call<'a>(
    store: &'a dyn Store,
    key: &'a Key,
    shard: Shard,
) -> Vec<(&'static str, BoxFuture<'a, bool>)> {
    vec![
        (
            "insert",
            Box::pin(async move {
                store.insert_if_absent(key, Generation(0), b"x", Some(LONG)).await.is_err()
            }),
        ),
        (
            "swap",
            Box::pin(
                async move { store.compare_and_swap(key, b"x", b"y", Some(LONG)).await.is_err() },
            ),
        ),
        ("delete", Box::pin(async move { store.compare_and_delete(key, b"x").await.is_err() })),
        ("read", Box::pin(async move { store.read(key).await.is_err() })),
        ("list", Box::pin(async move { store.list().await.is_err() })),
        ("lift", Box::pin(async move { store.lift(key, Generation(0)).await.is_err() })),
        ("raise", Box::pin(async move { store.raise(shard.seat, Epoch(1)).await.is_err() })),
        ("fence", Box::pin(async move { store.fence(shard).await.is_err() })),
        (
            "commit",
            Box::pin(async move { store.commit(shard, Fence::default(), &[]).await.is_err() }),
        ),
        ("scan", Box::pin(async move { store.scan(shard, None).await.is_err() })),
    ]
}
