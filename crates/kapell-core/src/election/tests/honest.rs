//! Three seats in a store that keeps its word, rivals for each of them, and a network that does
//! not: nothing arrives in order or on time, and the host is paused at will.

use std::time::Duration;

use proptest::prelude::*;

use super::super::*;
use super::bench::{LEASE, ME, OTHER, setup};
use crate::seams::{Moment, Timestamp};

const SEATS: u32 = 3;

#[derive(Debug, Clone)]
enum Input {
    /// Time passes, and the host sleeps.
    Sleep(u64),
    /// Time passes, and the host does what is due and gives up calls on time.
    Run(u64),
    /// A request reaches the store; how many were sent after it is given.
    Reach(usize),
    /// An answer reaches the host.
    Return(usize),
    /// Someone else takes the seat if it is free.
    Rival(u32),
    /// Someone else leaves it.
    Leave(u32),
    Resign,
}

#[derive(Debug, Clone, Default)]
struct Slot {
    last: u64,
    entry: Option<(Record, Moment)>,
}

#[derive(Debug)]
struct World {
    it: Candidate,
    now: Moment,
    slots: Vec<Slot>,
    waiting: Vec<(Ticket, Moment)>,
    requests: Vec<(Ticket, Seat, Ask)>,
    answers: Vec<(Ticket, Answer)>,
    lost: bool,
}

impl World {
    fn new() -> Self {
        let now = Moment::ZERO;
        let (it, effects) = Candidate::new(setup(SEATS), now);
        let slots = vec![Slot::default(); 3];
        let (waiting, requests, answers) = (Vec::new(), Vec::new(), Vec::new());
        let mut world = Self { it, now, slots, waiting, requests, answers, lost: false };
        world.perform(effects);
        world
    }

    fn perform(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Send { ticket, seat, ask, within } => {
                    assert!(!self.lost || ask == Ask::Read);
                    self.waiting.push((ticket, self.now.after(within)));
                    self.requests.push((ticket, seat, ask));
                }
                Effect::Tell(notice) => self.lost |= matches!(notice, Notice::Lost(_)),
            }
        }
    }

    fn step(&mut self, event: Event) {
        let effects = self.it.step(event, self.now);
        self.perform(effects);
    }

    fn hear(&mut self, ticket: Ticket, answer: Answer) {
        self.waiting.retain(|(each, _)| *each != ticket);
        self.step(Event::Answered(ticket, answer));
    }

    fn run_until(&mut self, end: Moment) {
        loop {
            let due = self.it.due().map(|due| (due, None));
            let calls = self.waiting.iter().map(|(ticket, at)| (*at, Some(*ticket)));
            match calls.chain(due).min().filter(|(at, _)| *at <= end) {
                None => break,
                Some((at, what)) => {
                    self.now = self.now.max(at);
                    match what {
                        Some(ticket) => self.hear(ticket, Answer::Unknown),
                        None => self.step(Event::Due),
                    }
                }
            }
        }
        self.now = end;
    }

    fn slot(&mut self, seat: Seat) -> &mut Slot {
        let now = self.now;
        let slot = &mut self.slots[usize::try_from(seat.0 - 1).unwrap()];
        slot.entry.take_if(|(_, until)| *until <= now);
        slot
    }

    fn apply(&mut self, seat: Seat, ask: Ask) -> Answer {
        let (now, until) = (self.now, self.now.after(LEASE));
        let acts = self.it.may_act(now);
        let slot = self.slot(seat);
        let stands = |slot: &Slot, record: &Record| {
            slot.entry.as_ref().is_some_and(|(entry, _)| entry == record)
        };
        let is_done = match ask {
            Ask::Read => {
                let holder = slot.entry.clone().map(|(record, until)| Holder {
                    record: Some(record),
                    remaining: Some(until.since(now)),
                });
                return Answer::Seen { last: Epoch(slot.last), holder };
            }
            Ask::Insert(record) => {
                let is_free = slot.entry.is_none() && slot.last + 1 == record.epoch.0;
                if is_free {
                    *slot = Slot { last: record.epoch.0, entry: Some((record, until)) };
                }
                is_free
            }
            Ask::Renew(record) => {
                let stands = stands(slot, &record);
                if stands {
                    slot.entry = Some((record, until));
                }
                stands
            }
            Ask::Delete(record) => {
                let stands = stands(slot, &record);
                assert!(!(stands && acts), "deleted while it may act");
                slot.entry.take_if(|_| stands);
                stands
            }
        };
        if is_done { Answer::Done } else { Answer::Lost }
    }

    fn feed(&mut self, input: &Input) {
        match input {
            Input::Sleep(ms) => self.now = self.now.after(Duration::from_millis(*ms)),
            Input::Run(ms) => self.run_until(self.now.after(Duration::from_millis(*ms))),
            Input::Reach(back) => {
                if let Some(at) = self.requests.len().checked_sub(back + 1) {
                    let (ticket, seat, ask) = self.requests.remove(at);
                    let answer = self.apply(seat, ask);
                    self.answers.push((ticket, answer));
                }
            }
            Input::Return(back) => {
                if let Some(at) = self.answers.len().checked_sub(back + 1) {
                    let (ticket, answer) = self.answers.remove(at);
                    self.hear(ticket, answer);
                }
            }
            Input::Rival(seat) => {
                let last = self.slot(Seat(*seat)).last;
                let (epoch, since) = (Epoch(last + 1), Timestamp(0));
                let record = Record { epoch, owner: OTHER, address: String::new(), since };
                self.apply(Seat(*seat), Ask::Insert(record));
                self.step(Event::Changed(Seat(*seat)));
            }
            Input::Leave(seat) => {
                let entry = &mut self.slot(Seat(*seat)).entry;
                entry.take_if(|(record, _)| record.owner == OTHER);
                self.step(Event::Changed(Seat(*seat)));
            }
            Input::Resign => self.step(Event::Resign),
        }
        self.check();
    }

    fn check(&mut self) {
        let seats = Seat::all(SEATS);
        let of_ours = seats.filter(|seat| {
            self.slot(*seat).entry.as_ref().is_some_and(|(record, _)| record.owner == ME)
        });
        let ours: Vec<Seat> = of_ours.collect();
        assert!(ours.len() <= 1, "two seats at once: {ours:?}");
        if self.it.may_act(self.now) {
            let held = self.it.held().map(|(seat, _)| seat);
            assert_eq!(held, ours.first().copied(), "acts for what it does not hold");
        }
    }
}

fn input() -> impl Strategy<Value = Input> {
    let back = || prop_oneof![5 => Just(0_usize), 2 => 0_usize..6];
    prop_oneof![
        1 => (0_u64..6000).prop_map(Input::Sleep),
        6 => (0_u64..1500).prop_map(Input::Run),
        8 => back().prop_map(Input::Reach),
        8 => back().prop_map(Input::Return),
        2 => (1..=SEATS).prop_map(Input::Rival),
        2 => (1..=SEATS).prop_map(Input::Leave),
        1 => prop::bool::weighted(0.1).prop_map(|is| if is { Input::Resign } else { Input::Run(1) }),
    ]
}

proptest! {
    #[test]
    fn it_never_holds_two_seats_and_acts_only_for_the_one_it_holds(
        script in prop::collection::vec(input(), 1..150),
    ) {
        let mut world = World::new();
        for input in &script {
            world.feed(input);
        }
    }
}
