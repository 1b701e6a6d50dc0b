//! What may follow what.

use super::{Page, page, table};
use crate::board::{ActualState, TaskState};
use crate::rep::container::State;
use crate::run::RunState;

pub(super) fn containers() -> Page {
    let mut text = "A container can be deleted in any state.\n\n".to_owned();
    text.push_str(&table(
        ["state", "next", "something of it may run", "on its way to running"],
        State::ALL.map(|state| {
            let next: Vec<&str> = state.next().iter().map(|state| state.name()).collect();
            let next = if next.is_empty() { "-".to_owned() } else { next.join(", ") };
            [state.name().to_owned(), next, yes(state.is_live()), yes(state.is_starting())]
        }),
    ));
    page("container", "States of a container", &text)
}

fn yes(it: bool) -> String {
    if it { "yes" } else { "no" }.to_owned()
}

pub(super) fn instances() -> Page {
    let mut text = "An instance is made UNCLAIMED, or as its cell reports it where the board has lost the record. It can \
                    be removed in any state. An evacuating twin is RUNNING for as long as it is there. A placement \
                    error is cleared by every step.\n\n"
        .to_owned();
    text.push_str(&table(
        ["state", "meaning"],
        ActualState::ALL.map(|state| [state.name().to_owned(), state.meaning().to_owned()]),
    ));
    let steps = ActualState::ALL.into_iter().flat_map(|from| {
        from.next().iter().map(move |to| {
            let cause = from.cause(*to).unwrap_or_default();
            [from.name().to_owned(), to.name().to_owned(), cause.to_owned()]
        })
    });
    text.push_str(&table(["from", "to", "because"], steps));
    page("actual-lrp", "States of an instance", &text)
}

pub(super) fn tasks() -> Page {
    let mut text = "A task is made PENDING. It is removed when it is RESOLVING, or by convergence when it first \
                    completed `completed_task` ago. It is cancelled only while it is PENDING or RUNNING and deleted \
                    only while it is COMPLETED: anything else is refused with 409.\n\n"
        .to_owned();
    text.push_str(&table(
        ["state", "meaning"],
        TaskState::ALL.map(|state| [state.name().to_owned(), state.meaning().to_owned()]),
    ));
    let steps = TaskState::ALL.into_iter().flat_map(|from| {
        from.next().iter().map(move |to| {
            let cause = from.cause(*to).unwrap_or_default();
            [from.name().to_owned(), to.name().to_owned(), cause.to_owned()]
        })
    });
    text.push_str(&table(["from", "to", "because"], steps));
    page("task", "States of a task", &text)
}

pub(super) fn runs() -> Page {
    let mut text = "A run is made PreRun. Only the scheduler makes it Orphaned, when it has given no sign of life for \
                    too long. What has ended stays as it is. After a change of leader a run goes on from the state \
                    that is stored, and from what the backend knows of its work.\n\n"
        .to_owned();
    text.push_str(&table(
        ["state", "meaning", "stored", "next"],
        RunState::ALL.map(|state| {
            let next: Vec<&str> = state.next().iter().map(|state| state.name()).collect();
            let next = if next.is_empty() { "-".to_owned() } else { next.join(", ") };
            [state.name().to_owned(), state.meaning().to_owned(), yes(state.is_stored()), next]
        }),
    ));
    page("run", "States of a run", &text)
}
