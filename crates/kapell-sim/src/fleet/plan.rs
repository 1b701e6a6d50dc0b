use std::time::Duration;

use kapell_core::planted::Planted;

use crate::parts::chance::Chance;

/// Something that goes wrong, or that somebody wants, at a moment that the seed draws.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// A machine dies with all it runs, and comes back later with nothing; one of them not at all.
    CellCrash,
    /// Its agent is killed; containers run on; a new agent finds them.
    AgentCrash,
    /// SIGSTOP and SIGCONT of an agent or a host.
    Pause,
    /// A host's process is gone; another one takes over, or it itself, started anew. Where there are jobs its machine may
    /// die with it.
    HostCrash,
    /// The store loses who holds the seat, and its holder is the last to hear of it: another host takes
    /// it while the first still leads.
    SeatLost,
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
#[expect(clippy::struct_excessive_bools, reason = "each is a kind of wish of its own")]
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
    /// Whether there are processes and tasks, and whether there are jobs.
    pub apps: bool,
    pub jobs: bool,
    /// Only few things happen to jobs.
    pub modest: bool,
    /// Clocks are set wrong by minutes.
    pub far_clocks: bool,
    /// For how long things go wrong and clients want something.
    pub busy_for: Duration,
    pub planted: Planted,
    /// For "at every await": whoever leads dies at its n/2-th exchange with the outside, just before what it
    /// sends leaves if n is even, right after if it is odd.
    pub crash_at: Option<u64>,
}

impl Fault {
    pub const ALL: [Self; 12] = [
        Self::CellCrash,
        Self::AgentCrash,
        Self::Pause,
        Self::HostCrash,
        Self::SeatLost,
        Self::Partition,
        Self::OneWay,
        Self::StoreErrors,
        Self::UnknownOutcomes,
        Self::SlowStore,
        Self::CorruptRecord,
        Self::ClockJump,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::CellCrash => "cell crash",
            Self::AgentCrash => "agent crash",
            Self::Pause => "pause",
            Self::HostCrash => "host crash",
            Self::SeatLost => "seat lost",
            Self::Partition => "partition",
            Self::OneWay => "one-way partition",
            Self::StoreErrors => "store errors",
            Self::UnknownOutcomes => "unknown outcomes",
            Self::SlowStore => "slow store",
            Self::CorruptRecord => "corrupt record",
            Self::ClockJump => "clock jump",
        }
    }
}

impl Plan {
    /// Draws a world: one without faults, with faults of one kind, or with many kinds.
    pub fn draw(seed: u64) -> Self {
        let mut chance = Chance::new(!seed);
        let mut plan = Self {
            seed,
            hosts: chance.pick(&[1, 2, 2, 3]),
            cells: chance.pick(&[2, 3, 3, 4, 6]),
            faults: Vec::new(),
            lost: 0,
            duplicated: 0,
            late: 0,
            crashing_apps: chance.permille(400),
            scaling: chance.permille(700),
            evacuations: chance.permille(300),
            stale_domains: chance.permille(400),
            apps: true,
            jobs: false,
            modest: false,
            far_clocks: false,
            busy_for: Duration::from_secs(chance.pick(&[40, 60, 60, 90])),
            planted: Planted::default(),
            crash_at: None,
        };
        match chance.below(8) {
            0 => {}
            1..=3 => plan.faults.push(chance.pick(&Fault::ALL)),
            4 => plan.draw_losses(&mut chance),
            _ => {
                plan.faults = Fault::ALL.into_iter().filter(|_| chance.permille(600)).collect();
                plan.draw_losses(&mut chance);
            }
        }
        if plan.evacuations {
            plan.cells = plan.cells.max(3);
        }
        plan.jobs = chance.permille(600);
        plan.apps = !plan.jobs || chance.permille(500);
        plan.far_clocks = !plan.apps && chance.permille(400);
        plan
    }

    const fn draw_losses(&mut self, chance: &mut Chance) {
        self.lost = 5 * chance.below(12);
        self.duplicated = 5 * chance.below(12);
        self.late = 5 * chance.below(12);
    }

    /// Whether nothing ever goes wrong in it.
    pub fn is_without_faults(&self) -> bool {
        let losses = self.lost + self.duplicated + self.late;
        self.faults.is_empty() && losses == 0 && self.crash_at.is_none()
    }
}
