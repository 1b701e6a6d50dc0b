//! What a crash leaves between any two steps.

use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::file::compact::{Compaction, Pace, Plan};
use crate::file::log::Log;

/// The compaction of all segments but the last one.
pub(super) fn plan(dir: &Path) -> Plan {
    let found = Listing::of(dir).unwrap().unwrap();
    let dir = Arc::new(Dir::open(dir).unwrap());
    let Recovered { log, on_disk, .. } =
        recover::recover(&dir, &found, Moment::ZERO, SMALL).unwrap();
    let mut log: Log = log;
    log.roll(0).unwrap();
    let base = on_disk.snapshot.map(|(number, _)| number);
    Plan { dir, store: log.store, base, until: log.segment.number, group: log.next }
}

#[tokio::test]
async fn a_crash_in_a_compaction_loses_nothing() {
    let dir = place();
    let copies = place();
    let mut content = String::new();
    for round in 0..3 {
        let store = open(dir.path()).unwrap();
        if round == 0 {
            raise(&store).await;
        }
        fill(&store, round * 30..(round + 1) * 30).await;
        drop(store);
        content = recovered(dir.path()).unwrap().0;
        let mut plan = plan(dir.path());
        let steps = Arc::new(AtomicU64::new(0));
        let (from, to, count) =
            (dir.path().to_owned(), copies.path().join(round.to_string()), Arc::clone(&steps));
        Arc::get_mut(&mut plan.dir).unwrap().on_step = Some(Box::new(move || {
            copy(&from, &to.join(count.fetch_add(1, Ordering::Relaxed).to_string()));
        }));
        assert!(plan.run(&|| false).unwrap().is_some());
        let steps = steps.load(Ordering::Relaxed);
        assert!(steps > 5, "begun, written, renamed and several removed: {steps}");
        for step in 0..steps {
            let crashed = copies.path().join(round.to_string()).join(step.to_string());
            assert_eq!(recovered(&crashed).unwrap(), (content.clone(), Vec::new()), "step {step}");
            let found = Listing::of(&crashed).unwrap().unwrap();
            assert!(found.temporary.is_empty() && found.snapshots.len() <= 1, "{found:?}");
            assert_eq!(recovered(&crashed).unwrap().0, content, "again after step {step}");
        }
        let found = Listing::of(dir.path()).unwrap().unwrap();
        assert_eq!((found.snapshots.len(), found.segments.len()), (1, 1));
    }
    assert_eq!(recovered(dir.path()).unwrap().0, content);
}

#[tokio::test]
async fn a_cancelled_compaction_leaves_nothing() {
    let dir = place();
    let store = open(dir.path()).unwrap();
    raise(&store).await;
    fill(&store, 0..30).await;
    drop(store);
    let before = recovered(dir.path()).unwrap();
    assert_eq!(plan(dir.path()).run(&|| true).unwrap(), None);
    let found = Listing::of(dir.path()).unwrap().unwrap();
    assert!(found.snapshots.is_empty() && found.temporary.is_empty(), "{found:?}");
    assert_eq!(recovered(dir.path()).unwrap(), before);
}

#[tokio::test]
async fn a_crash_between_two_segments_loses_nothing() {
    let dir = place();
    let copies = place();
    let steps = Arc::new(AtomicU64::new(0));
    let (from, to, count) = (dir.path().to_owned(), copies.path().to_owned(), Arc::clone(&steps));
    let look = move |dir: &mut Dir| {
        dir.on_step = Some(Box::new(move || {
            copy(&from, &to.join(count.fetch_add(1, Ordering::Relaxed).to_string()));
        }));
    };
    let store = FileStore::open_with(dir.path(), &holder(), &how(true), SMALL, look).unwrap();
    let mut done = Vec::new();
    raise(&store).await;
    for seq in 0..60 {
        fill(&store, seq..seq + 1).await;
        done.push(steps.load(Ordering::Relaxed));
    }
    drop(store);
    let steps = steps.load(Ordering::Relaxed);
    assert!(steps > 20, "several segments: {steps}");
    for step in 0..steps {
        let crashed = copies.path().join(step.to_string());
        if !Listing::of(&crashed).unwrap().unwrap().is_store() {
            continue;
        }
        let store = open(&crashed).unwrap();
        assert!(store.notes().is_empty());
        // Before this step that many commits had been answered, and the next waited for it.
        let answered = done.iter().filter(|steps| **steps <= step).count() as u64;
        let fence = store.fence(shard(3)).await.unwrap();
        if answered > 0 {
            assert_eq!(fence, at(answered), "step {step}");
            fill(&store, answered..answered + 40).await;
        }
    }
}

#[tokio::test]
async fn a_crash_while_a_store_is_laid_out_can_be_repeated() {
    let dir = place();
    let copies = place();
    let steps = Arc::new(AtomicU64::new(0));
    let (from, to, count) = (dir.path().to_owned(), copies.path().to_owned(), Arc::clone(&steps));
    let look = move |dir: &mut Dir| {
        dir.on_step = Some(Box::new(move || {
            copy(&from, &to.join(count.fetch_add(1, Ordering::Relaxed).to_string()));
        }));
    };
    drop(FileStore::open_with(dir.path(), &holder(), &how(true), SMALL, look).unwrap());
    for step in 0..steps.load(Ordering::Relaxed) {
        let store = open(&copies.path().join(step.to_string())).unwrap();
        raise(&store).await;
        fill(&store, 0..1).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_that_no_longer_counts_is_replaced_while_changes_go_on() {
    let dir = place();
    let sizes = Sizes { segment: 8 << 10, compact_above: 64 << 10 };
    let open = || FileStore::open_with(dir.path(), &holder(), &how(true), sizes, |_| ());
    let store = open().unwrap();
    raise(&store).await;
    let mut seq = 0;
    let newest = || Listing::of(dir.path()).unwrap().unwrap().snapshots.last().copied();
    let mut seen = std::collections::BTreeSet::new();
    while seen.len() < 4 {
        fill(&store, seq..seq + 20).await;
        seq += 20;
        seen.extend(newest());
        assert!(seq < 200_000, "no compaction");
    }
    assert!(store.notes().is_empty(), "{:?}", store.notes());
    let before = store.scan(shard(3), None).await.unwrap();
    drop(store);
    let store = open().unwrap();
    assert_eq!(store.scan(shard(3), None).await.unwrap(), before);
    assert_eq!(store.fence(shard(3)).await.unwrap(), at(seq));
    drop(store);
    let found = Listing::of(dir.path()).unwrap().unwrap();
    assert_eq!(found.snapshots.len(), 1);
    assert!(found.segments[0] >= found.snapshots[0], "what was replaced is gone: {found:?}");
}

#[tokio::test]
async fn a_compaction_lets_others_go_first_until_as_much_has_come_as_it_replaces() {
    let dir = place();
    let store = open(dir.path()).unwrap();
    raise(&store).await;
    fill(&store, 0..30).await;
    drop(store);
    let before = recovered(dir.path()).unwrap();
    for (pace, is_late) in [(Pace::Aside, true), (Pace::Hurried, false)] {
        let compaction = Compaction::start(plan(dir.path()), 100, pace).unwrap();
        assert!(!compaction.is_late(200));
        assert_eq!(compaction.is_late(202), is_late, "{pace:?}");
        assert!(compaction.join().unwrap().is_some(), "{pace:?}");
        assert_eq!(recovered(dir.path()).unwrap(), before);
    }
}
