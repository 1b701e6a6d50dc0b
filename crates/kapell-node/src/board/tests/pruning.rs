//! What is no record of the board is set aside, and kept.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kapell_core::board::aside::Aside;
use kapell_core::board::{
    ActualLrp, ActualState, DesiredLrp, LrpKey, Record, RecordKey, Request, Task, shard_of,
};
use kapell_core::seams::{Clock, Timestamp};
use kapell_core::seat::{self, Epoch, Owner};
use kapell_store::file::{FileStore, Holder};
use kapell_store::model::{Commit, Fence, Item, Key, Op, Raise, SHARDS, Shard};
use kapell_store::{How, Store};

use super::theatre::{
    SEAT, Show, Theatre, Told, definition, desire, lrp, neighbours, pass, presence, secs,
    set_domain,
};
use crate::board::load::{Loaded, load};
use crate::conductor::Failure;
use crate::elections::{Standing, Tenure};
use crate::testing::{Call, Fault, TokioClock, eventually};

const NOW: Timestamp = Timestamp(1_700_000_000_000);

/// A key and what stands there.
type Written = (Vec<u8>, Vec<u8>);

fn home(partition: &str) -> Shard {
    Shard { seat: SEAT, number: shard_of(partition, SHARDS) }
}

/// Writes to a shard as a leader before ours did.
async fn write(store: &dyn Store, shard: Shard, items: &[Written]) {
    let Raise::Done(_) = store.raise(SEAT, Epoch(0)).await.unwrap() else { panic!() };
    for (some, seq) in items.chunks(500).zip(store.fence(shard).await.unwrap().seq..) {
        let put = |(key, value): &Written| Op::Put(Key::new(&key[..]), value.clone());
        let ops: Vec<Op> = some.iter().map(put).collect();
        let fence = Fence { epoch: Epoch(0), seq };
        assert_eq!(store.commit(shard, fence, &ops).await.unwrap(), Commit::Done);
    }
}

async fn all(store: &dyn Store, shard: Shard) -> Vec<Item> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let page = store.scan(shard, after.as_ref()).await.unwrap();
        all.extend(page.items);
        after = page.next;
        if after.is_none() {
            return all;
        }
    }
}

/// What lies aside in a shard, by the key that it had.
async fn aside(store: &dyn Store, shard: Shard) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let items = all(store, shard).await.into_iter();
    let aside = items.filter_map(|item| {
        Aside::decode(item.key.as_bytes()).map(|aside| (aside.key.to_vec(), item.value.clone()))
    });
    aside.collect()
}

fn running(guid: &str) -> ActualLrp {
    let key = LrpKey { process_guid: guid.into(), index: 0 };
    let net = Some(kapell_core::board::NetInfo { address: "127.0.0.1".to_owned(), ports: vec![] });
    ActualLrp {
        state: ActualState::Running,
        instance_guid: Some("i".into()),
        cell_id: Some("c".into()),
        net,
        ready: Some(true),
        ..ActualLrp::unclaimed(&key, "d".into(), NOW)
    }
}

fn encoded(record: &Record) -> Written {
    (record.key().encode(), record.encode())
}

/// Four bad ones of as many kinds, and a good one, all in the shard of `names`.
fn mixed(names: &[String]) -> (Vec<Written>, Record) {
    let good = Record::Desired(Box::new(lrp(&names[0], 0)));
    let (misplaced, _) = encoded(&Record::Desired(Box::new(lrp(&names[1], 0))));
    let stray =
        (0..100).map(|n| format!("stray{n}")).find(|it| home(it) != home(&names[0])).unwrap();
    let no_net = ActualLrp { net: None, ..running(&names[2]) };
    let bad = vec![
        (RecordKey::Task(names[3].as_str().into()).encode(), b"t\x01{".to_vec()),
        (misplaced, encoded(&good).1),
        encoded(&Record::Desired(Box::new(lrp(&stray, 0)))),
        encoded(&Record::Actual(Box::new(no_net))),
    ];
    (bad, good)
}

