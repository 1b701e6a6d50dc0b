use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kapell_core::board::Request;
use kapell_core::seams::Moment;
use kapell_core::seat::Epoch;
use kapell_node::conductor::{Step, Trace};
use kapell_node::elections::{Killer, Tenure};
use tokio::sync::oneshot;

use super::fact::Fact;
use super::mail::{Answered, Ask, Failed, Mail, Party};
use crate::parts::link::{Letter, Outbox};
use crate::parts::observed::Onlooker;

/// What a process shares with the simulator: what it sends out, and what can be seen of it.
#[derive(Debug, Default)]
pub(super) struct Desk(Mutex<Papers>);

#[derive(Debug, Default)]
struct Papers {
    outbox: Vec<Mail>,
    seen: Vec<Seen>,
    tenure: Option<Tenure>,
    kill_at: Option<Moment>,
    fired: bool,
    over: bool,
}

/// Something that a process did.
#[derive(Debug)]
pub(super) enum Seen {
    Step(Step, Option<Epoch>),
    Fact(Fact),
    /// A client wants this; the number is its own.
    Wants(u64, Request),
    /// It knows what became of it.
    Knows(u64),
    Note(String),
}

impl Desk {
    fn papers(&self) -> MutexGuard<'_, Papers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks another and waits for its answer, not for ever.
    pub(super) async fn ask(&self, to: Party, ask: Ask, limit: Duration) -> Answered {
        let (reply, answer) = oneshot::channel();
        self.post(Mail::Ask { to, ask, reply });
        match tokio::time::timeout(limit, answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) | Err(_) => Err(Failed::Broken),
        }
    }

    pub(super) fn post(&self, mail: Mail) {
        let mut papers = self.papers();
        if !papers.fired {
            papers.outbox.push(mail);
        }
    }

    /// What is seen of a process after it was killed did not happen.
    pub(super) fn see(&self, seen: Seen) {
        let mut papers = self.papers();
        if !papers.fired {
            papers.seen.push(seen);
        }
    }

    pub(super) fn end(&self) {
        self.papers().over = true;
    }

    pub(super) fn take(&self) -> (Vec<Mail>, Vec<Seen>) {
        let mut papers = self.papers();
        (std::mem::take(&mut papers.outbox), std::mem::take(&mut papers.seen))
    }

    pub(super) fn kill_at(&self) -> Option<Moment> {
        self.papers().kill_at
    }

    pub(super) fn is_fired(&self) -> bool {
        self.papers().fired
    }

    pub(super) fn is_over(&self) -> bool {
        self.papers().over
    }

    /// Whether it leads, as it believes itself.
    pub(super) fn acts(&self) -> bool {
        self.papers().tenure.as_ref().is_some_and(Tenure::may_act)
    }
}

impl Outbox for Desk {
    fn send(&self, letter: Letter) {
        self.post(Mail::Store(letter));
    }
}

impl Killer for Desk {
    fn set(&self, at: Option<Moment>) {
        self.papers().kill_at = at;
    }

    fn fire(&self, _why: &str) {
        self.papers().fired = true;
    }
}

impl Trace for Desk {
    fn step(&self, step: Step) {
        let epoch = self.papers().tenure.as_ref().map(Tenure::epoch);
        self.see(Seen::Step(step, epoch));
    }
}

impl Onlooker for Desk {
    fn acquired(&self, tenure: Tenure) -> Tenure {
        self.papers().tenure = Some(tenure.clone());
        tenure
    }
}
