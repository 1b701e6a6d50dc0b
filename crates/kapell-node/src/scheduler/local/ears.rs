//! Hears what became of programs of the runner.

use std::sync::Arc;

use kapell_backend::process::runner::{Listener, News, What};
use kapell_core::run::WorkEnd;
use kapell_core::seams::Timestamp;

use super::mark::Mark;
use crate::cell::outcome;
use crate::scheduler::teller::{End, Teller};

#[derive(Debug)]
pub(super) struct Ears(pub(super) Arc<Teller>);

impl Listener for Ears {
    fn hear(&self, news: News) {
        let (tag, what) = match news {
            News::Of { tag, what } => (tag, what),
            News::Lost { why } => {
                return tracing::warn!(
                    why,
                    "the runner of commands is gone: another one is started, and what ran is ended"
                );
            }
            News::Without { why } => {
                return tracing::error!(
                    why,
                    "no runner of commands can be started: it is tried again"
                );
            }
        };
        let Some(mark) = Mark::read(&tag) else {
            return tracing::warn!(
                "the runner has a program that is not the work of a run: it is left alone"
            );
        };
        let attempt = mark.attempt();
        match what {
            What::Found { at_ms } => {
                self.0.add(&attempt);
                self.0.started(&attempt, Timestamp(at_ms));
            }
            What::Began { at_ms } => self.0.started(&attempt, Timestamp(at_ms)),
            What::Ended { at_ms, exit } => {
                let outcome = outcome::of_exit(&exit);
                let (exit_code, failure) = (outcome.exit_code, outcome.failure);
                let end = WorkEnd { began: None, at: Timestamp(at_ms), exit_code, failure };
                self.0.ended(&attempt, End::Ended(end));
            }
        }
    }
}
