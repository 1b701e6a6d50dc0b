use std::time::Duration;

use crate::parts::chance::Chance;

/// Something that goes wrong, or an order that comes, all at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Fault {
    /// The process is gone, without a word.
    Crash,
    /// SIGSTOP, then SIGCONT: its clocks go on.
    Stop,
    /// The machine sleeps: its timers do not count, its boot clock does.
    Suspend,
    /// The runtime is blocked; the killer is not.
    Block,
    /// It gets the processor seldom.
    Slow,
    /// Nothing gets through, either way.
    Partition,
    /// Its watches close.
    Cut,
    /// Its watches hear nothing, and say so to nobody.
    Deafen,
    /// It is told to shut down in order.
    HandOff,
    /// The store answers every call with an error, or not at all.
    StoreDown,
    /// The store loses every connection, and goes on.
    StoreRestart,
}

impl Fault {
    pub(super) const ALL: [Self; 11] = [
        Self::Crash,
        Self::Stop,
        Self::Suspend,
        Self::Block,
        Self::Slow,
        Self::Partition,
        Self::Cut,
        Self::Deafen,
        Self::HandOff,
        Self::StoreDown,
        Self::StoreRestart,
    ];
}

/// How a simulated world treats its hosts and their messages.
#[derive(Debug, Clone)]
pub(super) struct Weather {
    /// Of a message, one way.
    pub(super) delay: (Duration, Duration),
    /// Of all messages, in thousandths: requests lost, answers lost, either very late.
    pub(super) lost: u64,
    pub(super) unanswered: u64,
    pub(super) late: u64,
    /// How late a late request is at most.
    pub(super) latest: Duration,
    /// Between two moments at which a host gets the processor.
    pub(super) turn: (Duration, Duration),
    /// Between two faults.
    pub(super) gap: (Duration, Duration),
    pub(super) faults: Vec<Fault>,
}

impl Weather {
    pub(super) fn draw(chance: &mut Chance, lease: Duration) -> Self {
        let slow = chance.pick(&[1000, 1000, 200, 40, 16]);
        let mut faults: Vec<_> = Fault::ALL.into_iter().filter(|_| chance.permille(700)).collect();
        if faults.is_empty() {
            faults.push(Fault::Crash);
        }
        Self {
            delay: (Duration::from_micros(200), lease / slow),
            lost: chance.pick(&[0, 5, 20, 100]),
            unanswered: chance.pick(&[0, 5, 20, 100]),
            late: chance.pick(&[0, 5, 20, 60]),
            latest: lease * 5 / 2,
            turn: (lease / 400, lease / 40),
            gap: (lease / 8, lease * chance.pick(&[1, 2, 3])),
            faults,
        }
    }

    pub(super) fn calm(lease: Duration) -> Self {
        Self {
            delay: (Duration::from_micros(200), Duration::from_millis(10)),
            lost: 0,
            unanswered: 0,
            late: 0,
            latest: Duration::ZERO,
            turn: (lease / 400, lease / 40),
            gap: (Duration::ZERO, Duration::ZERO),
            faults: Vec::new(),
        }
    }
}
