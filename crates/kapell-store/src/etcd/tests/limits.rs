use std::sync::atomic::Ordering;

use kapell_core::seat::{Epoch, Seat};

use super::{fresh_root, open, server, store, twin};
use crate::error::Error;
use crate::model::{Commit, Fence, Item, Key, Op, Raise, Shard};
use crate::store::Shards;

const SHARD: Shard = Shard { seat: Seat(1), number: 15 };
const RAISED: Fence = Fence { epoch: Epoch(1), seq: 0 };

#[tokio::test]
async fn a_commit_fits_at_the_very_limit() {
    let Some(server) = server("a_commit_fits_at_the_very_limit") else { return };
    let root = fresh_root();
    let root = format!("{root}{}", "r".repeat(255 - root.len()));
    let etcd = open(&format!("etcd://{server}/{root}")).await.unwrap();
    let limits = etcd.limits();
    assert_eq!(etcd.raise(SHARD.seat, RAISED.epoch).await.unwrap(), Raise::Done(vec![RAISED; 16]));

    let name = |number: usize| {
        let mut bytes = vec![b'k'; limits.key_bytes];
        bytes[..8].copy_from_slice(&number.to_be_bytes());
        Key::new(bytes)
    };
    let each = limits.commit_bytes / limits.commit_ops - limits.key_bytes;
    let mut ops: Vec<_> =
        (0..limits.commit_ops).map(|number| Op::Put(name(number), vec![7; each])).collect();
    let missing = limits.commit_bytes - ops.iter().map(Op::bytes).sum::<usize>();
    ops[0] = Op::Put(name(0), vec![7; each + missing]);
    assert_eq!(etcd.commit(SHARD, RAISED, &ops).await.unwrap(), Commit::Done);

    let deletes: Vec<_> = ops.iter().map(|op| Op::Delete(op.key().clone())).collect();
    let next = RAISED.next();
    assert_eq!(etcd.commit(SHARD, next, &deletes).await.unwrap(), Commit::Done);
    assert_eq!(etcd.commit(SHARD, next, &deletes).await.unwrap(), Commit::Fenced(next.next()));
    assert!(etcd.scan(SHARD, None).await.unwrap().items.is_empty());

    ops[0] = Op::Put(name(0), vec![7; each + missing + 1]);
    let above = etcd.commit(SHARD, next, &ops).await.unwrap_err();
    assert!(matches!(above, Error::AboveLimit { what: "size of a commit", .. }), "{above}");
    ops.push(Op::Delete(name(999)));
    let above = etcd.commit(SHARD, next, &ops).await.unwrap_err();
    assert!(matches!(above, Error::AboveLimit { what: "number of changes", .. }), "{above}");
}

#[tokio::test]
async fn a_scan_finds_its_page_size() {
    let Some(etcd) = store("a_scan_finds_its_page_size").await else { return };
    let limits = etcd.limits();
    let _ = etcd.raise(SHARD.seat, RAISED.epoch).await.unwrap();
    let mut at = RAISED;
    let mut want = Vec::new();
    for batch in 0..8_u16 {
        let ops: Vec<_> = (0..5_u16)
            .map(|number| {
                Op::Put(Key::new([batch, number].map(u16::to_be_bytes).concat()), {
                    vec![0xff; limits.value_bytes]
                })
            })
            .collect();
        assert_eq!(etcd.commit(SHARD, at, &ops).await.unwrap(), Commit::Done);
        at = at.next();
        want.extend(ops.iter().map(|op| op.key().clone()));
    }
    // All of them together are longer than an answer may be.
    etcd.page.store(1000, Ordering::Relaxed);
    let (mut found, mut after, mut pages) = (Vec::<Item>::new(), None, 0);
    loop {
        let page = etcd.scan(SHARD, after.as_ref()).await.unwrap();
        found.extend(page.items);
        pages += 1;
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(found.iter().map(|item| item.key.clone()).collect::<Vec<_>>(), want);
    assert!(found.iter().all(|item| item.value.len() == limits.value_bytes));
    assert_eq!(pages, 3);

    let small: Vec<_> = (0..100_u16).map(|n| Op::Put(Key::new(n.to_be_bytes()), vec![1])).collect();
    let other = Shard { number: 3, ..SHARD };
    assert_eq!(etcd.commit(other, RAISED, &small).await.unwrap(), Commit::Done);
    assert_eq!(etcd.scan(other, None).await.unwrap().items.len(), 16);
    let page = etcd.scan(other, None).await.unwrap();
    assert_eq!((page.items.len(), page.next), (100, None));
}

#[tokio::test]
async fn racing_raises_agree() {
    let Some(first) = store("racing_raises_agree").await else { return };
    let second = twin(&first).await;
    for round in 0..20 {
        let (low, high) = (Epoch(2 * round + 1), Epoch(2 * round + 2));
        let (lost, won) =
            tokio::join!(first.raise(SHARD.seat, low), second.raise(SHARD.seat, high));
        let all_at = |epoch| Raise::Done(vec![Fence { epoch, seq: 0 }; 16]);
        assert_eq!(won.unwrap(), all_at(high));
        let lost = lost.unwrap();
        assert!(lost == all_at(low) || lost == Raise::Fenced(high), "{lost:?}");
        assert_eq!(first.raise(SHARD.seat, low).await.unwrap(), Raise::Fenced(high));
        let at = Fence { epoch: high, seq: 0 };
        assert_eq!(second.commit(SHARD, at, &[]).await.unwrap(), Commit::Done);
        assert_eq!(first.fence(SHARD).await.unwrap(), at.next());
        let again = second.raise(SHARD.seat, high).await.unwrap();
        let Raise::Done(fences) = again else { panic!("{again:?}") };
        assert_eq!(fences[usize::from(SHARD.number)], at.next());
        assert_eq!(fences[0], at);
    }
}
