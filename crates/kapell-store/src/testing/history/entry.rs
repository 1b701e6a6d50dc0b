use std::time::Duration;

use super::log::Call;
use super::search::{Inexplicable, Model, explain};
use crate::model::{Entry, Expiry, Generation, Write};

/// What a client asks about one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ttl {
    Insert { seen: Generation, value: Vec<u8>, ttl: Option<Duration> },
    Swap { old: Vec<u8>, new: Vec<u8>, ttl: Option<Duration> },
    Delete { old: Vec<u8> },
    Read,
    Lift { floor: Generation },
}

/// What it is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    Write(Write),
    Entry(Entry),
    Lifted,
}

type Asked = Call<Ttl, Told>;

/// Explains the history of one key that was new.
pub fn explain_entry(calls: &[Asked], expiry: Expiry) -> Result<(), Inexplicable> {
    explain(&Key { calls, expiry }, State::default())
}

struct Key<'a> {
    calls: &'a [Asked],
    expiry: Expiry,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
struct State {
    generation: u64,
    held: Option<Standing>,
    /// It is at least this late: something has expired that could not before.
    now: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Standing {
    value: Vec<u8>,
    /// Between these two moments it goes by itself, if it does at all.
    goes: Option<(Duration, Duration)>,
}

impl Model for Key<'_> {
    type State = State;

    fn step(&self, state: &State, call: usize) -> Vec<State> {
        let call = &self.calls[call];
        let latest = call.done.unwrap_or(Duration::MAX);
        let mut next = Vec::new();
        if latest < state.now {
            return next;
        }
        let goes = state.held.as_ref().and_then(|held| held.goes);
        if goes.is_none_or(|(_, last)| state.now.max(call.sent) <= last) {
            next.extend(self.apply(state, call));
        }
        if let Some((first, _)) = goes.filter(|(first, _)| latest >= *first) {
            let expired = State { held: None, now: state.now.max(first), ..state.clone() };
            next.extend(self.apply(&expired, call));
        }
        next
    }

    fn times(&self, call: usize) -> (u64, Option<u64>) {
        (self.calls[call].begin, self.calls[call].end)
    }

    fn calls(&self) -> usize {
        self.calls.len()
    }
}

impl Key<'_> {
    fn standing(&self, call: &Asked, value: &[u8], ttl: Option<Duration>) -> Standing {
        let goes = ttl.map(|ttl| {
            let last = call.done.map_or(Duration::MAX, |done| done + ttl + self.expiry.lag);
            (call.sent + ttl, last.saturating_add(super::super::timed::SLACK))
        });
        Standing { value: value.to_vec(), goes }
    }

    fn apply(&self, state: &State, call: &Asked) -> Option<State> {
        let stands = |old: &Vec<u8>| state.held.as_ref().is_some_and(|held| held.value == *old);
        let mut after = state.clone();
        let told = match &call.ask {
            Ttl::Insert { seen, value, ttl } => {
                let done = state.held.is_none() && state.generation == seen.0;
                if done {
                    after.generation += 1;
                    after.held = Some(self.standing(call, value, *ttl));
                }
                Told::Write(Write::of(done))
            }
            Ttl::Swap { old, new, ttl } => {
                if stands(old) {
                    after.held = Some(self.standing(call, new, *ttl));
                }
                Told::Write(Write::of(stands(old)))
            }
            Ttl::Delete { old } => {
                if stands(old) {
                    after.held = None;
                }
                Told::Write(Write::of(stands(old)))
            }
            Ttl::Lift { floor } => {
                after.generation = after.generation.max(floor.0);
                Told::Lifted
            }
            Ttl::Read => return read(state, call),
        };
        call.answer.as_ref().is_none_or(|answer| *answer == told).then_some(after)
    }
}

