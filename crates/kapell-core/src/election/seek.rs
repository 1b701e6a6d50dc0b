use super::{Answer, Ask, Event, Holder, Setup, Ticket};
use crate::seams::Moment;
use crate::seat::{Epoch, Record, Seat};

/// The way to a seat: all seats are looked at, and one at a time is tried for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Seek {
    until: Option<Moment>,
    looks: Vec<(Seat, Look)>,
    bid: Option<Bid>,
}

/// What is known of one seat.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Look {
    /// Look at it then.
    Later(Moment),
    /// Being looked at; if it changes meanwhile, the answer is stale.
    Asked {
        ticket: Ticket,
        stale: bool,
    },
    Vacant(Epoch),
    /// The seat of the bid.
    Bidding,
}

/// A try for a seat whose outcome is not known yet. There is one at a time, so that no
/// candidate ever holds two seats.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Bid {
    seat: Seat,
    record: Record,
    step: Step,
    at: Moment,
    call: Option<(Ticket, Moment)>,
    /// When the insert was first sent: whatever landed, landed later.
    inserted: Option<Moment>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Step {
    Insert,
    ReadBack,
    TakeBack,
}

/// A seat that is ours, and when its lease began to count at the latest.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) seat: Seat,
    pub(super) record: Record,
    pub(super) since: Moment,
}

impl Seek {
    pub(super) fn new(seats: &[Seat], until: Option<Moment>) -> Self {
        let looks = seats.iter().map(|&seat| (seat, Look::Later(Moment::ZERO))).collect();
        Self { until, looks, bid: None }
    }

    /// The insert that may have landed or may still land.
    pub(super) fn under_way(self) -> Option<(Seat, Record)> {
        self.bid.filter(|bid| bid.inserted.is_some()).map(|bid| (bid.seat, bid.record))
    }

    /// The time is up and no answer that could still make a difference is under way.
    pub(super) fn is_hopeless(&self, now: Moment) -> bool {
        let waits = self.bid.as_ref().is_some_and(|bid| bid.call.is_some());
        !waits && self.until.is_some_and(|until| now >= until)
    }

    pub(super) fn due(&self) -> Option<Moment> {
        let looks = self.looks.iter().filter_map(|(_, look)| match look {
            Look::Later(at) => Some(*at),
            Look::Asked { .. } | Look::Vacant(_) | Look::Bidding => None,
        });
        let bid = self.bid.iter().filter(|bid| bid.call.is_none()).map(|bid| bid.at);
        let end = self.until.filter(|_| self.bid.as_ref().is_none_or(|bid| bid.call.is_none()));
        looks.chain(bid).chain(end).min()
    }

    /// Gives back a seat that was won too late to be of use. It is not taken again, whatever is
    /// seen of it: a deletion that was sent may land at any time.
    pub(super) fn take_back(&mut self, Found { seat, record, since }: Found) {
        let (step, at, inserted) = (Step::TakeBack, since, Some(since));
        self.bid = Some(Bid { seat, record, step, at, call: None, inserted });
    }

    /// The next call to send now, if there is one.
    pub(super) fn next_call(&mut self, now: Moment, setup: &Setup) -> Option<(Seat, Ask)> {
        if self.bid.is_none()
            && let Some((seat, last)) = self.first_vacant()
        {
            let record = Record {
                epoch: last.next(),
                owner: setup.owner,
                address: setup.address.clone(),
                since: setup.since,
            };
            self.set(seat, Look::Bidding);
            self.bid =
                Some(Bid { seat, record, step: Step::Insert, at: now, call: None, inserted: None });
        }
        if let Some(bid) = &self.bid
            && bid.call.is_none()
            && now >= bid.at
        {
            let ask = match bid.step {
                Step::Insert => Ask::Insert(bid.record.clone()),
                Step::ReadBack => Ask::Read,
                Step::TakeBack => Ask::Delete(bid.record.clone()),
            };
            return Some((bid.seat, ask));
        }
        let late = |look: &Look| matches!(look, Look::Later(at) if now >= *at);
        let (seat, _) = self.looks.iter().find(|(_, look)| late(look))?;
        Some((*seat, Ask::Read))
    }

    /// Notes that the call which [`next_call`](Self::next_call) named was sent.
    pub(super) fn sent(&mut self, seat: Seat, ticket: Ticket, now: Moment) {
        if let Some(bid) = self.bid.as_mut().filter(|bid| bid.seat == seat) {
            bid.call = Some((ticket, now));
            if bid.step == Step::Insert {
                bid.inserted.get_or_insert(now);
            }
        } else {
            self.set(seat, Look::Asked { ticket, stale: false });
        }
    }

