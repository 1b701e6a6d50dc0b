//! From the seat to a board that answers, with a full store.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use kapell_core::seat::Epoch;
use kapell_sim::figure::figure;
use kapell_store::file::Holder;
use kapell_store::{Location, Store};

use crate::Plan;
use kapell_sim::bench::show::{Cells, Show, embedded, how};
use kapell_sim::bench::usage::thousands;

pub(crate) async fn measure(dir: &Path, plan: Plan) -> anyhow::Result<()> {
    let url = format!("file:{}", dir.join("takeover").display());
    one("embedded", &url, plan, 1.0).await?;
    let unique = format!("board{}", std::process::id());
    if let Ok(server) = std::env::var("KAPELL_TEST_ETCD") {
        let url = format!("etcd://{}/{unique}", server.trim_start_matches("http://"));
        one("etcd", &url, plan, 3.0).await?;
    }
    if let Ok(server) = std::env::var("KAPELL_TEST_POSTGRES") {
        one("PostgreSQL", &format!("{server}?schema={unique}"), plan, 3.0).await?;
    }
    Ok(())
}

async fn one(name: &str, url: &str, plan: Plan, goal: f64) -> anyhow::Result<()> {
    plan.board.fill(&open(url).await?).await?;
    let mut samples = Vec::new();
    for epoch in (2..).take(plan.rounds as usize) {
        // The embedded store is read when it is opened; servers have theirs open.
        let begun = Instant::now();
        let store = open(url).await?;
        let show = Show::open(store, Epoch(epoch), Arc::<Cells>::default()).await?;
        samples.push(begun.elapsed().as_secs_f64());
        show.close().await?;
    }
    let count = thousands(plan.board.instances());
    figure(&format!("take-over with {count} instances, {name}"), &samples, "s", Some(goal));
    Ok(())
}

async fn open(url: &str) -> anyhow::Result<Arc<dyn Store>> {
    if let Some(dir) = url.strip_prefix("file:") {
        return embedded(Path::new(dir));
    }
    let location: Location = url.parse()?;
    let holder = Holder { pid: 0, address: None, command: String::new(), since_ms: 0 };
    Ok(location.open(&holder, &how()).await?)
}
