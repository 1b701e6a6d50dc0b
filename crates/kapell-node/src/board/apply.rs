//! What follows a commit, in this order: memory, events, answers, effects.

use kapell_core::board::converge::next_due;
use kapell_core::board::{Event, Record, RecordKey, Records, TaskState};
use kapell_store::model::Shard;

use super::group::{Changes, Decided, Group};
use super::handle::Board;

/// A group has landed.
pub(super) fn landed(board: &Board, shard: Shard, group: Group) {
    let (changes, weights, decided) = group.into_parts();
    let soon = affected(board, shard, &changes);
    let mut events = Vec::with_capacity(changes.len());
    let mut room = false;
    {
        let mut sheet = board.sheet_to_change(shard.number);
        for (key, after) in changes {
            let before = sheet.apply(&key, after.clone());
            if before == after {
                continue;
            }
            if matches!(key, RecordKey::Domain(_)) {
                // What nobody desires waits for its domain to be fresh.
                board.alarm().at_once();
            }
            room |= frees(before.as_ref(), after.as_ref());
            let weight = weight(&key, &weights, before.as_ref(), after.as_ref());
            events.extend(Event::of(before, after).map(|event| (event, weight)));
        }
    }
    board.hub().publish(events);
    if room {
        board.starts().room();
    }
    if let Some(due) = next_due(&[&soon], board.clock().wall(), board.settings()) {
        board.alarm().no_later_than(due);
    }
    for decided in decided {
        settle(board, decided);
    }
}

/// Answers, and lets happen what follows. All it rests on is committed.
pub(super) fn settle(board: &Board, decided: Decided) {
    let Decided { asked, answer, effects } = decided;
    // Whoever is answered may ask for what rests on them.
    for effect in effects {
        board.perform(effect);
    }
    asked.answer(answer);
}

/// What was changed, as it now is, with what is desired of it: for the next time to look.
fn affected(board: &Board, shard: Shard, changes: &Changes) -> Records {
    let mut soon = Records::default();
    let sheet = board.sheet(shard.number);
    for (key, to) in changes {
        let Some(record) = to else { continue };
        if let Record::Actual(lrp) = record {
            let desired = RecordKey::Desired(lrp.process_guid.clone());
            if !soon.desired.contains_key(&lrp.process_guid) {
                let new = changes.get(&desired).cloned();
                let wanted = new.unwrap_or_else(|| sheet.records().get(&desired));
                soon.apply(&desired, wanted);
            }
        }
        soon.apply(key, Some(record.clone()));
    }
    soon
}

/// Whether a cell has more room after this.
fn frees(before: Option<&Record>, after: Option<&Record>) -> bool {
    let held = |record: Option<&Record>| match record {
        Some(Record::Actual(lrp)) => lrp.cell_id.clone(),
        Some(Record::Task(task)) if task.state == TaskState::Running => task.cell_id.clone(),
        Some(Record::Task(_) | Record::Desired(_) | Record::Domain(_)) | None => None,
    };
    let before = held(before);
    before.is_some() && before != held(after)
}

/// What an event weighs: about as much as the records that it shows.
fn weight(
    key: &RecordKey,
    weights: &std::collections::BTreeMap<RecordKey, usize>,
    before: Option<&Record>,
    after: Option<&Record>,
) -> usize {
    let written = weights.get(key).copied().unwrap_or_default();
    match (before, after) {
        (Some(before), None) => before.encode().len(),
        (Some(_), Some(_)) => written * 2,
        (None, _) => written,
    }
}
