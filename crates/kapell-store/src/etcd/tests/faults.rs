use std::time::{Duration, Instant};

use futures_util::future::{BoxFuture, join_all};
use kapell_core::seat::{Epoch, Seat};
use tokio::time::timeout;

use super::proxy::{Line, Proxy, SOON, deserted};
use super::{eventually, fresh_root, how, key, server};
use crate::error::Error;
use crate::etcd::Etcd;
use crate::model::{Commit, Fence, Generation, Key, Op, Shard, Write};
use crate::store::{Shards, Store, Ttl};
use crate::watch::Cut;

/// For calls that are meant to run into their limit.
const BRIEF: Duration = Duration::from_secs(1);
/// For calls that are not, however busy the machine is.
const PATIENT: Duration = Duration::from_secs(20);
const TTL: Duration = Duration::from_secs(30);
const FIRST: Generation = Generation(0);

async fn behind(test: &str, limit: Duration) -> Option<(Proxy, Etcd)> {
    let proxy = Proxy::to(&server(test)?).await;
    let url = format!("etcd://{}/{}", proxy.address, fresh_root());
    let etcd = Etcd::open(&url, &how(true, limit)).await.expect("a server");
    Some((proxy, etcd))
}

/// What a proxy held back may first have to be worked off.
async fn is_well_in_the_end(etcd: &Etcd) {
    eventually("a read to succeed", || is_well(etcd)).await;
}

async fn is_well(etcd: &Etcd) -> bool {
    etcd.read(&key("anything")).await.is_ok()
}

#[tokio::test]
async fn a_place_where_nobody_listens_is_unreachable() {
    let address = deserted().await;
    let error = Etcd::open(&format!("etcd://{address}"), &how(true, BRIEF)).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    let refused = error.io().map(std::io::Error::kind);
    assert_eq!(refused, Some(std::io::ErrorKind::ConnectionRefused), "{error:?}");
    assert!(error.to_string().contains(&format!("etcd://{address}/kapell")), "{error}");
}

#[tokio::test]
async fn a_server_that_says_nothing_is_unreachable() {
    let Some(server) = server("a_server_that_says_nothing_is_unreachable") else { return };
    let proxy = Proxy::to(&server).await;
    proxy.set(Line::Silent);
    let began = Instant::now();
    let url = format!("etcd://root:secret@{}", proxy.address);
    let error = Etcd::open(&url, &how(true, BRIEF)).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { tried, .. } if tried >= BRIEF), "{error}");
    assert!(began.elapsed() < BRIEF + SOON);
    assert!(!format!("{error} {error:?}").contains("secret"));
}

#[tokio::test]
async fn every_call_ends_in_time() {
    let Some((proxy, etcd)) = behind("every_call_ends_in_time", BRIEF).await else { return };
    let (key, shard) = (key("k"), Shard { seat: Seat(1), number: 0 });
    etcd.prepare(TTL).await.unwrap();
    let _ = etcd.insert_if_absent(&key, FIRST, b"v", Some(TTL)).await.unwrap();
    etcd.prepare(TTL).await.unwrap();
    proxy.set(Line::Silent);
    let (began, ttl) = (Instant::now(), Some(TTL));
    let calls: [BoxFuture<'_, Error>; 13] = [
        Box::pin(async { etcd.prepare(TTL + TTL).await.unwrap_err() }),
        Box::pin(async { etcd.insert_if_absent(&key, FIRST, b"v", ttl).await.unwrap_err() }),
        Box::pin(async { etcd.compare_and_swap(&key, b"v", b"v", ttl).await.unwrap_err() }),
        Box::pin(async { etcd.compare_and_swap(&key, b"v", b"w", ttl).await.unwrap_err() }),
        Box::pin(async { etcd.compare_and_delete(&key, b"x").await.unwrap_err() }),
        Box::pin(async { etcd.read(&key).await.unwrap_err() }),
        Box::pin(async { etcd.list().await.unwrap_err() }),
        Box::pin(async { etcd.lift(&key, Generation(9)).await.unwrap_err() }),
        Box::pin(async { etcd.watch(&key).await.unwrap_err() }),
        Box::pin(async { etcd.raise(shard.seat, Epoch(1)).await.unwrap_err() }),
        Box::pin(async { etcd.fence(shard).await.unwrap_err() }),
        Box::pin(async { etcd.commit(shard, Fence::default(), &[]).await.unwrap_err() }),
        Box::pin(async { etcd.scan(shard, None).await.unwrap_err() }),
    ];
    let errors = join_all(calls).await;
    assert!(began.elapsed() < BRIEF + SOON, "{:?}", began.elapsed());
    for error in errors {
        assert!(matches!(error, Error::Timeout { limit: BRIEF, .. }), "{error}");
    }
    proxy.set(Line::Open);
    is_well_in_the_end(&etcd).await;
}

