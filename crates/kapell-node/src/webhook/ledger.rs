//! What became of messages.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use kapell_core::board::JobId;
use kapell_core::run::RunId;
use kapell_core::seams::Timestamp;
use serde::Serialize;

/// So many messages are listed, the newest; those that wait go last.
pub const LEDGER_KEPT: usize = 1000;

/// A message and how far it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Delivery {
    #[serde(skip)]
    pub(super) number: u64,
    /// As the receiver knows it: `webhook-id`.
    pub webhook_id: String,
    pub job_id: JobId,
    pub run_id: RunId,
    /// `onViolation webhook of time_window` and the like.
    pub what: String,
    /// Scheme, host and port, never more: a path may be a secret.
    pub place: String,
    pub asked_at: Timestamp,
    pub attempts: u32,
    /// When it was sent last.
    pub last_at: Option<Timestamp>,
    /// Of the last answer.
    pub status: Option<u16>,
    pub state: DeliveryState,
    /// Why it was not taken, the last time.
    pub why: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryState {
    /// For its first call or another one.
    Waiting,
    Delivered,
    GivenUp,
    /// Whoever wanted it does not want it any more.
    Withdrawn,
}

#[derive(Debug, Default)]
pub(super) struct Ledger(Mutex<VecDeque<Delivery>>);

impl Ledger {
    pub(super) fn add(&self, delivery: Delivery) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= LEDGER_KEPT {
            // What is still to come of a message is told of for as long as there is room for it.
            let settled = all.iter().position(|it| it.state != DeliveryState::Waiting);
            all.remove(settled.unwrap_or(0));
        }
        all.push_back(delivery);
    }

    /// Changes one that is still listed.
    pub(super) fn change(&self, number: u64, change: impl FnOnce(&mut Delivery)) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = all.iter_mut().rev().find(|it| it.number == number) {
            change(found);
        }
    }

    /// The newest first.
    pub(super) fn list(&self, wanted: impl Fn(&Delivery) -> bool) -> Vec<Delivery> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().rev().filter(|it| wanted(it)).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery(number: u64, state: DeliveryState) -> Delivery {
        let run_id = RunId::parse("report:1").unwrap();
        Delivery {
            number,
            webhook_id: format!("msg_{number}"),
            job_id: run_id.job_id(),
            run_id,
            what: String::new(),
            place: String::new(),
            asked_at: Timestamp(0),
            attempts: 0,
            last_at: None,
            status: None,
            state,
            why: String::new(),
        }
    }

    #[test]
    fn what_waits_is_listed_for_longer_than_what_is_settled() {
        let (ledger, most) = (Ledger::default(), LEDGER_KEPT as u64);
        for number in 0..most {
            let waits = number % 2 == 0;
            let state = if waits { DeliveryState::Waiting } else { DeliveryState::Delivered };
            ledger.add(delivery(number, state));
        }
        let oldest = || ledger.list(|_| true).last().map(|it| it.number);
        for number in most..most + most / 2 {
            ledger.add(delivery(number, DeliveryState::Waiting));
        }
        assert_eq!(oldest(), Some(0), "it waits");
        assert!(ledger.list(|it| it.state != DeliveryState::Waiting).is_empty());
        ledger.add(delivery(2 * most, DeliveryState::Waiting));
        assert_eq!(oldest(), Some(2), "nothing is settled: the oldest goes");
        assert_eq!(ledger.list(|_| true).len(), LEDGER_KEPT);
    }
}
