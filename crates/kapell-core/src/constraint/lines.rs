//! Who is called next: one line for each place, none too fast, and none waits for another.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::time::Duration;

use crate::seams::Moment;

/// How much is done at once and how fast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Messages that wait or are being sent, in all.
    pub waiting: usize,
    /// Calls under way, in all and to one place.
    pub calls: usize,
    pub calls_to_one: usize,
    /// One place is called at most so often at once, and then once each `each`.
    pub burst: u32,
    pub each: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            waiting: 4096,
            calls: 64,
            calls_to_one: 4,
            burst: 20,
            each: Duration::from_millis(100),
        }
    }
}

#[derive(Debug)]
struct Line {
    /// By when it may go and the order in which it came.
    waiting: BinaryHeap<Reverse<(Moment, u64)>>,
    calling: usize,
    /// What may be called at once, in parts of `each`: full at this moment.
    full_at: Moment,
}

/// Messages that wait for their call, by number.
#[derive(Debug)]
pub struct Lines {
    pace: Pace,
    places: BTreeMap<String, Line>,
    calling: usize,
    /// The place that was called last: the next one comes first.
    last: String,
}

/// What to do now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turn {
    /// Call for this one.
    Call { place: String, number: u64 },
    /// Nothing before then.
    Wait(Moment),
    /// Nothing until something comes or ends.
    Idle,
}

impl Lines {
    pub fn new(pace: Pace) -> Self {
        Self { pace, places: BTreeMap::new(), calling: 0, last: String::new() }
    }

    /// Takes a message that may go from a moment on.
    pub fn add(&mut self, place: &str, number: u64, from: Moment) {
        let line = || Line { waiting: BinaryHeap::new(), calling: 0, full_at: Moment::ZERO };
        let line = self.places.entry(place.to_owned()).or_insert_with(line);
        line.waiting.push(Reverse((from, number)));
    }

    /// What is next. Whoever gets a call says when it is [`Lines::done`].
    pub fn next(&mut self, now: Moment) -> Turn {
        if self.calling >= self.pace.calls {
            return Turn::Idle;
        }
        let mut soonest: Option<(Moment, String)> = None;
        let last = self.last.as_str();
        let behind = self.places.range::<str, _>((Excluded(last), Unbounded));
        let before = self.places.range::<str, _>((Unbounded, Included(last)));
        for (place, line) in behind.chain(before) {
            let Some(at) = line.ready_at(&self.pace) else { continue };
            if soonest.as_ref().is_none_or(|(before, _)| at < *before) {
                soonest = Some((at, place.clone()));
            }
            if at <= now {
                // The first one in turn that may go.
                soonest = Some((at, place.clone()));
                break;
            }
        }
        let Some((at, place)) = soonest else { return Turn::Idle };
        if at > now {
            return Turn::Wait(at);
        }
        let Some(line) = self.places.get_mut(&place) else { return Turn::Idle };
        let Some(Reverse((_, number))) = line.waiting.pop() else { return Turn::Idle };
        line.calling += 1;
        line.full_at = line.full_at.max(now).after(self.pace.each);
        self.calling += 1;
        self.last.clone_from(&place);
        Turn::Call { place, number }
    }

    /// A call has ended.
    pub fn done(&mut self, place: &str, now: Moment) {
        self.calling = self.calling.saturating_sub(1);
        if let Some(line) = self.places.get_mut(place) {
            line.calling = line.calling.saturating_sub(1);
        }
        self.places
            .retain(|_, line| !line.waiting.is_empty() || line.calling > 0 || line.full_at > now);
    }
}

impl Line {
    /// When its next message may go, if there is one and not too many are under way.
    fn ready_at(&self, pace: &Pace) -> Option<Moment> {
        let Reverse((due, _)) = self.waiting.peek()?;
        if self.calling >= pace.calls_to_one {
            return None;
        }
        let credit = pace.each.saturating_mul(pace.burst.saturating_sub(1));
        let paced = Moment::from_origin(self.full_at.since_origin().saturating_sub(credit));
        Some((*due).max(paced))
    }
}
