//! Measures what leadership costs, beside a control in the same run. Run by `cargo xtask bench leadership`.
//!
//! Prints one JSON object a figure: `{"name", "samples", "unit", "at_most"}`.

mod embedded;
mod latency;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kapell_node::system::SystemClock;
use kapell_sim::bench::{handoff, hosts};
use kapell_sim::figure;
use kapell_store::How;

/// How much to measure.
#[derive(Debug, Clone, Copy)]
struct Plan {
    rounds: usize,
    calls: usize,
    hand_offs: usize,
    failovers: usize,
    records: usize,
    commits: usize,
}

const FULL: Plan = Plan {
    rounds: 7,
    calls: 100,
    hand_offs: 30,
    failovers: 5,
    records: 1_000_000,
    commits: 40_000,
};
const SMOKE: Plan =
    Plan { rounds: 1, calls: 3, hand_offs: 1, failovers: 1, records: 1_000, commits: 200 };

fn how() -> How {
    How { create: true, timeout: Duration::from_secs(5), clock: Arc::new(SystemClock) }
}

fn main() {
    let mut words = std::env::args().skip(1);
    let kapell = PathBuf::from(words.next().expect("the path of kapell"));
    let plan = if words.next().as_deref() == Some("--smoke") { SMOKE } else { FULL };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let etcd = std::env::var("KAPELL_TEST_ETCD").ok();
        let postgres = std::env::var("KAPELL_TEST_POSTGRES").ok();
        let unique = format!("bench{}", std::process::id());
        if let Some(server) = &etcd {
            let url = format!("etcd://{}/{unique}", server.trim_start_matches("http://"));
            latency::etcd(&url, server, plan).await;
            handoff::measure("etcd", &url, plan.hand_offs, Some(50.0)).await;
            hosts::measure("etcd", &url, &kapell, plan.failovers).await;
        }
        if let Some(server) = &postgres {
            let url = format!("{server}?schema={unique}");
            latency::postgres(&url, server, plan).await;
            handoff::measure("PostgreSQL", &url, plan.hand_offs, Some(50.0)).await;
            hosts::measure("PostgreSQL", &url, &kapell, plan.failovers).await;
        }
        let dir = tempfile::tempdir().expect("a directory");
        let url = format!("file:{}", dir.path().join("store").display());
        hosts::measure("embedded", &url, &kapell, plan.failovers).await;
        embedded::measure(dir.path(), plan).await;
    });
}
