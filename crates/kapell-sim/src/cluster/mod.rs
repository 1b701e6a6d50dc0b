//! Whole clusters in one thread, from one seed: the real elections and the real conductor on
//! several hosts, over a store and a network that fail in every way they can.
//!
//! Time is simulated. Each host has a runtime of its own that gets the processor at moments
//! which the seed draws, and a clock of its own that runs up to [`DRIFT_PPM`] millionths fast
//! or slow. Every call to the store is a message that may be lost, late or unanswered.

mod checks;
mod desk;
mod faults;
mod host;
mod log;
mod post;
mod process;
mod server;
#[cfg(test)]
mod tests;
mod weather;
mod world;
mod writer;

use std::fmt;
use std::time::Duration;

pub use crate::parts::clock::DRIFT_PPM;
pub use checks::Violation;

use crate::parts::chance::Chance;
use world::World;

/// What is wrong with a world on purpose, to see that the rules would notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    None,
    /// The store lets every commit in.
    Fenceless,
    /// The store lets in what a former leader had sent before it was deposed.
    Epochless,
    /// The store lets entries go when 70 % of their time is over.
    HastyStore,
    /// The first host's clock runs at half speed.
    SlowClock,
    /// Whoever has won a seat is told for ever that it may act.
    Endless,
}

/// What to simulate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    pub seed: u64,
    pub hosts: usize,
    pub seats: u32,
    pub lease: Duration,
    /// From then on nothing goes wrong any more.
    pub faulty_for: Duration,
    pub flaw: Flaw,
}

impl Plan {
    /// Draws a cluster.
    pub fn draw(seed: u64, flaw: Flaw) -> Self {
        let mut chance = Chance::new(!seed);
        let lease = Duration::from_secs(chance.pick(&[5, 10, 20]));
        Self {
            seed,
            hosts: chance.pick(&[2, 3, 3, 4, 5]),
            seats: chance.pick(&[1, 1, 1, 2]),
            lease,
            faulty_for: lease * chance.pick(&[6, 8, 12]),
            flaw,
        }
    }
}

/// What came of a simulation in which every rule held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Of all that happened: equal if and only if the same things happened at the same times.
    pub hash: u64,
    pub lines: u64,
    pub virtual_time: Duration,
    pub faults: u64,
    /// How many processes were killed by their own killer.
    pub kills: u64,
    /// How many seats were lost, as far as their holders noticed.
    pub losses: u64,
    pub acquisitions: u64,
    /// How many commits were acknowledged.
    pub commits: u64,
}

/// A rule was broken.
#[derive(Debug)]
pub struct Failure {
    pub plan: Plan,
    pub violation: Violation,
    pub hash: u64,
    /// What happened last.
    pub log: String,
}

/// Simulates one cluster, from its first boot to its last shutdown.
pub fn run(plan: Plan) -> Result<Report, Box<Failure>> {
    let mut world = World::new(plan);
    world.run().map_err(|violation| {
        let (hash, log) = (world.log.hash(), world.log.to_string());
        Box::new(Failure { plan, violation, hash, log })
    })
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { plan, violation, log, .. } = self;
        write!(f, "{log}\n{violation}\n{plan:?}\nreplay: KAPELL_SIM_SEED={}", plan.seed)?;
        f.write_str(" cargo test -p kapell-sim cluster::tests::every_rule_holds_under_faults")
    }
}
