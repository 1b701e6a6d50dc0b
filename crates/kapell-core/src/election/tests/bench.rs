//! A candidate whose world is written down line by line: at which millisecond it heard what, and
//! what it did about it. The lease is 8 s, so a quarter is 2 s.

use std::time::Duration;

use super::super::*;
use crate::seams::{Moment, Timestamp};

pub(super) const ME: Owner = Owner(7);
pub(super) const OTHER: Owner = Owner(9);
pub(super) const LEASE: Duration = Duration::from_secs(8);

pub(super) const fn at(ms: u64) -> Moment {
    Moment::from_origin(Duration::from_millis(ms))
}

pub(super) fn setup(seats: u32) -> Setup {
    Setup {
        owner: ME,
        address: "10.0.0.1:7070".to_owned(),
        since: Timestamp(0),
        seats: Seat::all(seats).collect(),
        lease: Lease::new(LEASE),
        window: Some(Duration::from_secs(60)),
        poll: Duration::from_secs(3),
    }
}

pub(super) fn vacant(last: u64) -> Answer {
    Answer::Seen { last: Epoch(last), holder: None }
}

/// Someone with our address and this epoch stands there for so many milliseconds.
pub(super) fn held(owner: Owner, epoch: u64, remaining: u64) -> Answer {
    let record = Record {
        epoch: Epoch(epoch),
        owner,
        address: "10.0.0.1:7070".to_owned(),
        since: Timestamp(0),
    };
    let remaining = Some(Duration::from_millis(remaining));
    Answer::Seen { last: Epoch(epoch), holder: Some(Holder { record: Some(record), remaining }) }
}

/// Something that is no record of ours stands there for ever.
pub(super) fn foreign(last: u64) -> Answer {
    Answer::Seen { last: Epoch(last), holder: Some(Holder { record: None, remaining: None }) }
}

pub(super) struct Bench {
    pub(super) it: Candidate,
    /// Every call in the order sent: its ticket and how long it may take.
    pub(super) calls: Vec<(Ticket, Duration)>,
}

impl Bench {
    pub(super) fn new(setup: Setup) -> (Self, String) {
        let (it, effects) = Candidate::new(setup, at(0));
        let mut bench = Self { it, calls: Vec::new() };
        let told = bench.note(&effects);
        (bench, told)
    }

    /// One seat, looked at.
    pub(super) fn seeking() -> Self {
        let (bench, told) = Self::new(setup(1));
        assert_eq!(told, "read 1");
        bench
    }

    /// One seat, held with epoch 1 since a moment before anything else.
    pub(super) fn holding() -> Self {
        let mut bench = Self::seeking();
        assert_eq!(bench.hear(0, vacant(0)), "insert 1 epoch 1");
        assert_eq!(bench.hear(0, Answer::Done), "acquired 1 epoch 1");
        bench
    }

    pub(super) fn step(&mut self, ms: u64, event: Event) -> String {
        let effects = self.it.step(event, at(ms));
        self.note(&effects)
    }

    pub(super) fn due(&mut self, ms: u64) -> String {
        self.step(ms, Event::Due)
    }

    /// The call sent last is answered.
    pub(super) fn hear(&mut self, ms: u64, answer: Answer) -> String {
        self.hear_of(ms, self.calls.len() - 1, answer)
    }

    pub(super) fn hear_of(&mut self, ms: u64, call: usize, answer: Answer) -> String {
        let (ticket, _) = self.calls[call];
        self.step(ms, Event::Answered(ticket, answer))
    }

    pub(super) fn resign(&mut self, ms: u64) -> String {
        self.step(ms, Event::Resign)
    }

    pub(super) fn changed(&mut self, ms: u64, seat: u32) -> String {
        self.step(ms, Event::Changed(Seat(seat)))
    }

    /// How long the call sent last may take, in milliseconds.
    pub(super) fn within(&self) -> u128 {
        self.calls[self.calls.len() - 1].1.as_millis()
    }

    pub(super) fn due_at(&self) -> Option<u128> {
        self.it.due().map(ms)
    }

    pub(super) fn killed_at(&self) -> Option<u128> {
        self.it.kill_at().map(ms)
    }

    /// Until when it may act; asserts that the answer changes there and nowhere near.
    pub(super) fn acts_until(&self) -> Option<u128> {
        let until = self.it.acts_until()?;
        let before = Moment::from_origin(until.since_origin().saturating_sub(Duration::new(0, 1)));
        assert!(self.it.may_act(before) && !self.it.may_act(until));
        Some(ms(until))
    }

    fn note(&mut self, effects: &[Effect]) -> String {
        let lines: Vec<String> = effects.iter().map(|effect| self.note_one(effect)).collect();
        lines.join(", ")
    }

    fn note_one(&mut self, effect: &Effect) -> String {
        match effect {
            Effect::Send { ticket, seat, ask, within } => {
                self.calls.push((*ticket, *within));
                match ask {
                    Ask::Read => format!("read {seat}"),
                    Ask::Insert(record) => format!("insert {seat} epoch {}", record.epoch),
                    Ask::Renew(record) => format!("renew {seat} epoch {}", record.epoch),
                    Ask::Delete(record) => format!("delete {seat} epoch {}", record.epoch),
                }
            }
            Effect::Tell(Notice::Acquired { seat, epoch }) => {
                format!("acquired {seat} epoch {epoch}")
            }
            Effect::Tell(Notice::Renewed) => "renewed".to_owned(),
            Effect::Tell(Notice::NotAcquired) => "not acquired".to_owned(),
            Effect::Tell(Notice::Lost(why)) => format!("lost: {}", why.code()),
            Effect::Tell(Notice::Resigned) => "resigned".to_owned(),
        }
    }
}

fn ms(moment: Moment) -> u128 {
    moment.since_origin().as_millis()
}