async fn take_over(store: &Arc<dyn Store>, epoch: u64) -> Loaded {
    let epoch = Epoch(epoch);
    let Raise::Done(fences) = store.raise(SEAT, epoch).await.unwrap() else { panic!() };
    let record = seat::Record { epoch, owner: Owner(epoch.0), address: String::new(), since: NOW };
    let clock = Arc::new(TokioClock::new());
    let tenure = Tenure::new(SEAT, record, Arc::clone(store), clock, Standing::for_ever());
    load(&tenure, &fences, NOW).await.unwrap()
}

/// Set aside by the first leader, kept by the next.
async fn prunes(store: Arc<dyn Store>) {
    let names = neighbours(4);
    let shard = home(&names[0]);
    let (bad, good) = mixed(&names);
    let items = [&bad[..], &[encoded(&good)]].concat();
    write(&*store, shard, &items).await;
    let want: BTreeMap<_, _> = bad.into_iter().collect();
    for epoch in 1..=3 {
        let loaded = take_over(&store, epoch).await;
        let sheet = &loaded.sheets[usize::from(shard.number)];
        assert_eq!(sheet.aside(), want.len());
        let guids: Vec<_> =
            sheet.records().desired_lrps().map(|lrp| lrp.process_guid.clone()).collect();
        assert_eq!(guids, [names[0].as_str().into()]);
        // Something stands in its place, so that later leaders know as well.
        assert!(sheet.records().is_forgotten(&names[1].as_str().into()));
        assert_eq!((sheet.records().instances.len(), sheet.records().tasks.len()), (0, 0));
        assert_eq!(aside(&*store, shard).await, want);
        assert_eq!(all(&*store, shard).await.len(), items.len() + 1);
        let fence = store.fence(shard).await.unwrap();
        assert_eq!(loaded.fences[usize::from(shard.number)], fence);
        assert_eq!(fence.seq, u64::from(epoch == 1), "only the first one writes");
    }
}

#[tokio::test]
async fn what_is_no_record_is_set_aside_in_a_store_in_memory() {
    let theatre = Theatre::new();
    prunes(Arc::clone(&theatre.mem) as Arc<dyn Store>).await;
}

#[tokio::test]
async fn what_is_no_record_is_set_aside_in_a_store_of_files() {
    let dir = tempfile::tempdir().unwrap();
    let clock: Arc<dyn Clock> = Arc::new(TokioClock::new());
    let how = How { create: true, timeout: Duration::from_secs(60), clock };
    let holder = Holder { pid: 1, address: None, command: "test".to_owned(), since_ms: 0 };
    prunes(Arc::new(FileStore::open(dir.path(), &holder, &how).unwrap())).await;
}

