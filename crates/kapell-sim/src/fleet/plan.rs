use std::time::Duration;

use kapell_core::planted::Planted;

/// Something that goes wrong, or that somebody wants, at a moment that the seed draws.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// A machine dies with all it runs, and comes back later with nothing.
    CellCrash,
    /// Its agent is killed; containers run on; a new agent finds them.
    AgentCrash,
    /// SIGSTOP and SIGCONT of an agent or a host.
    Pause,
    /// A host's process is gone; another one takes over, or it itself, started anew.
    HostCrash,
    /// Nothing gets through between two parties, either way.
    Partition,
    /// Nothing gets through one way.
    OneWay,
    /// The store answers with errors.
    StoreErrors,
    /// The store makes commits and does not answer.
    UnknownOutcomes,
    SlowStore,
    /// A record in the store is overwritten with garbage while nobody leads.
    CorruptRecord,
    /// The wall clock of a host or cell jumps, forwards or backwards.
    ClockJump,
}

/// What to simulate: everything follows from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub seed: u64,
    pub hosts: usize,
    pub cells: usize,
    /// Which faults may happen; none for a world in which nothing goes wrong.
    pub faults: Vec<Fault>,
    /// Messages that are lost, duplicated and late, in thousandths.
    pub lost: u64,
    pub duplicated: u64,
    pub late: u64,
    /// What clients do: applications that crash, scaling, evacuations, domains that go stale, tasks.
    pub crashing_apps: bool,
    pub scaling: bool,
    pub evacuations: bool,
    pub stale_domains: bool,
    /// For how long things go wrong and clients want something.
    pub busy_for: Duration,
    pub planted: Planted,
    /// Crash whoever leads at its n-th exchange with the outside, for "at every await".
    pub crash_at: Option<u64>,
}
