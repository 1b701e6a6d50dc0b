use kapell_core::seat::Epoch;
use kapell_store::mem::Mem;
use kapell_store::model::Key;

use super::*;
use crate::system::SystemIds;
use crate::testing::{Call, Fault, Faulty, TokioClock};

const SHARD: Shard = Shard { seat: Seat::FIRST, number: 3 };
/// More often than any answer is waited for in one go, less often than it is given up.
const FEW: usize = 5;

fn seams() -> Seams {
    Seams { clock: Arc::new(TokioClock::new()), ids: Arc::new(SystemIds) }
}

fn mem() -> Arc<dyn Store> {
    Arc::new(Mem::new(Arc::new(TokioClock::new())))
}

/// A store that was led once and has a few records.
async fn filled() -> Arc<dyn Store> {
    let store = mem();
    store.lift(&keys::leader(Seat::FIRST), Generation(1)).await.unwrap();
    let Raise::Done(fences) = store.raise(Seat::FIRST, Epoch(1)).await.unwrap() else { panic!() };
    let put = |number: u8| Op::Put(Key::new([b'k', number]), vec![number; 9]);
    let ops: Vec<Op> = (0..10).map(put).collect();
    let at = fences[usize::from(SHARD.number)];
    assert_eq!(store.commit(SHARD, at, &ops).await.unwrap(), Commit::Done);
    store
}

async fn is_as_the_first(store: &dyn Store) {
    let want = read_all(&*filled().await, SHARD).await.unwrap();
    assert_eq!(read_all(store, SHARD).await.unwrap(), want);
    assert!(store.read(&keys::unfinished()).await.unwrap().held.is_none(), "a mark was left");
}

async fn back_up(store: &Faulty) -> (tempfile::NamedTempFile, Result<Moved, Error>) {
    let file = tempfile::NamedTempFile::new().unwrap();
    let moved = backup(store, file.reopen().unwrap()).await;
    (file, moved)
}

#[tokio::test(start_paused = true)]
async fn what_a_backup_asks_is_asked_again_if_it_fails() {
    for call in [Call::Read, Call::List, Call::Fence, Call::Scan] {
        let store = Faulty::new(filled().await);
        store.next(call, FEW, Fault::Fail);
        let (file, moved) = back_up(&store).await;
        let moved = moved.unwrap_or_else(|error| panic!("{call:?}: {error}"));
        assert_eq!(moved, Moved { records: 10, seats: 1 }, "{call:?}");
        assert!(store.begun(call) > FEW, "{call:?}");
        let into = mem();
        restore(file.path(), &into, Leave::default(), &seams()).await.unwrap();
        is_as_the_first(&*into).await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_copy_asks_of_its_target_is_asked_again_if_it_fails() {
    let calls = [Call::Read, Call::List, Call::Lift, Call::Raise, Call::Scan, Call::Commit];
    let failing = calls.map(|call| (call, FEW, Fault::Fail));
    // The first to be inserted is the seat, the next the mark. What was done without an answer is not done twice.
    let lost = [(Call::Insert, 2, Fault::LoseAnswer), (Call::Delete, 1, Fault::LoseAnswer)];
    for (call, times, fault) in failing.into_iter().chain(lost) {
        let (from, store) = (filled().await, mem());
        let faulty = Arc::new(Faulty::new(Arc::clone(&store)));
        faulty.next(call, times, fault);
        let to = Arc::clone(&faulty) as Arc<dyn Store>;
        let moved = copy(&*from, &to, Leave::default(), &seams()).await;
        assert_eq!(moved.unwrap_or_else(|error| panic!("{call:?}: {error}")).records, 10);
        assert!(faulty.begun(call) > times, "{call:?}");
        is_as_the_first(&*store).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_unfinished_one_is_done_anew_though_answers_are_lost() {
    let (from, store) = (filled().await, mem());
    let mark = keys::unfinished();
    let left = store.insert_if_absent(&mark, Generation(0), b"of another", None).await.unwrap();
    assert!(left.is_done());
    let faulty = Arc::new(Faulty::new(Arc::clone(&store)));
    faulty.next(Call::Swap, 1, Fault::LoseAnswer);
    let to = Arc::clone(&faulty) as Arc<dyn Store>;
    copy(&*from, &to, Leave::default(), &seams()).await.unwrap();
    is_as_the_first(&*store).await;
}

#[tokio::test(start_paused = true)]
async fn what_does_not_pass_is_told_at_once_and_what_does_not_end_after_a_while() {
    for (fault, asked) in [(Fault::Fail, TRIES), (Fault::Deny, 1)] {
        let store = Faulty::new(filled().await);
        store.set(&[Call::Scan], fault);
        let (_, moved) = back_up(&store).await;
        assert!(matches!(moved, Err(Error::Store(_))), "{moved:?}");
        assert_eq!(store.begun(Call::Scan), asked, "{fault:?}");
    }
}
