//! Rows of the tables that cannot be.

use kapell_core::board::CellId;
use kapell_core::rep::Surprise;

use super::LogOf as Key;
use super::entry::Entry;
use super::judge::{Judgement, Known};

/// The target of the event that tells of a row that cannot be. Its fields are `cell`, `key`,
/// `container`, `state` (the container's), `record` and `why`.
pub const INCONCEIVABLE: &str = "kapell::inconceivable";

/// Tells loudly, and once, that a container met such a row.
pub(super) fn note(cell: &CellId, entry: &mut Entry, known: Known, judgement: &Judgement) {
    let state = entry.life.state();
    match judgement.surprise {
        Surprise::Expected | Surprise::Conceivable => entry.odd = None,
        Surprise::Inconceivable => {
            if entry.odd.replace((state, known)) == Some((state, known)) {
                return;
            }
            let key = match &entry.tag.key {
                Key::Lrp(key) => key.to_string(),
                Key::Task(guid) => guid.to_string(),
            };
            tracing::error!(
                target: INCONCEIVABLE, %cell, key, container = %entry.tag.instance_guid,
                state = state.name(), record = %known, why = judgement.why, "inconceivable",
            );
        }
    }
}