#[tokio::test]
async fn calls_work_again_after_the_server_came_back() {
    let Some((proxy, etcd)) = behind("calls_work_again_after_the_server_came_back", PATIENT).await
    else {
        return;
    };
    etcd.prepare(TTL).await.unwrap();
    let mut watch = etcd.watch(&key("k")).await.unwrap();
    for _ in 0..3 {
        proxy.set(Line::Cut);
        let error = etcd.read(&key("k")).await.unwrap_err();
        assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
        assert!(error.may_pass());
        proxy.set(Line::Open);
        assert!(is_well(&etcd).await || is_well(&etcd).await);
    }
    let told = timeout(PATIENT, watch.changed()).await.expect("the watch was on that connection");
    assert_eq!(told, Err(Cut));

    let mut watch = etcd.watch(&key("k")).await.unwrap();
    let write = etcd.insert_if_absent(&key("k"), FIRST, b"v", Some(TTL)).await.unwrap();
    assert_eq!(write, Write::Done);
    timeout(PATIENT, watch.changed()).await.expect("news").unwrap();
    drop(etcd);
    assert_eq!(timeout(PATIENT, watch.changed()).await.expect("an end"), Err(Cut));
}

#[tokio::test]
async fn a_commit_whose_answer_is_lost_has_landed() {
    let Some((proxy, etcd)) = behind("a_commit_whose_answer_is_lost_has_landed", BRIEF).await
    else {
        return;
    };
    let (shard, at) = (Shard { seat: Seat(1), number: 4 }, Fence { epoch: Epoch(1), seq: 0 });
    let _ = etcd.raise(shard.seat, at.epoch).await.unwrap();
    let ops = [Op::Put(key("k"), b"v".to_vec())];
    proxy.set(Line::AnswersLost);
    let error = etcd.commit(shard, at, &ops).await.unwrap_err();
    assert!(matches!(error, Error::Timeout { call: "commit", .. }), "{error}");
    proxy.set(Line::Open);
    is_well_in_the_end(&etcd).await;
    assert_eq!(etcd.commit(shard, at, &ops).await.unwrap(), Commit::Fenced(at.next()));
}

#[tokio::test]
async fn an_insert_whose_answer_is_lost_can_be_taken_up() {
    let Some((proxy, etcd)) = behind("an_insert_whose_answer_is_lost_can_be_taken_up", BRIEF).await
    else {
        return;
    };
    etcd.prepare(TTL).await.unwrap();
    proxy.set(Line::AnswersLost);
    etcd.insert_if_absent(&key("k"), FIRST, b"v", Some(TTL)).await.unwrap_err();
    proxy.set(Line::Open);
    is_well_in_the_end(&etcd).await;
    assert_eq!(etcd.read(&key("k")).await.unwrap().held.unwrap().value, b"v");
    for _ in 0..2 {
        let renewal = etcd.compare_and_swap(&key("k"), b"v", b"v", Some(TTL)).await.unwrap();
        assert_eq!(renewal, Write::Done);
    }
}

