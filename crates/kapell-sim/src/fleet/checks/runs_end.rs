use kapell_core::board::Record;

use kapell_core::run::Run;

use super::Check;
use super::book::Book;
use crate::fleet::fact::Fact;
use crate::fleet::ledger::Change;
use crate::fleet::view::View;

/// Every run comes to an end, and an end stays as it is.
///
/// Once nothing goes wrong, nothing is scheduled and nobody asks for anything, all runs are in a final state within
/// the bound; only one of whose job something cannot be read is out of it. A commit that changes a run leaves a later
/// version of it, and an attempt never comes before another that was made.
#[derive(Debug, Default)]
pub(super) struct RunsEnd {
    book: Book,
}

fn may_follow(change: &Change) -> Result<(), String> {
    let (Some(Record::Run(before)), Some(Record::Run(after))) = (&change.before, &change.after)
    else {
        return Ok(());
    };
    let run_id = &before.run_id;
    let (was, is) = (before.state.name(), after.state.name());
    if before.state.is_final() && before != after {
        return Err(format!("{run_id} had ended as {was}, and is {is}"));
    }
    if after.version <= before.version && before != after {
        let (was, is) = (before.version, after.version);
        return Err(format!("{run_id}: version {is} is put over {was}"));
    }
    if after.attempt < before.attempt {
        return Err(format!("{run_id} went back from attempt {}", before.attempt));
    }
    if before.cancel.is_some() && after.cancel.is_none() {
        return Err(format!("{run_id} was to be cancelled, and is {is} without that"));
    }
    Ok(())
}

impl Check for RunsEnd {
    fn name(&self) -> &'static str {
        "runs end"
    }

    fn saw(&mut self, fact: &Fact, _view: &View<'_>) -> Result<(), String> {
        self.book.saw(fact);
        if let Fact::Committed { changes, .. } = fact {
            return changes.iter().try_for_each(may_follow);
        }
        Ok(())
    }

    fn at_end(&mut self, view: &View<'_>) -> Result<(), String> {
        let lasts =
            |run: &&Run| !run.state.is_final() && !self.book.is_spoiled(&run.run_id.job_id());
        match view.records.runs.values().map(AsRef::as_ref).find(lasts) {
            None => Ok(()),
            Some(run) => Err(format!("a run has not ended: {run:?}")),
        }
    }
}
