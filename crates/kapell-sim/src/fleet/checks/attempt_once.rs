use std::collections::{BTreeMap, BTreeSet};

use kapell_core::board::Record;
use kapell_core::run::RunId;
use kapell_node::scheduler::backend::Attempt;

use super::Check;
use super::book::{Book, intended, task_of_run};
use crate::fleet::fact::Fact;
use crate::fleet::ledger::Change;
use crate::fleet::view::View;

/// An attempt of a run is launched at most once, ever, and only when a commit has said that it is about to be.
///
/// The work itself is counted, on the machines of hosts and on cells. A run is its id since it was made: one that was
/// forgotten and is asked for again is another one.
#[derive(Debug, Default)]
pub(super) struct AttemptOnce {
    book: Book,
    intended: BTreeSet<Attempt>,
    /// Where each was launched.
    launched: BTreeMap<Attempt, String>,
}

impl AttemptOnce {
    fn launches(&mut self, attempt: &Attempt, place: &str) -> Result<(), String> {
        let Attempt { run_id, number } = attempt;
        if !self.intended.contains(attempt) {
            return Err(format!("attempt {number} of {run_id} began on {place} unannounced"));
        }
        match self.launched.insert(attempt.clone(), place.to_owned()) {
            None => Ok(()),
            Some(first) => {
                Err(format!("attempt {number} of {run_id} began on {first} and on {place}"))
            }
        }
    }

    fn committed(&mut self, change: &Change) {
        let Some(Record::Run(run)) = &change.after else { return };
        if change.before.is_none() && !run.state.is_final() {
            self.forget(&run.run_id);
        }
        self.intended.extend(intended(run));
    }

    fn forget(&mut self, run_id: &RunId) {
        self.intended.retain(|attempt| attempt.run_id != *run_id);
        self.launched.retain(|attempt, _| attempt.run_id != *run_id);
    }
}

impl Check for AttemptOnce {
    fn name(&self) -> &'static str {
        "attempt once"
    }

    fn saw(&mut self, fact: &Fact, _view: &View<'_>) -> Result<(), String> {
        self.book.saw(fact);
        if let Fact::Committed { changes, .. } = fact {
            for change in changes {
                self.committed(change);
            }
        }
        if let Fact::WorkBegan { host, attempt, .. } = fact {
            return self.launches(attempt, &format!("host {host}"));
        }
        if let Fact::Began(process) = fact
            && let Some(guid) = task_of_run(process)
        {
            let Some(attempt) = self.book.attempt(guid).cloned() else {
                return Err(format!("{guid} began on {}, and no run wants it", process.cell));
            };
            return self.launches(&attempt, process.cell.as_str());
        }
        Ok(())
    }

    fn at_end(&mut self, _view: &View<'_>) -> Result<(), String> {
        Ok(())
    }
}
