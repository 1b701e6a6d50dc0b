//! Constraints and actions that go well, take their time, err, are violated, or hang.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use kapell_core::constraint::Verdict;
use kapell_core::job::JobDefinition;
use kapell_core::run::{ActionsDone, Checked, Counts, WorkEnd};
use kapell_node::constraint::Pulse;
use kapell_node::scheduler::checker::{Checker, Subject, Wants};
use tokio::time::sleep;

use super::want::Constraints;
use crate::parts::chance::Chance;

/// What an action takes at most.
pub(in crate::fleet) const LONGEST_ACTION: Duration = Duration::from_secs(40);
const LONGEST_CHECK: Duration = Duration::from_secs(8);

/// Does as the tags of a job say.
#[derive(Debug)]
pub(super) struct Moody(Mutex<Chance>);

impl Moody {
    pub(super) const fn new(chance: Chance) -> Self {
        Self(Mutex::new(chance))
    }

    fn with<T>(&self, draw: impl FnOnce(&mut Chance) -> T) -> T {
        draw(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes a while, with signs of life.
    async fn takes(&self, most: Duration, pulse: &Pulse) {
        let wait = self.with(|chance| chance.between(Duration::from_millis(1), most));
        pulse.during(sleep(wait)).await;
    }

    fn verdict(&self) -> Verdict {
        let verdicts = [Verdict::Proceed, Verdict::Fail, Verdict::Retry, Verdict::Skip];
        self.with(|chance| chance.pick(&verdicts))
    }
}

fn done(verdict: Verdict) -> ActionsDone {
    let counts = Counts { checked: 1, ..Counts::default() };
    ActionsDone { verdict, message: format!("{verdict:?}"), counts, notes: Vec::new() }
}

#[async_trait]
impl Checker for Moody {
    fn wants(&self, definition: &JobDefinition) -> Wants {
        let wanted = Constraints::of(definition);
        Wants { before: wanted.before(), after: wanted == Constraints::After }
    }

    async fn check(&self, subject: &Subject, pulse: &Pulse) -> Checked {
        let wanted = Constraints::of(&subject.definition);
        let (verdict, acts) = match wanted {
            Constraints::None | Constraints::After => (Verdict::Proceed, false),
            Constraints::Slow => {
                self.takes(LONGEST_CHECK, pulse).await;
                (Verdict::Proceed, false)
            }
            Constraints::Violated => {
                self.takes(Duration::from_secs(1), pulse).await;
                (self.verdict(), false)
            }
            Constraints::Acts => {
                self.takes(Duration::from_millis(300), pulse).await;
                (Verdict::Proceed, true)
            }
            Constraints::Hangs => {
                if self.with(|chance| chance.permille(300)) {
                    std::future::pending::<()>().await;
                }
                (Verdict::Proceed, false)
            }
        };
        let ActionsDone { verdict, message, counts, notes } = done(verdict);
        Checked { verdict, message, acts, counts, notes }
    }

    async fn act(&self, _: &Subject, pulse: &Pulse) -> ActionsDone {
        let most = if self.with(|chance| chance.permille(200)) {
            LONGEST_ACTION
        } else {
            Duration::from_secs(3)
        };
        self.takes(most, pulse).await;
        done(if self.with(|chance| chance.permille(700)) {
            Verdict::Proceed
        } else {
            self.verdict()
        })
    }

    async fn check_post(&self, _: &Subject, _: &WorkEnd, pulse: &Pulse) -> ActionsDone {
        self.takes(Duration::from_secs(3), pulse).await;
        done(self.verdict())
    }
}
