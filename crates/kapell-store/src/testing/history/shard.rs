use kapell_core::seat::Epoch;

use super::log::Call;
use super::search::{Inexplicable, Model, explain};
use crate::model::{Commit, Fence};

/// What a client asks about one shard. Every commit writes its own number into one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fenced {
    Raise(Epoch),
    Fence,
    Commit { at: Fence, writes: u64 },
    Scan,
}

/// What it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Done {
    /// Where the fence of this shard stands.
    Raised(Fence),
    /// Some shard of the seat, not necessarily this one, stands at this epoch.
    NotRaised(Epoch),
    Fence(Fence),
    Commit(Commit),
    Scan(Option<u64>),
}

type Asked = Call<Fenced, Done>;

/// Explains the history of one shard that was new.
pub fn explain_shard(calls: &[Asked]) -> Result<(), Inexplicable> {
    explain(&Shard(calls), State::default())
}

struct Shard<'a>(&'a [Asked]);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct State {
    fence: Fence,
    value: Option<u64>,
}

impl Model for Shard<'_> {
    type State = State;

    fn step(&self, state: &State, call: usize) -> Vec<State> {
        let Call { ask, answer, .. } = &self.0[call];
        let fits = |told: Done| answer.is_none_or(|answer| answer == told);
        let only = |state: State, fits: bool| if fits { vec![state] } else { Vec::new() };
        match *ask {
            Fenced::Raise(epoch) => raise(*state, epoch, *answer),
            Fenced::Fence => only(*state, fits(Done::Fence(state.fence))),
            Fenced::Scan => only(*state, fits(Done::Scan(state.value))),
            Fenced::Commit { at, writes } if at == state.fence => {
                let after = State { fence: at.next(), value: Some(writes) };
                only(after, fits(Done::Commit(Commit::Done)))
            }
            Fenced::Commit { .. } => only(*state, fits(Done::Commit(Commit::Fenced(state.fence)))),
        }
    }

    fn times(&self, call: usize) -> (u64, Option<u64>) {
        (self.0[call].begin, self.0[call].end)
    }

    fn calls(&self) -> usize {
        self.0.len()
    }

    /// A raise that is told of a higher epoch has found it in some shard, and may have raised others.
    fn may_have_acted(&self, call: usize) -> bool {
        matches!(self.0[call].answer, Some(Done::NotRaised(_)))
    }
}

fn raise(state: State, epoch: Epoch, answer: Option<Done>) -> Vec<State> {
    let raised = if state.fence.epoch < epoch {
        State { fence: Fence { epoch, seq: 0 }, ..state }
    } else {
        state
    };
    let stands_higher = state.fence.epoch > epoch;
    match answer {
        None => vec![state, raised],
        // Another shard may have stood higher before or after this one was raised.
        Some(Done::NotRaised(by)) if by > epoch && state.fence.epoch <= by => vec![state, raised],
        Some(Done::Raised(fence)) if !stands_higher && fence == raised.fence => vec![raised],
        Some(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(epoch: u64, seq: u64) -> Fence {
        Fence { epoch: Epoch(epoch), seq }
    }

    fn call(begin: u64, end: u64, ask: Fenced, answer: Option<Done>) -> Asked {
        let end = answer.is_some().then_some(end);
        Call { ask, answer, begin, end, sent: Duration::ZERO, done: None }
    }

    fn commit(begin: u64, end: u64, at: Fence, writes: u64, answer: Option<Commit>) -> Asked {
        call(begin, end, Fenced::Commit { at, writes }, answer.map(Done::Commit))
    }

    fn raised(begin: u64, epoch: u64) -> Asked {
        call(begin, begin + 1, Fenced::Raise(Epoch(epoch)), Some(Done::Raised(at(epoch, 0))))
    }

    fn scan(begin: u64, value: u64) -> Asked {
        call(begin, begin + 1, Fenced::Scan, Some(Done::Scan(Some(value))))
    }

    #[test]
    fn a_fence_lets_one_in_and_says_where_it_stands() {
        let history = |second| {
            let calls =
                [raised(0, 1), commit(2, 9, at(1, 0), 1, Some(Commit::Done)), second, scan(10, 1)];
            explain_shard(&calls).is_ok()
        };
        assert!(history(commit(3, 8, at(1, 0), 2, Some(Commit::Fenced(at(1, 1))))));
        assert!(!history(commit(3, 8, at(1, 0), 2, Some(Commit::Fenced(at(1, 0))))));
        assert!(!history(commit(3, 8, at(1, 0), 2, Some(Commit::Done))));
    }

    #[test]
    fn a_raise_that_failed_may_have_raised_this_shard() {
        let failed = |by| call(1, 8, Fenced::Raise(Epoch(3)), Some(Done::NotRaised(Epoch(by))));
        let stands =
            |begin, epoch| call(begin, begin + 1, Fenced::Fence, Some(Done::Fence(at(epoch, 0))));
        let history = |by, seen| {
            let calls = [raised(0, 1), failed(by), stands(3, seen), stands(10, seen)];
            explain_shard(&calls).is_ok()
        };
        assert!(history(4, 1), "it has not raised this one");
        assert!(history(4, 3), "it has raised this one, and met a higher epoch elsewhere");
        assert!(!history(4, 4), "nobody has raised this one to that");
        assert!(!history(2, 3), "no higher epoch can have been met");
        let calls = [raised(0, 1), failed(4), stands(3, 3), stands(10, 1)];
        assert!(explain_shard(&calls).is_err(), "a fence never goes back");
        let calls = [raised(0, 1), failed(4), stands(10, 1), stands(12, 3)];
        assert!(explain_shard(&calls).is_err(), "a call has no effect after its end");
    }

    #[test]
    fn nothing_of_a_former_epoch_lands_behind_a_raise() {
        let late = |end, value| {
            let lost = commit(2, end, at(1, 0), 7, (end > 0).then_some(Commit::Done));
            let calls = [raised(0, 1), lost, raised(3, 2), scan(5, value)];
            explain_shard(&calls).is_ok()
        };
        assert!(late(0, 7), "it landed before the raise and nobody told");
        assert!(late(9, 7), "it landed before the raise");
        let calls = [raised(0, 1), raised(3, 2), commit(5, 6, at(1, 0), 7, Some(Commit::Done))];
        assert!(explain_shard(&calls).is_err());
    }

    #[test]
    fn a_commit_without_an_answer_lands_once_or_never() {
        let again = |answer, value| {
            let calls = [
                raised(0, 1),
                commit(2, 0, at(1, 0), 1, None),
                commit(3, 4, at(1, 0), 1, Some(answer)),
                commit(5, 6, at(1, 1), 2, Some(Commit::Done)),
                scan(7, value),
            ];
            explain_shard(&calls).is_ok()
        };
        assert!(again(Commit::Done, 2) && again(Commit::Fenced(at(1, 1)), 2));
        assert!(!again(Commit::Done, 1) && !again(Commit::Fenced(at(2, 0)), 2));
    }
}
