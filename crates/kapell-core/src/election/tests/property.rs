//! Whatever is heard in whatever order, also what no store would say.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;

use super::super::*;
use super::bench::{LEASE, ME, OTHER, foreign, held, setup, vacant};
use crate::seams::Moment;

#[derive(Debug, Clone)]
enum Input {
    Due,
    Changed(u32),
    Resign,
    /// A call is answered, now or again; how many came after it is given.
    Answer(usize, Said),
}

/// An answer, fit for what was asked.
#[derive(Debug, Clone)]
enum Said {
    Yes,
    No,
    Nothing,
    Vacant(u64),
    Held(Owner, u64, u64),
    Foreign,
}

#[derive(Debug, Clone)]
struct Call {
    sent: Moment,
    within: Duration,
    is_read: bool,
    answered: bool,
}

/// A candidate, and what is known of it from outside.
#[derive(Debug)]
struct Watched {
    it: Candidate,
    now: Moment,
    calls: BTreeMap<Ticket, Call>,
    /// The latest moment from which anything heard lets a lease count.
    proof: Option<Moment>,
    lost: bool,
    killed: Option<Moment>,
    last: Option<Notice>,
}

impl Watched {
    fn new(seats: u32) -> Self {
        let now = Moment::ZERO;
        let (it, effects) = Candidate::new(setup(seats), now);
        let calls = BTreeMap::new();
        let mut watched =
            Self { it, now, calls, proof: None, lost: false, killed: None, last: None };
        watched.check(&effects);
        watched
    }

    fn step(&mut self, event: Event) {
        let effects = self.it.step(event, self.now);
        self.check(&effects);
    }

    fn check(&mut self, effects: &[Effect]) {
        for effect in effects {
            match effect {
                Effect::Send { ticket, seat: _, ask, within } => {
                    assert!(*within > Duration::ZERO, "{effect:?}");
                    assert!(!self.lost || matches!(ask, Ask::Read), "after the loss: {effect:?}");
                    if let Some(until) = self.it.acts_until() {
                        assert!(self.now.after(*within) <= until, "{effect:?} beyond {until:?}");
                    }
                    let is_read = matches!(ask, Ask::Read);
                    let call = Call { sent: self.now, within: *within, is_read, answered: false };
                    assert!(self.calls.insert(*ticket, call).is_none(), "{ticket:?} again");
                }
                Effect::Tell(notice) => {
                    let is_end = !matches!(notice, Notice::Acquired { .. } | Notice::Renewed);
                    assert_eq!(is_end, self.it.is_over(), "{notice:?}");
                    self.lost |= matches!(notice, Notice::Lost(_));
                    self.last = Some(notice.clone());
                }
            }
        }
        let half = LEASE / 2;
        if self.it.may_act(self.now) {
            assert!(self.proof.is_some_and(|proof| self.now < proof.after(half)));
            assert!(self.it.kill_at().is_some_and(|at| self.now < at) && self.it.held().is_some());
        }
        if self.lost {
            let at = self.it.kill_at();
            assert!(at.is_some() && self.killed.is_none_or(|before| at == Some(before)));
            self.killed = at;
        }
        let is_waiting = self.calls.values().any(|call| !call.answered);
        assert!(self.it.is_over() || self.it.due().is_some() || is_waiting, "stuck: {self:?}");
    }

    fn answer(&mut self, ticket: Ticket, said: &Said) {
        let Some(call) = self.calls.get_mut(&ticket) else { return };
        call.answered = true;
        let answer = match (call.is_read, said) {
            (false, Said::Yes) => Answer::Done,
            (false, Said::No) => Answer::Lost,
            (true, Said::Vacant(last)) => vacant(*last),
            (true, Said::Held(owner, epoch, remaining)) => held(*owner, *epoch, *remaining),
            (true, Said::Foreign) => foreign(1),
            (_, Said::Nothing | Said::Yes | Said::No)
            | (false, Said::Vacant(_) | Said::Held(..) | Said::Foreign) => Answer::Unknown,
        };
        // No answer proves anything later than when its call was sent.
        let is_ours = match said {
            Said::Yes => !call.is_read,
            Said::Held(owner, ..) => call.is_read && *owner == ME,
            Said::No | Said::Nothing | Said::Vacant(_) | Said::Foreign => false,
        };
        self.proof = self.proof.max(is_ours.then_some(call.sent));
        self.step(Event::Answered(ticket, answer));
    }

