//! From the seat to a board that answers, with a full store.

use std::sync::Arc;
use std::time::Instant;

use kapell_core::seat::Epoch;

use super::population::Population;
use super::show::{Cells, Show, open};
use super::usage::thousands;
use crate::figure::figure;

/// Fills a store and takes it over, `rounds` times. `goal` is in seconds.
pub async fn measure(
    name: &str,
    url: &str,
    board: Population,
    rounds: usize,
    goal: Option<f64>,
) -> anyhow::Result<()> {
    board.fill(&open(url).await?).await?;
    let mut samples = Vec::new();
    for epoch in (2..).take(rounds) {
        // The embedded store is read when it is opened; servers have theirs open.
        let begun = Instant::now();
        let store = open(url).await?;
        let show = Show::open(store, Epoch(epoch), Arc::<Cells>::default()).await?;
        samples.push(begun.elapsed().as_secs_f64());
        show.close().await?;
    }
    let count = thousands(board.instances());
    figure(&format!("take-over with {count} instances, {name}"), &samples, "s", goal);
    Ok(())
}
