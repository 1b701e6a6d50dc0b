//! Whole platforms in one thread, from one seed: real hosts with the real board and auctioneer, real
//! cells, over machines, a network, a store and clocks that fail in every way they can.
//!
//! Time is simulated. Each process has a runtime of its own that gets the processor at moments which
//! the seed draws, and a clock of its own. Every call is a message, and so is its answer.

mod checks;
mod client;
mod desk;
mod fact;
mod faults;
mod jobs;
mod ledger;
mod links;
mod lives;
mod log;
mod machine;
mod mail;
mod net;
mod plan;
mod program;
mod seat;
mod store;
#[cfg(test)]
mod tests;
mod timing;
mod truth;
mod view;
mod weather;
mod witness;
mod world;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

pub use checks::Violation;
pub use plan::{Fault, Plan};

use world::World;

/// What came of a simulation in which every rule held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Of all that happened: equal if and only if the same things happened at the same times.
    pub hash: u64,
    pub lines: u64,
    pub virtual_time: Duration,
    pub faults: BTreeMap<Fault, u64>,
    /// How many containers began to run.
    pub processes: u64,
    pub commits: u64,
    /// How many requests of clients were answered as done.
    pub acknowledged: u64,
    pub takeovers: u64,
    /// How many rows of tables were met that cannot be.
    pub inconceivable: u64,
    /// How often a leader has exchanged something with the outside until nothing went wrong any more.
    pub exchanges: u64,
    /// How many attempts of runs were launched, and how many runs have ended.
    pub launches: u64,
    pub runs: u64,
}

/// A rule was broken.
#[derive(Debug)]
pub struct Failure {
    pub plan: Plan,
    pub violation: Violation,
    pub hash: u64,
    /// What happened last.
    pub trace: String,
}

/// Simulates one platform.
pub fn run(plan: Plan) -> Result<Report, Box<Failure>> {
    let mut world = World::new(plan, false);
    world.run().map_err(|violation| failure(&world, violation))
}

/// Simulates one platform, and tells all that happened in it.
pub fn trace(plan: Plan) -> (String, Result<Report, Box<Failure>>) {
    let mut world = World::new(plan, true);
    let outcome = world.run().map_err(|violation| failure(&world, violation));
    (world.log.to_string(), outcome)
}

fn failure(world: &World, violation: Violation) -> Box<Failure> {
    let (plan, hash, trace) = (world.plan.clone(), world.log.hash(), world.log.to_string());
    Box::new(Failure { plan, violation, hash, trace })
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { plan, violation, trace, .. } = self;
        write!(f, "{trace}\n{violation}\n{plan:?}\nreplay: cargo xtask sim --seed {}", plan.seed)
    }
}