    fn feed(&mut self, wait: u64, input: &Input) {
        self.now = self.now.after(Duration::from_millis(wait));
        match input {
            Input::Due => self.step(Event::Due),
            Input::Changed(seat) => self.step(Event::Changed(Seat(*seat))),
            Input::Resign => self.step(Event::Resign),
            Input::Answer(back, said) => {
                if let Some(ticket) = self.calls.keys().rev().nth(*back).copied() {
                    self.answer(ticket, said);
                }
            }
        }
    }

    /// The store is silent from now on: every call times out, everything due happens on time.
    fn run_to_the_end(&mut self) {
        for _ in 0..10_000 {
            let open = self.calls.iter().filter(|(_, call)| !call.answered);
            let times = open.map(|(ticket, call)| (call.sent.after(call.within), Some(*ticket)));
            let due = self.it.due().map(|due| (due, None));
            let Some((at, what)) = times.chain(due).min() else { break };
            if self.it.is_over() {
                break;
            }
            self.now = self.now.max(at);
            match what {
                Some(ticket) => self.answer(ticket, &Said::Nothing),
                None => self.step(Event::Due),
            }
        }
        assert!(self.it.is_over(), "does not end: {self:?}");
    }
}

fn said() -> impl Strategy<Value = Said> {
    let owner = prop_oneof![Just(ME), Just(OTHER)];
    prop_oneof![
        3 => Just(Said::Yes),
        1 => Just(Said::No),
        1 => Just(Said::Nothing),
        3 => (0_u64..3).prop_map(Said::Vacant),
        3 => (owner, 0_u64..4, 0_u64..9000).prop_map(|(o, e, r)| Said::Held(o, e, r)),
        1 => Just(Said::Foreign),
    ]
}

fn input() -> impl Strategy<Value = Input> {
    prop_oneof![
        6 => Just(Input::Due),
        2 => (1_u32..4).prop_map(Input::Changed),
        1 => Just(Input::Resign),
        // Mostly the last call: answers to others are late.
        10 => (prop_oneof![4 => Just(0), 1 => 0_usize..9], said())
            .prop_map(|(back, said)| Input::Answer(back, said)),
    ]
}

fn script() -> impl Strategy<Value = Vec<(u64, Input)>> {
    let wait = prop_oneof![3 => Just(0_u64), 6 => 0_u64..700, 1 => 0_u64..5000];
    proptest::collection::vec((wait, input()), 1..80)
}

proptest! {
    #[test]
    fn it_never_panics_never_sticks_and_never_acts_without_proof(
        seats in 1_u32..4,
        script in script(),
    ) {
        let mut watched = Watched::new(seats);
        for (wait, input) in &script {
            watched.feed(*wait, input);
        }
        watched.run_to_the_end();
    }

    #[test]
    fn whoever_resigns_is_gone_within_a_quarter(seats in 1_u32..4, script in script()) {
        let mut watched = Watched::new(seats);
        for (wait, input) in &script {
            watched.feed(*wait, input);
        }
        let was_over = watched.it.is_over();
        let start = watched.now;
        watched.step(Event::Resign);
        watched.run_to_the_end();
        prop_assert!(was_over || watched.now <= start.after(LEASE / 4));
    }

    #[test]
    fn same_in_same_out(seats in 1_u32..4, script in script()) {
        let (mut one, mut other) = (Watched::new(seats), Watched::new(seats));
        for (wait, input) in &script {
            one.feed(*wait, input);
            other.feed(*wait, input);
            prop_assert_eq!(&one.it, &other.it);
        }
    }
}
