use std::sync::Arc;

use async_trait::async_trait;
use tokio::task::JoinSet;

use super::faulty::Faults;
use super::wired::{Wired, Wiring};
use super::{Fault, NOTICED, Row};
use crate::error::Error;
use crate::mem::Mem;
use crate::open::How;
use crate::store::Store;
use crate::testing::bench::Bench;
use crate::testing::clock::skewed;
use crate::testing::place::{Fresh, Place};
use crate::testing::scan::scanned;
use crate::testing::suite::{self, CUTS, Case, FENCES, HISTORIES, RACES, TTL, right, run};
use crate::testing::verdict::Failures;
use crate::testing::{conforms, how};

/// The reference: one store in memory, whose clients are all itself.
#[derive(Debug)]
pub(super) struct Memory;

#[derive(Debug)]
struct Fresher(Arc<Mem>);

#[async_trait]
impl Place for Memory {
    async fn fresh(&self, how: &How) -> Result<Arc<dyn Fresh>, Error> {
        Ok(Arc::new(Fresher(Arc::new(Mem::new(how.clock.clone())))))
    }
}

#[async_trait]
impl Fresh for Fresher {
    async fn client(&self, _: &How) -> Result<Arc<dyn Store>, Error> {
        Ok(self.0.clone())
    }
}

fn must_notice(verdict: &Result<(), Failures>, case: &str) -> Result<(), String> {
    match verdict {
        Ok(()) => Err("nothing failed".to_owned()),
        Err(failures) if failures.0.iter().any(|(name, _)| *name == case) => Ok(()),
        Err(failures) => Err(format!("only {:?}", failures.0)),
    }
}

/// Runs every row's group on a store with its fault, all at once: they mostly wait.
async fn all_noticed(rows: impl Iterator<Item = &'static Row>) {
    let mut running = JoinSet::new();
    for (fault, group, case) in rows {
        running.spawn(async move {
            let verdict = run(&Faults(Some(*fault)), &right(), group).await;
            must_notice(&verdict, case).map_err(|why| format!("{fault:?} by {case}: {why}"))
        });
    }
    let missed: Vec<_> = running.join_all().await.into_iter().filter_map(Result::err).collect();
    assert!(missed.is_empty(), "not noticed:\n{}", missed.join("\n"));
}

fn of(group: &'static [Case]) -> impl Iterator<Item = &'static Row> {
    NOTICED.iter().filter(move |(_, each, _)| each[0].name == group[0].name)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn memory_conforms() {
    conforms(&Memory).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_store_without_a_fault_conforms() {
    conforms(&Faults(None)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_store_behind_a_wire_conforms() {
    conforms(&Wired(None)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn faults_of_entries_are_noticed() {
    all_noticed(of(TTL)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn faults_of_fences_are_noticed() {
    all_noticed(of(FENCES)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn faults_show_in_races() {
    all_noticed(of(RACES)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn faults_show_in_histories() {
    all_noticed(of(HISTORIES)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn clocks_of_clients_are_noticed() {
    let place = Faults(Some(Fault::JudgesByClientClock));
    suite::ttl_storage(&place).await.expect("clocks that agree hide it");
    let verdict = run(&place, &skewed(), TTL).await;
    for case in ["expiry::after_an_insert", "swap::equal", "read::remaining"] {
        must_notice(&verdict, case).unwrap_or_else(|why| panic!("{case}: {why}"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn pages_that_skip_or_repeat_are_noticed() {
    async fn verdict(fault: Option<Fault>) -> crate::testing::Verdict {
        let fresh = Faults(fault).fresh(&how()).await.unwrap();
        let clients = [fresh.client(&how()).await.unwrap(), fresh.client(&how()).await.unwrap()];
        let seat = kapell_core::seat::Seat(1);
        scanned(&Bench { case: "scan", seat, clients: Arc::new(clients), fresh }, 8_000).await
    }
    verdict(None).await.unwrap();
    for fault in [Fault::ScanByOffset, Fault::ScanRepeats, Fault::ScanEndsEarly] {
        assert!(verdict(Some(fault)).await.is_err(), "{fault:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn faults_of_clients_are_noticed_when_connections_break() {
    let rows = [
        (Wiring::SendsAgain, "cuts::inserts"),
        (Wiring::SendsAgain, "cuts::swaps"),
        (Wiring::SendsAgain, "cuts::deletes"),
        (Wiring::TakesACutForALoss, "cuts::inserts"),
        (Wiring::TakesACutForSuccess, "cuts::commits"),
        (Wiring::CommitsAtWhatStands, "cuts::commits"),
        (Wiring::WaitsForEver, "cuts::silent_server"),
        (Wiring::StaysBroken, "cuts::swaps"),
        (Wiring::LocksFirst, "cuts::held_back_by_a_raise"),
        (Wiring::WatchStaysSilent, "cuts::refused"),
    ];
    let mut running = JoinSet::new();
    for (wiring, case) in rows {
        running.spawn(async move {
            let verdict = run(&Wired(Some(wiring)), &right(), CUTS).await;
            must_notice(&verdict, case).map_err(|why| format!("{wiring:?} by {case}: {why}"))
        });
    }
    let missed: Vec<_> = running.join_all().await.into_iter().filter_map(Result::err).collect();
    assert!(missed.is_empty(), "not noticed:\n{}", missed.join("\n"));
}

#[test]
fn every_fault_is_in_the_table_or_has_a_test_of_its_own() {
    let elsewhere = [Fault::JudgesByClientClock, Fault::ScanByOffset];
    let last = Fault::CommitHasNoLimits as usize;
    let mut known: Vec<usize> = NOTICED.iter().map(|(fault, ..)| *fault as usize).collect();
    known.extend(elsewhere.map(|fault| fault as usize));
    let missing: Vec<usize> = (0..=last).filter(|fault| !known.contains(fault)).collect();
    assert!(missing.is_empty(), "by their place in the enum: {missing:?}");
}
