//! Elections: who holds a seat, until when it may act, and why it no longer does.
//!
//! [`Candidate`] is the whole rule, without a clock, a store or a task: what happened goes in,
//! what to send comes out. It runs the same under an actor, a model checker and a simulation.

mod candidate;
mod lease;
mod seek;
#[cfg(test)]
mod tests;

use std::fmt;
use std::time::Duration;

pub use candidate::{Candidate, Setup};
pub use lease::Lease;

use crate::seat::{Epoch, Owner, Record, Seat};

/// Numbers a call, so that a late answer to an earlier one is not taken for its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// What to ask the store about a seat.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Ask {
    Read,
    /// Insert the record if nothing stands there and the last epoch is the one before.
    Insert(Record),
    /// Put the record in its own place, for another full lease.
    Renew(Record),
    Delete(Record),
}

/// What the store said.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Answer {
    /// To a read: the last epoch given out, and who stands there.
    Seen {
        last: Epoch,
        holder: Option<Holder>,
    },
    Done,
    /// The condition did not hold.
    Lost,
    /// No answer in time, or an error: it may have happened, it may not.
    Unknown,
}

/// Who stands in a seat.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Holder {
    /// None if what stands there is no record of ours.
    pub record: Option<Record>,
    /// How long it will stand, at least, counted from when the read was sent.
    pub remaining: Option<Duration>,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Event {
    /// The time that [`Candidate::due`] named has come.
    Due,
    Answered(Ticket, Answer),
    /// Something may have happened to the seat's entry.
    Changed(Seat),
    /// The services are down, or were never up: give the seat back, or stop looking for one.
    Resign,
}

/// What to do.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Ask the store; if it has not answered `within`, the answer is [`Answer::Unknown`].
    Send {
        ticket: Ticket,
        seat: Seat,
        ask: Ask,
        within: Duration,
    },
    Tell(Notice),
}

/// What the owner of the candidate learns.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Notice {
    Acquired {
        seat: Seat,
        epoch: Epoch,
    },
    /// The seat is held a while longer.
    Renewed,
    /// No seat was free within the time given.
    NotAcquired,
    Lost(Loss),
    /// The seat was given back, or left to expire if the store did not answer.
    Resigned,
}

/// Why a seat is no longer held.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Loss {
    /// Someone else stands there.
    Stolen(Option<Owner>),
    /// Nothing stands there although its time had not come.
    Deleted,
    /// Its time had come before it was renewed.
    Expired,
    /// The store failed or hung until half of the lease was over.
    StoreErrors,
    /// Half of the lease went by without a chance to renew: the process was paused, or a call
    /// was not even given up in time.
    Deadline,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stolen(Some(by)) => write!(f, "stolen: {by} stands in the seat"),
            Self::Stolen(None) => f.write_str("stolen: the seat's record is no longer ours"),
            Self::Deleted => f.write_str("deleted: the seat's record is gone"),
            Self::Expired => f.write_str("expired: the seat's record ran out"),
            Self::StoreErrors => {
                f.write_str("store errors: the store failed for half of the lease")
            }
            Self::Deadline => f.write_str("deadline: half of the lease went by without a renewal"),
        }
    }
}

impl Loss {
    /// The reason in one word, for machines.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Stolen(_) => "stolen",
            Self::Deleted => "deleted",
            Self::Expired => "expired",
            Self::StoreErrors => "store_errors",
            Self::Deadline => "deadline",
        }
    }
}