    pub(super) fn hear(&mut self, event: Event, now: Moment, setup: &Setup) -> Option<Found> {
        match event {
            Event::Changed(seat) => {
                let look = self.looks.iter_mut().find(|(each, _)| *each == seat);
                match look.map(|(_, look)| look) {
                    Some(look @ Look::Later(_)) => *look = Look::Later(now),
                    Some(Look::Asked { stale, .. }) => *stale = true,
                    Some(Look::Vacant(_) | Look::Bidding) | None => {}
                }
                None
            }
            Event::Answered(ticket, answer) => {
                let is_bids = |bid: &mut Bid| bid.call.is_some_and(|(call, _)| call == ticket);
                if let Some(bid) = self.bid.take_if(is_bids) {
                    self.hear_of_bid(bid, answer, now, setup)
                } else {
                    self.hear_of_look(ticket, answer, now, setup);
                    None
                }
            }
            Event::Due | Event::Resign => None,
        }
    }

    fn hear_of_look(&mut self, ticket: Ticket, answer: Answer, now: Moment, setup: &Setup) {
        let stale = |look: &Look| match look {
            Look::Asked { ticket: each, stale } if *each == ticket => Some(*stale),
            Look::Asked { .. } | Look::Later(_) | Look::Vacant(_) | Look::Bidding => None,
        };
        let asked = self.looks.iter_mut().find_map(|(_, look)| Some((stale(look)?, look)));
        let Some((stale, look)) = asked else { return };
        *look = match answer {
            _ if stale => Look::Later(now),
            Answer::Seen { last, holder: None } => Look::Vacant(last),
            Answer::Seen { holder: Some(holder), .. } => wait_for(&holder, now, setup),
            Answer::Done | Answer::Lost | Answer::Unknown => {
                Look::Later(now.after(setup.lease.retry() * 4))
            }
        };
    }

    fn hear_of_bid(
        &mut self,
        bid: Bid,
        answer: Answer,
        now: Moment,
        setup: &Setup,
    ) -> Option<Found> {
        let (_, asked_at) = bid.call?;
        let retry = setup.lease.retry();
        let seat = bid.seat;
        let next = match (bid.step, answer) {
            (Step::Insert, Answer::Done) => {
                return Some(Found { seat, record: bid.record, since: asked_at });
            }
            (Step::Insert, Answer::Unknown) => return self.go_on(bid, Step::ReadBack, now),
            // Perhaps to an earlier insert of the same record, sent and not heard of.
            (Step::Insert, Answer::Lost) if bid.inserted < Some(asked_at) => {
                return self.go_on(bid, Step::ReadBack, now);
            }
            (Step::ReadBack, Answer::Seen { holder: Some(holder), .. }) => {
                if let Some(found) = own(seat, &holder, asked_at, bid.inserted, setup) {
                    return Some(found);
                }
                wait_for(&holder, now, setup)
            }
            // The insert has not landed, but may still: only the same insert may be sent again.
            (Step::ReadBack, Answer::Seen { last, holder: None }) if last < bid.record.epoch => {
                return self.go_on(bid, Step::Insert, now.after(retry));
            }
            (step @ (Step::ReadBack | Step::TakeBack), Answer::Unknown) => {
                return self.go_on(bid, step, now.after(retry * 2));
            }
            (
                Step::Insert | Step::ReadBack | Step::TakeBack,
                Answer::Seen { .. } | Answer::Done | Answer::Lost,
            ) => Look::Later(now),
        };
        self.set(seat, next);
        None
    }

    /// The bid is not decided yet; this is its next step.
    fn go_on(&mut self, bid: Bid, step: Step, at: Moment) -> Option<Found> {
        self.bid = Some(Bid { step, at, call: None, ..bid });
        None
    }

    fn first_vacant(&self) -> Option<(Seat, Epoch)> {
        self.looks.iter().find_map(|(seat, look)| match look {
            Look::Vacant(last) => Some((*seat, *last)),
            Look::Later(_) | Look::Asked { .. } | Look::Bidding => None,
        })
    }

    fn set(&mut self, seat: Seat, next: Look) {
        if let Some((_, look)) = self.looks.iter_mut().find(|(each, _)| *each == seat) {
            *look = next;
        }
    }
}

/// A record of our own that was taken for lost, and since when it counts at the latest.
fn own(
    seat: Seat,
    holder: &Holder,
    read: Moment,
    inserted: Option<Moment>,
    setup: &Setup,
) -> Option<Found> {
    let record = holder.record.clone().filter(|record| record.owner == setup.owner)?;
    let told = holder.remaining.map(|remaining| setup.lease.sent_by(read, remaining));
    let since = told.max(inserted)?;
    Some(Found { seat, record, since })
}

fn wait_for(holder: &Holder, now: Moment, setup: &Setup) -> Look {
    let wait = holder.remaining.map_or(setup.poll, |remaining| remaining.min(setup.poll));
    Look::Later(now.after(wait.max(setup.lease.retry())))
}
