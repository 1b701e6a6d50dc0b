use std::collections::VecDeque;
use std::fmt;
use std::hash::{Hash, Hasher as _};
use std::time::Duration;

use kapell_core::seat::{Epoch, Seat};
use kapell_node::conductor::Step;
use kapell_store::model::{Fence, Shard};

use super::weather::Fault;
use crate::parts::sum::Sum;

/// How much of the end of a log is kept to be shown.
const TAIL: usize = 300;

/// Something that happened in a simulation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum What {
    Booted(u32),
    Sent { letter: u64, call: &'static str },
    NeverArrived(u64),
    Applied { letter: u64, took: bool },
    Refused(u64),
    Unanswered(u64),
    Answered(u64),
    Rang,
    Step(Step),
    Acquired { seat: Seat, epoch: Epoch },
    Acknowledged { shard: Shard, at: Fence },
    Fault(Fault),
    Thawed,
    Crashed,
    Killed,
    Exited,
    StoreUp,
    Calm,
    Closing,
}

#[derive(Debug, Hash)]
struct Line {
    at: Duration,
    host: Option<usize>,
    what: What,
}

/// Everything that happened, as one number, and the end of it in words.
#[derive(Debug)]
pub(super) struct Log {
    tail: VecDeque<Line>,
    sum: Sum,
    lines: u64,
}

impl Log {
    pub(super) const fn new() -> Self {
        Self { tail: VecDeque::new(), sum: Sum::new(), lines: 0 }
    }

    pub(super) fn note(&mut self, at: Duration, host: Option<usize>, what: What) {
        let line = Line { at, host, what };
        line.hash(&mut self.sum);
        self.lines += 1;
        if self.tail.len() == TAIL {
            self.tail.pop_front();
        }
        self.tail.push_back(line);
    }

    pub(super) fn hash(&self) -> u64 {
        self.sum.finish()
    }

    pub(super) const fn lines(&self) -> u64 {
        self.lines
    }
}

impl fmt::Display for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Line { at, host, what } in &self.tail {
            let who = host.map_or("-".to_owned(), |host| format!("h{host}"));
            writeln!(f, "{:>10.4} {who:>2} {what:?}", at.as_secs_f64())?;
        }
        Ok(())
    }
}
