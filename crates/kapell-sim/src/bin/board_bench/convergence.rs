//! Convergence over a full board: with nothing to do, and after a tenth of the cells is lost.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::ensure;
use kapell_core::board::converge::converge;
use kapell_core::board::{CellId, Held, Records, Request, Settings, shard_of};
use kapell_core::seams::{Clock as _, Timestamp};
use kapell_core::seat::Epoch;
use kapell_node::system::SystemClock;
use kapell_sim::figure::figure;
use kapell_store::Store;
use kapell_store::mem::Mem;
use kapell_store::model::SHARDS;

use crate::Plan;
use kapell_sim::bench::parts::ms;
use kapell_sim::bench::population::{Population, cell_id, domain, memory_mb, presence};
use kapell_sim::bench::show::{Cells, Show};
use kapell_sim::bench::usage::{Stopwatch, thousands};

/// How long anything may take that is waited for.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(1);

pub(crate) async fn measure(plan: Plan) -> anyhow::Result<()> {
    let (count, cells) = (thousands(plan.board.instances()), thousands(plan.board.cells));
    let of = format!("convergence: {count} instances on {cells} cells");
    let (idle, lost) = rule(plan)?;
    let (mut passes, mut again) = (Vec::new(), Vec::new());
    for _ in 0..plan.rounds {
        let (pass, placed) = board(plan).await?;
        passes.push(pass);
        again.push(placed);
    }
    figure(&format!("{of}, nothing to do, a pass of the board"), &passes, "ms", Some(50.0));
    figure(&format!("{of}, nothing to do, the rule alone, CPU"), &idle, "ms", None);
    figure(&format!("{of}, a tenth of the cells lost, planned"), &lost, "ms", Some(250.0));
    let name = format!("{of}, a tenth of the cells lost, all placed again");
    figure(&name, &again, "s", Some(1.0));
    Ok(())
}

/// What the rule takes, in milliseconds: nothing to do, and a tenth of the cells lost.
fn rule(plan: Plan) -> anyhow::Result<(Vec<f64>, Vec<f64>)> {
    let mut shards: Vec<Records> = (0..SHARDS).map(|_| Records::default()).collect();
    for record in plan.board.records() {
        let key = record.key();
        let shard = usize::from(shard_of(key.partition(), SHARDS));
        shards[shard].apply(&key, Some(record));
    }
    let shards: Vec<&Records> = shards.iter().collect();
    let settings = Settings::default();
    let all: BTreeSet<CellId> = (0..plan.board.cells).map(cell_id).collect();
    let left: BTreeSet<CellId> = (lost(plan.board)..plan.board.cells).map(cell_id).collect();
    let now: Timestamp = SystemClock.wall();
    let pass = |present: &BTreeSet<CellId>| -> (f64, Vec<Request>) {
        let watch = Stopwatch::start();
        let planned = converge(&shards, present, now, &settings);
        (ms(watch.used().cpu), planned)
    };
    let (mut idle, mut rescued) = (Vec::new(), Vec::new());
    for _ in 0..plan.rounds {
        let (took, planned) = pass(&all);
        ensure!(planned.is_empty(), "{} requests with nothing to do", planned.len());
        idle.push(took);
        let (took, planned) = pass(&left);
        ensure!(planned.len() == on_lost(plan.board), "{} planned", planned.len());
        rescued.push(took);
    }
    Ok((idle, rescued))
}

const fn lost(board: Population) -> u32 {
    board.cells / 10
}

/// How many instances are on the cells that are lost.
fn on_lost(board: Population) -> usize {
    (0..board.instances()).filter(|number| board.cell(*number) < lost(board)).count()
}

/// One board in memory: a pass with nothing to do, in milliseconds, and all placed again, in seconds.
async fn board(plan: Plan) -> anyhow::Result<(f64, f64)> {
    let store: Arc<dyn Store> = Arc::new(Mem::new(Arc::new(SystemClock)));
    plan.board.fill(&store).await?;
    let show = Show::open(store, Epoch(2), Arc::<Cells>::default()).await?;
    for cell in 0..plan.board.cells {
        show.board.present(presence(cell)).map_err(|problem| anyhow::anyhow!("{problem}"))?;
    }
    for (number, key) in (0..).zip(plan.board.keys()) {
        let instance_guid = "held".into();
        let memory_mb = memory_mb(number / plan.board.each);
        let held = Held { key, instance_guid, memory_mb, disk_mb: 1024 };
        show.cells.hold(cell_id(plan.board.cell(number)).as_str(), held);
    }
    settle(&show, 1.0).await?;
    let before = show.figure(SECONDS);
    // The news of a domain calls for a pass.
    show.board.ask(Request::SetDomain { domain: domain(), ttl: None }).await?;
    settle(&show, 2.0).await?;
    let passes = show.figure(PASSES) - 1.0;
    let pass = (show.figure(SECONDS) - before) * 1000.0 / passes;
    let wanted = u32::try_from(on_lost(plan.board))?;
    let begun = Instant::now();
    for cell in 0..lost(plan.board) {
        show.board.leave(&cell_id(cell));
    }
    while show.cells.taken() < wanted {
        ensure!(begun.elapsed() < PATIENCE, "{} of {wanted} placed", show.cells.taken());
        tokio::time::sleep(LOOK).await;
    }
    let placed = begun.elapsed().as_secs_f64();
    show.close().await?;
    Ok((pass, placed))
}

const PASSES: &str = "kapell_convergence_passes_total";
const SECONDS: &str = "kapell_convergence_seconds_sum";

/// Waits until there were so many passes.
async fn settle(show: &Show, passes: f64) -> anyhow::Result<()> {
    let begun = Instant::now();
    loop {
        // Looking costs about as much as what is looked for.
        tokio::time::sleep(Duration::from_millis(500)).await;
        if show.figure(PASSES) >= passes {
            return Ok(());
        }
        ensure!(begun.elapsed() < PATIENCE, "it does not converge");
    }
}