#[tokio::test]
async fn another_member_takes_over() {
    let Some(server) = server("another_member_takes_over") else { return };
    let (first, second) = (Proxy::to(&server).await, Proxy::to(&server).await);
    let hosts = format!("{},{},{}", deserted().await, first.address, second.address);
    let url = format!("etcd://{hosts}/{}", fresh_root());
    let etcd = Etcd::open(&url, &how(true, PATIENT)).await.unwrap();
    assert_eq!(etcd.name(), url);
    etcd.read(&key("k")).await.unwrap();

    first.set(Line::Cut);
    etcd.read(&key("k")).await.unwrap_err();
    for _ in 0..20 {
        etcd.read(&key("k")).await.unwrap();
    }
    // Who gives up before the limit must not be sent to the silent one again.
    first.set(Line::Open);
    second.set(Line::Silent);
    let dropped = timeout(PATIENT / 3, etcd.read(&key("k"))).await;
    assert!(dropped.is_err());
    etcd.read(&key("k")).await.unwrap_err();
    etcd.read(&key("k")).await.unwrap();
}

/// Whoever gives up on a read must not take the server down with it.
#[tokio::test]
async fn a_server_survives_reads_that_are_dropped() {
    let Some((_proxy, etcd)) = behind("a_server_survives_reads_that_are_dropped", PATIENT).await
    else {
        return;
    };
    let (key, shard) = (key("k"), Shard { seat: Seat(1), number: 0 });
    let _ = etcd.insert_if_absent(&key, FIRST, b"v", Some(TTL)).await.unwrap();
    for step in 0..400 {
        let patience = Duration::from_micros(250 + 10 * step);
        let calls: [BoxFuture<'_, ()>; 6] = [
            Box::pin(async { drop(etcd.read(&key).await) }),
            Box::pin(async { drop(etcd.list().await) }),
            Box::pin(async { drop(etcd.compare_and_swap(&key, b"v", b"v", Some(TTL)).await) }),
            Box::pin(async { drop(etcd.lift(&key, FIRST).await) }),
            Box::pin(async { drop(etcd.raise(shard.seat, Epoch(step)).await) }),
            Box::pin(async { drop(etcd.scan(shard, None).await) }),
        ];
        let _ = timeout(patience, join_all(calls)).await;
    }
    // After some thousand answers that nobody waited for, HTTP/2 ends the connection.
    is_well_in_the_end(&etcd).await;
}

#[tokio::test]
async fn a_call_may_be_dropped_at_any_time() {
    let Some((_proxy, etcd)) = behind("a_call_may_be_dropped_at_any_time", PATIENT).await else {
        return;
    };
    for step in 0..60 {
        let key = Key::new([step]);
        let patience = Duration::from_micros(100 * u64::from(step));
        let _ = timeout(patience, etcd.prepare(TTL)).await;
        let insert = etcd.insert_if_absent(&key, FIRST, b"v", Some(TTL));
        let _ = timeout(patience, insert).await;
        let renewal = etcd.compare_and_swap(&key, b"v", b"v", Some(TTL));
        let _ = timeout(patience, renewal).await;
        let is_in = etcd.read(&key).await.unwrap().held.is_some();
        let renewal = etcd.compare_and_swap(&key, b"v", b"v", Some(TTL)).await.unwrap();
        // An insert that nobody waited for may still arrive.
        assert!(renewal == Write::of(is_in) || !is_in);
        let _ = etcd.insert_if_absent(&key, FIRST, b"v", Some(TTL)).await.unwrap();
        let renewal = etcd.compare_and_swap(&key, b"v", b"v", Some(TTL)).await.unwrap();
        assert_eq!(renewal, Write::Done);
        let swap = timeout(patience, etcd.compare_and_swap(&key, b"v", b"w", Some(TTL))).await;
        let value = etcd.read(&key).await.unwrap().held.unwrap().value;
        assert!(value == b"w" || swap.is_err());
    }
}
