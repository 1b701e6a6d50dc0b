//! Acquire and renew against one raw conditional write of the same client.

use std::future::Future;
use std::time::{Duration, Instant};

use etcd_client::{Client, Compare, CompareOp, Txn, TxnOp};
use kapell_core::seat::Seat;
use kapell_store::etcd::Etcd;
use kapell_store::model::{Generation, Key};
use kapell_store::postgres::Postgres;
use kapell_store::{Store, Ttl as _, keys};
use tokio_postgres::NoTls;

use crate::figure::{figure, median, share};
use crate::{Plan, how};

const TTL: Duration = Duration::from_secs(20);
const VALUE: &[u8] =
    br#"{"epoch":1,"owner":"00000000000000ab","address":"127.0.0.1:7070","since":1}"#;

async fn timed<T>(work: impl Future<Output = T>) -> (f64, T) {
    let begun = Instant::now();
    let done = work.await;
    (begun.elapsed().as_secs_f64() * 1000.0, done)
}

#[derive(Default)]
struct Samples {
    raw: Vec<f64>,
    acquire: Vec<f64>,
    renew: Vec<f64>,
}

/// One acquisition and one renewal, each timed.
async fn once(store: &dyn Store, key: &Key, generation: &mut Generation, to: &mut Samples) {
    let (took, write) = timed(store.insert_if_absent(key, *generation, VALUE, Some(TTL))).await;
    assert!(write.expect("inserted").is_done());
    *generation = generation.next();
    to.acquire.push(took);
    let (took, write) = timed(store.compare_and_swap(key, VALUE, VALUE, Some(TTL))).await;
    assert!(write.expect("renewed").is_done());
    to.renew.push(took);
    assert!(store.compare_and_delete(key, VALUE).await.expect("deleted").is_done());
}

fn report(store: &str, rounds: &[Samples]) {
    let ratio = |of: fn(&Samples) -> &Vec<f64>| -> Vec<f64> {
        rounds.iter().map(|round| median(of(round)) / median(&round.raw)).collect()
    };
    figure(
        &format!("{store}: acquire / raw conditional write, medians"),
        &ratio(|it| &it.acquire),
        "ratio",
        Some(1.3),
    );
    figure(
        &format!("{store}: renew / raw conditional write, medians"),
        &ratio(|it| &it.renew),
        "ratio",
        Some(1.3),
    );
    for (name, of) in [
        ("raw conditional write", (|it| &it.raw) as fn(&Samples) -> &Vec<f64>),
        ("acquire", |it| &it.acquire),
        ("renew", |it| &it.renew),
    ] {
        let each = |permille| -> Vec<f64> {
            rounds.iter().map(|round| share(of(round), permille)).collect()
        };
        figure(&format!("{store}: {name}, median"), &each(500), "ms", None);
        figure(&format!("{store}: {name}, p99"), &each(990), "ms", None);
    }
}

pub(crate) async fn etcd(url: &str, server: &str, plan: Plan) {
    let store = Etcd::open(url, &how()).await.expect("the store opens");
    let mut raw = Client::connect([server], None).await.expect("etcd answers").kv_client();
    let control = format!("{url}/control");
    raw.put(control.as_str(), "0", None).await.expect("put");
    let key = keys::leader(Seat::FIRST);
    let mut generation = Generation::default();
    let mut last = 0_u64;
    let mut rounds = Vec::new();
    for _ in 0..plan.rounds {
        let mut samples = Samples::default();
        for _ in 0..plan.calls {
            // Before the control as well, so that neither has what it leaves behind to itself.
            store.prepare(TTL).await.expect("prepared");
            let holds = Compare::value(control.as_str(), CompareOp::Equal, last.to_string());
            let put = TxnOp::put(control.as_str(), (last + 1).to_string(), None);
            let (took, answer) = timed(raw.txn(Txn::new().when([holds]).and_then([put]))).await;
            assert!(answer.expect("written").succeeded());
            last += 1;
            samples.raw.push(took);
            once(&store, &key, &mut generation, &mut samples).await;
        }
        rounds.push(samples);
    }
    report("etcd", &rounds);
}

pub(crate) async fn postgres(url: &str, server: &str, plan: Plan) {
    let store = Postgres::open(url, &how()).await.expect("the store opens");
    let (raw, connection) = tokio_postgres::connect(server, NoTls).await.expect("it answers");
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(connection);
    let table = "create table kapell_control (id int primary key, value bigint); \
                 insert into kapell_control values (1, 0)";
    raw.batch_execute("drop table if exists kapell_control").await.expect("dropped");
    raw.batch_execute(table).await.expect("made");
    let write = raw
        .prepare("update kapell_control set value = value + 1 where id = 1 and value = $1")
        .await
        .expect("prepared");
    let key = keys::leader(Seat::FIRST);
    let mut generation = Generation::default();
    let mut last = 0_i64;
    let mut rounds = Vec::new();
    for _ in 0..plan.rounds {
        let mut samples = Samples::default();
        for _ in 0..plan.calls {
            // Before the control as well, so that neither has what it leaves behind to itself.
            store.prepare(TTL).await.expect("prepared");
            let (took, rows) = timed(raw.execute(&write, &[&last])).await;
            assert_eq!(rows.expect("written"), 1);
            last += 1;
            samples.raw.push(took);
            once(&store, &key, &mut generation, &mut samples).await;
        }
        rounds.push(samples);
    }
    raw.batch_execute("drop table kapell_control").await.expect("dropped");
    report("PostgreSQL", &rounds);
}
