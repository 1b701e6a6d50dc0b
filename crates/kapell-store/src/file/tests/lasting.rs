//! What lasts over a close, and who may open.

use std::os::unix::fs::PermissionsExt as _;

use super::*;
use crate::file::peek;
use crate::model::{Entry, Generation, Held, Write};
use crate::store::{Store as _, Ttl as _};
use crate::watch::Cut;

fn key(name: &str) -> Key {
    Key::new(name.as_bytes())
}

#[tokio::test]
async fn everything_is_there_after_a_reopen() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).unwrap();
    assert_eq!(store.name(), format!("file:{}", dir.path().display()));
    raise(&store).await;
    fill(&store, 0..40).await;
    let none = Generation::default();
    assert!(store.insert_if_absent(&key("a"), none, b"1", None).await.unwrap().is_done());
    assert!(store.compare_and_swap(&key("a"), b"1", b"2", None).await.unwrap().is_done());
    assert_eq!(store.compare_and_swap(&key("a"), b"1", b"3", None).await.unwrap(), Write::Lost);
    assert!(store.insert_if_absent(&key("b"), none, b"1", None).await.unwrap().is_done());
    assert!(store.compare_and_delete(&key("b"), b"1").await.unwrap().is_done());
    store.lift(&key("c"), Generation(9)).await.unwrap();
    let before = (store.list().await.unwrap(), store.scan(shard(3), None).await.unwrap());
    drop(store);
    assert!(segments(dir.path()).len() > 1, "the log must have more than one segment");

    let store = open(dir.path()).unwrap();
    let after = (store.list().await.unwrap(), store.scan(shard(3), None).await.unwrap());
    assert_eq!(after, before);
    assert_eq!(store.fence(shard(3)).await.unwrap(), at(40));
    let held = Some(Held { value: b"2".to_vec(), remaining: None });
    let stands = Entry { generation: Generation(1), held };
    assert_eq!(store.read(&key("a")).await.unwrap(), stands);
    assert_eq!(store.read(&key("b")).await.unwrap().generation, Generation(1));
    assert_eq!(commit(&store, 3, 39).await.unwrap(), Commit::Fenced(at(40)));
    assert!(store.notes().is_empty());
}

#[tokio::test]
async fn a_time_to_live_begins_again_with_a_reopen() {
    let dir = tempfile::tempdir().unwrap();
    let ttl = Duration::from_secs(10);
    let clock = Arc::new(Hand::default());
    let how = || How { clock: clock.clone(), ..how(true) };
    let open = || FileStore::open(dir.path(), &holder(), &how()).unwrap();
    let remaining = async |store: &FileStore| {
        store.read(&key("a")).await.unwrap().held.map(|held| held.remaining)
    };
    let store = open();
    let inserted = store.insert_if_absent(&key("a"), Generation(0), b"1", Some(ttl)).await.unwrap();
    assert!(inserted.is_done());
    clock.forward(ttl / 2);
    assert_eq!(remaining(&store).await, Some(Some(ttl / 2)));
    drop(store);
    let store = open();
    assert_eq!(remaining(&store).await, Some(Some(ttl)));
    clock.forward(ttl);
    assert_eq!(remaining(&store).await, None);
    drop(store);
    // Nobody wrote that it is gone, and nobody may judge by a clock that ran elsewhere.
    let store = open();
    assert_eq!(remaining(&store).await, Some(Some(ttl)));
}

#[tokio::test]
async fn one_process_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    assert!(matches!(peek(&path), Err(Error::Absent { .. })));
    let store = open(&path).unwrap();
    assert!(peek(&path).unwrap().held);
    let in_use = open(&path).unwrap_err();
    assert!(in_use.may_pass());
    let want = format!("`{}` is in use by pid 4711 (kapell test)", path.display());
    assert_eq!(in_use.to_string(), want);
    let said = br#"{"pid":9,"command":"kapell host","address":"[::1]:7","epoch":3}"#;
    store.announce(said).unwrap();
    assert_eq!(peek(&path).unwrap().announced.as_deref(), Some(&said[..]));
    let in_use = open(&path).unwrap_err().to_string();
    assert!(in_use.ends_with("is in use by pid 9 (kapell host, [::1]:7)"), "{in_use}");
    drop(store);
    assert!(!peek(&path).unwrap().held);
    drop(open(&path).unwrap());
}

#[tokio::test]
async fn a_look_from_beside_never_keeps_anyone_out() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()).unwrap());
    std::thread::scope(|scope| {
        let looking = scope.spawn(|| (0..2_000).for_each(|_| drop(peek(dir.path()).unwrap())));
        while !looking.is_finished() {
            drop(open(dir.path()).unwrap());
        }
    });
}

#[tokio::test]
async fn nothing_is_laid_out_unasked() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let refuse = |path: &Path| FileStore::open(path, &holder(), &how(false)).unwrap_err();
    assert!(matches!(refuse(&path), Error::Absent { .. }));
    assert!(!path.exists());
    fs::create_dir(&path).unwrap();
    assert!(matches!(refuse(&path), Error::Absent { .. }));
    fs::write(path.join("thesis.txt"), "").unwrap();
    assert!(matches!(refuse(&path), Error::BadUrl { .. }));
    assert!(matches!(open(&path).unwrap_err(), Error::BadUrl { .. }));
    assert_eq!(fs::read_dir(&path).unwrap().count(), 1, "nothing was added");
}

#[tokio::test]
async fn only_its_owner_may_look_into_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = open(&path).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o700);
    for entry in fs::read_dir(&path).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
    drop(store);
}

#[tokio::test]
async fn a_watch_tells_of_changes_and_ends_with_the_store() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).unwrap();
    let mut watch = store.watch(&key("a")).await.unwrap();
    let inserted = store.insert_if_absent(&key("a"), Generation(0), b"1", None).await.unwrap();
    assert!(inserted.is_done());
    watch.changed().await.unwrap();
    drop(store);
    assert_eq!(watch.changed().await, Err(Cut));
}

#[tokio::test]
async fn a_commit_of_the_largest_size_finds_room() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).unwrap();
    raise(&store).await;
    let put = |n: u32| Op::Put(Key::new(n.to_be_bytes()), vec![7; (256 << 10) - 4]);
    let ops: Vec<_> = (0..32).map(put).collect();
    assert_eq!(store.commit(shard(0), at(0), &ops).await.unwrap(), Commit::Done);
    let one_more: Vec<_> = (0..33).map(put).collect();
    let above = store.commit(shard(0), at(1), &one_more).await.unwrap_err();
    assert!(matches!(above, Error::AboveLimit { .. }));
    drop(store);
    let store = open(dir.path()).unwrap();
    let mut after = None;
    let mut count = 0;
    loop {
        let page = store.scan(shard(0), after.as_ref()).await.unwrap();
        count += page.items.len();
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(count, 32);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_who_want_the_same_one_gets_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(open(dir.path()).unwrap());
    for round in 0..50 {
        let mut tasks = tokio::task::JoinSet::new();
        for me in 0..8_u8 {
            let store = Arc::clone(&store);
            tasks.spawn(async move {
                let key = key(&format!("seat {round}"));
                store.insert_if_absent(&key, Generation(0), &[me], None).await.unwrap()
            });
        }
        let outcomes = tasks.join_all().await;
        assert_eq!(outcomes.iter().filter(|write| write.is_done()).count(), 1);
    }
}
