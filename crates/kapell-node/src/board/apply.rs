//! What follows a commit, in this order: memory, events, answers, effects.

use kapell_core::board::converge::next_due;
use kapell_core::board::{ActualState, CellId, Event, Record, RecordKey, Records, TaskState};
use kapell_store::model::Shard;

use super::group::{Changes, Decided, Group, News};
use super::handle::Board;

/// A group has landed.
pub(super) fn landed(board: &Board, shard: Shard, group: Group) {
    let (mut values, news, decided) = group.into_parts();
    let soon = timed(board, shard, values.last());
    let mut events = Vec::with_capacity(news.len());
    let mut room = false;
    {
        // Values that were replaced within the group pass by behind the lock: nobody reads them.
        let mut sheet = board.sheet_to_change(shard.number);
        for news in news {
            let (key, bytes) = match news {
                News::Changed { key, bytes } => (key, bytes),
                News::Crashed(crash) => {
                    let weight = crash.reason.len();
                    events.push((Event::ActualLrpCrashed(crash), weight));
                    continue;
                }
            };
            let after = values.next(&key);
            let before = sheet.apply(&key, after.clone());
            if before == after {
                continue;
            }
            if matches!(key, RecordKey::Domain(_)) {
                // What nobody desires waits for its domain to be fresh.
                board.alarm().at_once();
            }
            room |= frees(before.as_ref(), after.as_ref());
            let weight = weight(bytes, before.as_ref(), after.as_ref());
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

/// What was changed and has a time of its own, with what is desired of it: for the next time to look.
fn timed(board: &Board, shard: Shard, changes: &Changes) -> Records {
    let mut soon = Records::default();
    for (key, to) in changes {
        let Some(record) = to.as_ref().filter(|record| has_time(record)) else { continue };
        if let Record::Actual(lrp) = record
            && !soon.desired.contains_key(&lrp.process_guid)
        {
            let desired = RecordKey::Desired(lrp.process_guid.clone());
            let new = changes.get(&desired).cloned();
            let known = || board.sheet(shard.number).records().get(&desired);
            let wanted = new.unwrap_or_else(known);
            soon.apply(&desired, wanted);
        }
        soon.apply(key, Some(record.clone()));
    }
    soon
}

/// Whether something is due because of it at some time: most records are not copied to find out.
fn has_time(record: &Record) -> bool {
    match record {
        Record::Actual(lrp) => lrp.evacuating || lrp.state == ActualState::Crashed,
        Record::Domain(_) => true,
        Record::Desired(_)
        | Record::Task(_)
        | Record::Job(_)
        | Record::Definition(_)
        | Record::Run(_)
        | Record::Message(_) => false,
    }
}

/// Whether a cell has more room after this.
fn frees(before: Option<&Record>, after: Option<&Record>) -> bool {
    let before = held(before);
    before.is_some() && before != held(after)
}

/// The cell where it takes room.
fn held(record: Option<&Record>) -> Option<&CellId> {
    match record? {
        Record::Actual(lrp) => lrp.cell_id.as_ref(),
        Record::Task(task) if task.state == TaskState::Running => task.cell_id.as_ref(),
        Record::Task(_)
        | Record::Desired(_)
        | Record::Domain(_)
        | Record::Job(_)
        | Record::Definition(_)
        | Record::Run(_)
        | Record::Message(_) => None,
    }
}

/// What an event weighs: about as much as the records that it shows.
fn weight(written: usize, before: Option<&Record>, after: Option<&Record>) -> usize {
    match (before, after) {
        (Some(before), None) => before.encode().len(),
        (Some(_), Some(_)) => written * 2,
        (None, _) => written,
    }
}