/// More than one commit takes, and one whose key leaves no room for a prefix.
#[tokio::test(start_paused = true)]
async fn however_much_is_no_record_all_of_it_is_set_aside() {
    let theatre = Theatre::new();
    let shard = Shard { seat: SEAT, number: 5 };
    let mut items: Vec<_> =
        (0..1500).map(|n| (format!("x{n:04}").into_bytes(), b"?".to_vec())).collect();
    let longest = vec![b'y'; kapell_store::model::KEY_BYTES];
    items.push((longest.clone(), b"?".to_vec()));
    write(&*theatre.mem, shard, &items).await;
    let show = theatre.open().await;
    assert_eq!(show.board.set_aside_count(), 1501);
    assert_eq!(aside(&*theatre.mem, shard).await.len(), 1500);
    let left = all(&*theatre.mem, shard).await;
    assert_eq!(left.last().unwrap().key.as_bytes(), longest);
    assert_eq!(left.len(), 1501);
    let name = (0..1000).map(|n| format!("n{n}")).find(|name| home(name) == shard).unwrap();
    show.board.ask(set_domain(&name)).await.unwrap();
    show.close().await;
    let show = theatre.open().await;
    assert_eq!(show.board.set_aside_count(), 1501);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_outcome_of_setting_aside_is_found_out() {
    for fault in [Fault::LoseAnswer, Fault::Fail] {
        let theatre = Theatre::new();
        write(&*theatre.mem, home("l"), &[(b"dl".to_vec(), b"d\x01{".to_vec())]).await;
        theatre.store.next(Call::Commit, 1, fault);
        let show = theatre.open().await;
        assert_eq!(theatre.store.begun(Call::Commit), 2);
        assert_eq!(aside(&*theatre.mem, home("l")).await.len(), 1);
        show.board.ask(desire("l", 0)).await.unwrap();
        let figures = show.board.figures();
        let figure = figures.iter().find(|it| it.name == "kapell_board_records_set_aside");
        assert!((figure.unwrap().value - 1.0).abs() < f64::EPSILON);
    }
}

fn stops(theatre: &Theatre) -> usize {
    theatre.cells.count(|told| matches!(told, Told::Stop(_)))
}

async fn with_a_cell(theatre: &Theatre) -> Show {
    let show = theatre.open().await;
    show.board.present(presence("c")).unwrap();
    show.board.ask(set_domain("d")).await.unwrap();
    pass(secs(1)).await;
    show
}

/// We cannot read what is desired of it, so we do not know that it is one too many.
#[tokio::test(start_paused = true)]
async fn instances_are_not_stopped_for_a_desired_record_that_was_set_aside() {
    let theatre = Theatre::new();
    let garbage = (RecordKey::Desired("l".into()).encode(), b"d\x01{".to_vec());
    let instance = encoded(&Record::Actual(Box::new(running("l"))));
    write(&*theatre.mem, home("l"), &[garbage, instance]).await;
    for _ in 0..2 {
        let show = with_a_cell(&theatre).await;
        assert_eq!(stops(&theatre), 0);
        assert_eq!(show.instance("l", 0).unwrap().state, ActualState::Running);
        show.close().await;
    }
    let show = with_a_cell(&theatre).await;
    let again = Request::Desire(Box::new(DesiredLrp { instances: 0, ..lrp("l", 0) }));
    show.board.ask(again).await.unwrap();
    show.board.ask(set_domain("another")).await.unwrap();
    eventually("it is stopped", secs(5), async || stops(&theatre) > 0).await;
}

/// A task that cannot be read is kept; one of the same name is another one.
#[tokio::test(start_paused = true)]
async fn a_task_that_was_set_aside_does_not_stand_in_the_way_of_its_namesake() {
    let theatre = Theatre::new();
    let lost = Task { cell_id: None, ..Task::pending(definition("t"), "i".into(), NOW) };
    let lost = Task { state: kapell_core::board::TaskState::Running, ..lost };
    write(&*theatre.mem, home("t"), &[encoded(&Record::Task(Box::new(lost)))]).await;
    let show = theatre.open().await;
    assert_eq!(show.task("t"), None);
    show.board.ask(super::theatre::create(definition("t"))).await.unwrap();
    show.close().await;
    let show = theatre.open().await;
    assert!(show.task("t").is_some());
    assert_eq!(show.board.set_aside_count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_record_of_a_newer_version_is_left_alone_and_the_board_is_not_led() {
    let theatre = Theatre::new();
    let newer = (b"dl".to_vec(), b"d\x02{}".to_vec());
    write(&*theatre.mem, home("l"), std::slice::from_ref(&newer)).await;
    let Err(Failure::Lasting(why)) = theatre.try_open().await else { panic!("it is led") };
    assert!(why.contains("record `dl`"), "{why}");
    assert!(why.contains("a newer version of kapell wrote it"), "{why}");
    let stands = all(&*theatre.mem, home("l")).await;
    assert_eq!(stands.len(), 1);
    assert_eq!((stands[0].key.as_bytes(), &stands[0].value), (&newer.0[..], &newer.1));
    assert!(theatre.slot.get().is_none());
}