/// How much time was left is not looked at: that has a case of its own.
fn read(state: &State, call: &Asked) -> Option<State> {
    let fits = match &call.answer {
        None => true,
        Some(Told::Entry(entry)) => {
            let read = entry.held.as_ref().map(|held| &held.value);
            let stands = state.held.as_ref().map(|held| &held.value);
            entry.generation.0 == state.generation && read == stands
        }
        Some(Told::Write(_) | Told::Lifted) => false,
    };
    fits.then(|| state.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Held;

    const LAG: Expiry = Expiry { shortest: Duration::ZERO, lag: Duration::from_millis(100) };

    /// A call from one millisecond to another; no end if the answer is not known.
    fn call(begin: u64, end: u64, ask: Ttl, answer: Option<Told>) -> Asked {
        let known = answer.is_some();
        Call {
            ask,
            answer,
            begin,
            end: known.then_some(end),
            sent: Duration::from_millis(begin),
            done: known.then(|| Duration::from_millis(end)),
        }
    }

    fn insert(seen: u64, value: &str, ttl: Option<u64>) -> Ttl {
        let ttl = ttl.map(Duration::from_millis);
        Ttl::Insert { seen: Generation(seen), value: value.into(), ttl }
    }

    fn swap(old: &str, new: &str) -> Ttl {
        Ttl::Swap { old: old.into(), new: new.into(), ttl: None }
    }

    fn look(at: u64, generation: u64, value: Option<&str>) -> Asked {
        let held = value.map(|value| Held { value: value.into(), remaining: None });
        let entry = Entry { generation: Generation(generation), held };
        call(at, at + 1, Ttl::Read, Some(Told::Entry(entry)))
    }

    const DONE: Option<Told> = Some(Told::Write(Write::Done));
    const LOST: Option<Told> = Some(Told::Write(Write::Lost));

    fn right(calls: &[Asked]) -> bool {
        explain_entry(calls, LAG).is_ok()
    }

    #[test]
    fn one_of_two_inserts_wins() {
        let race = |second: Option<Told>, value| {
            right(&[
                call(0, 10, insert(0, "a", None), DONE),
                call(1, 9, insert(0, "b", None), second),
                look(11, 1, Some(value)),
            ])
        };
        assert!(race(LOST, "a"));
        assert!(!race(LOST, "b"));
        assert!(!race(DONE, "a"));
        assert!(!race(DONE, "b"));
    }

    #[test]
    fn a_read_is_not_older_than_what_ended_before_it() {
        let reads = |first, second| {
            right(&[
                call(0, 1, insert(0, "a", None), DONE),
                call(2, 9, swap("a", "b"), DONE),
                look(3, 1, Some(first)),
                look(5, 1, Some(second)),
            ])
        };
        assert!(reads("a", "a") && reads("a", "b") && reads("b", "b"));
        assert!(!reads("b", "a"));
        let late = look(10, 1, Some("a"));
        let swap = call(2, 9, swap("a", "b"), DONE);
        assert!(!right(&[call(0, 1, insert(0, "a", None), DONE), swap, late]));
    }

    #[test]
    fn what_nobody_knows_may_have_happened_late_or_never() {
        let seen = |reads: [&str; 3]| {
            let mut calls = vec![
                call(0, 1, insert(0, "a", None), DONE),
                call(2, 0, swap("a", "b"), None),
                look(3, 1, Some(reads[0])),
            ];
            calls.push(look(500, 1, Some(reads[1])));
            calls.push(look(502, 1, Some(reads[2])));
            right(&calls)
        };
        assert!(seen(["a", "a", "a"]) && seen(["a", "a", "b"]) && seen(["b", "b", "b"]));
        assert!(!seen(["a", "b", "a"]) && !seen(["b", "a", "a"]));
    }

    #[test]
    fn an_entry_goes_after_its_time_and_not_later_than_promised() {
        let gone = |at| {
            let insert = call(0, 10, insert(0, "a", Some(1000)), DONE);
            right(&[insert, look(at, 1, None)])
        };
        assert!(!gone(500) && !gone(998) && gone(1000) && gone(5000));
        let there = |at| {
            let insert = call(0, 10, insert(0, "a", Some(1000)), DONE);
            right(&[insert, look(at, 1, Some("a"))])
        };
        assert!(there(500) && there(1100) && !there(1300));
    }

    #[test]
    fn what_has_expired_does_not_come_back() {
        let calls = [
            call(0, 1, insert(0, "a", Some(1000)), DONE),
            look(1001, 1, None),
            call(1003, 1004, swap("a", "b"), DONE),
        ];
        assert!(!right(&calls));
        assert!(right(&calls[..2]));
    }

    #[test]
    fn generations_survive_and_lifts_count() {
        let history = |generation| {
            right(&[
                call(0, 1, insert(0, "a", None), DONE),
                call(2, 3, Ttl::Delete { old: b"a".to_vec() }, DONE),
                call(4, 5, Ttl::Lift { floor: Generation(5) }, Some(Told::Lifted)),
                call(6, 7, insert(5, "b", None), DONE),
                look(8, generation, Some("b")),
            ])
        };
        assert!(history(6) && !history(2) && !history(1));
    }
}
