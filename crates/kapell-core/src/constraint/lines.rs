//! Who is called next: one line for each place, none too fast, none waits for another, and in each the domains take turns.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::time::Duration;

use crate::board::Domain;
use crate::seams::Moment;

/// How much is done at once and how fast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Messages that wait or are being sent, in all.
    pub waiting: usize,
    /// Calls under way, in all and to one place.
    pub calls: usize,
    pub calls_to_one: usize,
    /// Calls under way for one domain: some are left for the others.
    pub calls_for_one: usize,
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
            calls_for_one: 48,
            burst: 20,
            each: Duration::from_millis(100),
        }
    }
}

/// How many messages each domain has waiting: none can fill the queue so that others find no room.
#[derive(Debug, Default)]
pub struct Shares {
    total: usize,
    of: BTreeMap<Domain, usize>,
}

impl Shares {
    /// Takes room for one more, if there is any for this domain: while half of all is free, for everybody, and then up to
    /// the share that each of those has who have some.
    pub fn take(&mut self, domain: &Domain, most: usize) -> bool {
        let own = self.of.get(domain).copied().unwrap_or_default();
        let domains = self.of.len() + usize::from(own == 0);
        let fair = own < (most / domains).max(1);
        if !fair && self.total >= most / 2 {
            return false;
        }
        self.add(domain);
        true
    }

    /// Counts one more, however many there are.
    pub fn add(&mut self, domain: &Domain) {
        *self.of.entry(domain.clone()).or_default() += 1;
        self.total += 1;
    }

    pub fn give_back(&mut self, domain: &Domain) {
        let Some(own) = self.of.get_mut(domain) else { return };
        *own -= 1;
        self.total -= 1;
        if *own == 0 {
            self.of.remove(domain);
        }
    }
}

/// By when it may go and the order in which it came.
type Waiting = BinaryHeap<Reverse<(Moment, u64)>>;

#[derive(Debug)]
struct Line {
    waiting: BTreeMap<Domain, Waiting>,
    /// The domain whose turn it was last: the next one comes first.
    last: Option<Domain>,
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
    /// Calls under way by domain.
    calling_for: BTreeMap<Domain, usize>,
    /// The place that was called last: the next one comes first.
    last: String,
}

/// What to do now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turn {
    /// Call for this one.
    Call { place: String, domain: Domain, number: u64 },
    /// Nothing before then.
    Wait(Moment),
    /// Nothing until something comes or ends.
    Idle,
}

impl Lines {
    pub fn new(pace: Pace) -> Self {
        let (places, calling_for) = (BTreeMap::new(), BTreeMap::new());
        Self { pace, places, calling: 0, calling_for, last: String::new() }
    }

    /// Takes a message of a domain that may go from a moment on.
    pub fn add(&mut self, place: &str, domain: &Domain, number: u64, from: Moment) {
        let line =
            || Line { waiting: BTreeMap::new(), last: None, calling: 0, full_at: Moment::ZERO };
        let line = self.places.entry(place.to_owned()).or_insert_with(line);
        line.waiting.entry(domain.clone()).or_default().push(Reverse((from, number)));
    }

    /// What is next. Whoever gets a call says when it is [`Lines::done`].
    pub fn next(&mut self, now: Moment) -> Turn {
        if self.calling >= self.pace.calls {
            return Turn::Idle;
        }
        let (limits, calling_for) = (&self.pace, &self.calling_for);
        let may_call = |domain: &Domain| {
            calling_for.get(domain).copied().unwrap_or_default() < limits.calls_for_one
        };
        let mut soonest: Option<(Moment, String)> = None;
        let last = self.last.as_str();
        let behind = self.places.range::<str, _>((Excluded(last), Unbounded));
        let before = self.places.range::<str, _>((Unbounded, Included(last)));
        for (place, line) in behind.chain(before) {
            let Some(at) = line.ready_at(limits, may_call) else { continue };
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
        let taken =
            self.places.get_mut(&place).and_then(|line| line.take(now, limits.each, may_call));
        let Some((domain, number)) = taken else { return Turn::Idle };
        self.calling += 1;
        *self.calling_for.entry(domain.clone()).or_default() += 1;
        self.last.clone_from(&place);
        Turn::Call { place, domain, number }
    }

    /// A call has ended.
    pub fn done(&mut self, place: &str, domain: &Domain, now: Moment) {
        self.calling = self.calling.saturating_sub(1);
        if let Some(calls) = self.calling_for.get_mut(domain) {
            *calls -= 1;
            if *calls == 0 {
                self.calling_for.remove(domain);
            }
        }
        if let Some(line) = self.places.get_mut(place) {
            line.calling = line.calling.saturating_sub(1);
        }
        self.places
            .retain(|_, line| !line.waiting.is_empty() || line.calling > 0 || line.full_at > now);
    }
}

impl Line {
    /// When its next message may go, if there is one and not too many are under way.
    fn ready_at(&self, pace: &Pace, may_call: impl Fn(&Domain) -> bool) -> Option<Moment> {
        if self.calling >= pace.calls_to_one {
            return None;
        }
        let first = |(_, waiting): (&Domain, &Waiting)| waiting.peek().map(|next| next.0.0);
        let due = self.waiting.iter().filter(|(domain, _)| may_call(domain)).filter_map(first);
        let credit = pace.each.saturating_mul(pace.burst.saturating_sub(1));
        let paced = Moment::from_origin(self.full_at.since_origin().saturating_sub(credit));
        due.min().map(|due| due.max(paced))
    }

    /// Takes what may go now, of the domain whose turn it is.
    fn take(
        &mut self,
        now: Moment,
        each: Duration,
        may_call: impl Fn(&Domain) -> bool,
    ) -> Option<(Domain, u64)> {
        let is_ready = |(domain, waiting): &(&Domain, &Waiting)| {
            may_call(domain) && waiting.peek().is_some_and(|next| next.0.0 <= now)
        };
        let last = self.last.as_ref();
        let behind =
            self.waiting.iter().filter(|(domain, _)| last.is_none_or(|last| *domain > last));
        let before =
            self.waiting.iter().filter(|(domain, _)| last.is_some_and(|last| *domain <= last));
        let domain = behind.chain(before).find(is_ready)?.0.clone();
        let waiting = self.waiting.get_mut(&domain)?;
        let Reverse((_, number)) = waiting.pop()?;
        if waiting.is_empty() {
            self.waiting.remove(&domain);
        }
        self.last = Some(domain.clone());
        self.calling += 1;
        self.full_at = self.full_at.max(now).after(each);
        Some((domain, number))
    }
}
