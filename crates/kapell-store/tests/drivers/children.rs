//! The test binary runs itself several times, on one store.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use kapell_core::seat::Seat;
use kapell_store::Store;
use kapell_store::testing::processes::{Tally, contend, judge};

const PROCESSES: usize = 4;
const ROUNDS: u64 = 100;
const SEAT: Seat = Seat(1);

const URL: &str = "KAPELL_TEST_CHILD_URL";
const WHO: &str = "KAPELL_TEST_CHILD";
const REPORT: &str = "KAPELL_TEST_CHILD_REPORT";

/// What this process is to do if it is one of the children.
#[derive(Debug)]
pub(crate) struct Child {
    pub(crate) url: String,
    who: usize,
    report: PathBuf,
}

impl Child {
    pub(crate) fn of_env() -> Option<Self> {
        let who = std::env::var(WHO).ok()?.parse().ok()?;
        Some(Self { url: std::env::var(URL).ok()?, who, report: std::env::var_os(REPORT)?.into() })
    }

    pub(crate) async fn contend(self, store: &dyn Store) {
        let tally = contend(store, "processes", SEAT, self.who, ROUNDS).await;
        let tally = tally.unwrap_or_else(|wrong| panic!("{wrong}"));
        fs::write(&self.report, tally.to_text()).expect("a place for the report");
    }
}

/// Runs a test of this binary in several processes and judges what they report.
pub(crate) async fn several(test: &'static str, url: String, store: &dyn Store) {
    let dir = tempfile::tempdir().expect("a directory for reports");
    let reports: Vec<PathBuf> =
        (0..PROCESSES).map(|who| dir.path().join(who.to_string())).collect();
    let paths = reports.clone();
    let ended = tokio::task::spawn_blocking(move || {
        let program = std::env::current_exe().expect("this binary");
        let child = |(who, report): (usize, &PathBuf)| {
            let mut command = Command::new(&program);
            command.args([test, "--exact", "--nocapture"]);
            command.env(URL, &url).env(WHO, who.to_string()).env(REPORT, report);
            // What a child's harness counts is not counted again here.
            command.stdout(Stdio::null()).spawn().expect("a child")
        };
        let children: Vec<_> = paths.iter().enumerate().map(child).collect();
        // All of them, so that none outlives the test.
        let ends = children.into_iter().map(|mut child| child.wait());
        let ends: Vec<_> = ends.collect();
        ends.into_iter().all(|end| end.is_ok_and(|status| status.success()))
    });
    assert!(ended.await.expect("children"), "a child has failed");
    let tally = |report| Tally::from_text(&fs::read_to_string(report).ok()?);
    let tallies: Vec<Tally> = reports.iter().filter_map(tally).collect();
    assert_eq!(tallies.len(), PROCESSES, "reports");
    let busy = tallies.iter().filter(|tally| !tally.inserts.is_empty()).count();
    assert!(busy > 1, "only one process has won anything: {tallies:?}");
    let verdict = judge(store, "processes", SEAT, &tallies).await;
    verdict.unwrap_or_else(|wrong| panic!("{wrong}"));
}
