use std::time::Duration;

use super::seek::{Found, Seek};
use super::{Answer, Ask, Effect, Event, Holder, Lease, Loss, Notice, Ticket};
use crate::seams::{Moment, Timestamp};
use crate::seat::{Owner, Record, Seat};

/// What a candidate is told once.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Setup {
    pub owner: Owner,
    pub address: String,
    pub since: Timestamp,
    /// Tried in this order.
    pub seats: Vec<Seat>,
    pub lease: Lease,
    /// How long to look for a seat; none looks for ever.
    pub window: Option<Duration>,
    /// How long to wait before looking again where nobody tells of changes.
    pub poll: Duration,
}

/// One that seeks a seat, holds it and gives it back.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Candidate {
    setup: Setup,
    tickets: u64,
    phase: Phase,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Phase {
    Seeking(Seek),
    Holding(Holding),
    /// The seat is lost; who has it now is being asked.
    Losing {
        holding: Holding,
        lost: Moment,
        asked: Ticket,
        until: Moment,
    },
    Resigning(Resigning),
    Over {
        killed_by: Option<Moment>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Resigning {
    seat: Seat,
    record: Record,
    asked: Option<Ticket>,
    again: Moment,
    until: Moment,
    then: Notice,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Holding {
    seat: Seat,
    record: Record,
    /// When the last good renewal was sent.
    sent: Moment,
    call: Option<Call>,
    /// What to send next, and when.
    next: (Moment, Query),
    /// A call has failed since the last good renewal.
    failed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Query {
    Renew,
    Read,
}

/// A call under way about the seat that is held.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Call {
    ticket: Ticket,
    query: Query,
    sent: Moment,
    /// The entry may have changed since the call was sent.
    stale: bool,
}

impl Candidate {
    /// Begins to look for a seat.
    pub fn new(setup: Setup, now: Moment) -> (Self, Vec<Effect>) {
        let until = setup.window.map(|window| now.after(window));
        let seek = Seek::new(&setup.seats, until);
        let mut candidate = Self { setup, tickets: 0, phase: Phase::Seeking(seek) };
        let effects = candidate.step(Event::Due, now);
        (candidate, effects)
    }

    /// When to send [`Event::Due`], if nothing else happens before.
    pub fn due(&self) -> Option<Moment> {
        match &self.phase {
            Phase::Seeking(seek) => seek.due(),
            Phase::Holding(holding) => {
                let end = self.setup.lease.act_until(holding.sent);
                let next = holding.call.is_none().then_some(holding.next.0);
                Some(next.map_or(end, |next| next.min(end)))
            }
            Phase::Losing { until, .. } => Some(*until),
            Phase::Resigning(it) => {
                Some(if it.asked.is_some() { it.until } else { it.again.min(it.until) })
            }
            Phase::Over { .. } => None,
        }
    }

    /// Whether anything new may be begun in the name of the seat.
    pub fn may_act(&self, now: Moment) -> bool {
        self.acts_until().is_some_and(|until| now < until)
    }

    /// Until when the holder may act if it hears nothing more.
    pub fn acts_until(&self) -> Option<Moment> {
        match &self.phase {
            Phase::Holding(holding) => Some(self.setup.lease.act_until(holding.sent)),
            Phase::Seeking(_) | Phase::Losing { .. } | Phase::Resigning(_) | Phase::Over { .. } => {
                None
            }
        }
    }

    /// When the process must be gone. After a loss nothing takes that back.
    pub fn kill_at(&self) -> Option<Moment> {
        let lease = self.setup.lease;
        match &self.phase {
            Phase::Holding(holding) => Some(lease.kill_at(holding.sent, None)),
            Phase::Losing { holding, lost, .. } => Some(lease.kill_at(holding.sent, Some(*lost))),
            Phase::Over { killed_by } => *killed_by,
            Phase::Seeking(_) | Phase::Resigning(_) => None,
        }
    }

    /// What stands in the store for us while the seat is held.
    pub fn held(&self) -> Option<(Seat, &Record)> {
        match &self.phase {
            Phase::Holding(holding) => Some((holding.seat, &holding.record)),
            Phase::Seeking(_) | Phase::Losing { .. } | Phase::Resigning(_) | Phase::Over { .. } => {
                None
            }
        }
    }

    pub const fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Over { .. })
    }

    /// Takes in what happened and says what to do about it.
    pub fn step(&mut self, event: Event, now: Moment) -> Vec<Effect> {
        let mut out = Vec::new();
        match std::mem::replace(&mut self.phase, Phase::Over { killed_by: None }) {
            Phase::Seeking(seek) => self.seek(seek, event, now, &mut out),
            Phase::Holding(holding) => self.hold(holding, event, now, &mut out),
            Phase::Losing { holding, lost, asked, until } => {
                let why = match event {
                    Event::Answered(ticket, Answer::Seen { holder, .. }) if ticket == asked => {
                        Some(self.why_lost(&holding, holder.as_ref(), now))
                    }
                    Event::Answered(ticket, _) if ticket == asked => Some(Loss::Stolen(None)),
                    Event::Resign => Some(Loss::Stolen(None)),
                    Event::Answered(..) | Event::Due | Event::Changed(_) => {
                        (now >= until).then_some(Loss::Stolen(None))
                    }
                };
                match why {
                    Some(why) => self.lose(&holding, lost, why, &mut out),
                    None => self.phase = Phase::Losing { holding, lost, asked, until },
                }
            }
            Phase::Resigning(resigning) => self.leave(resigning, &event, now, &mut out),
            Phase::Over { killed_by } => self.phase = Phase::Over { killed_by },
        }
        out
    }

    fn send(&mut self, seat: Seat, ask: Ask, within: Duration, out: &mut Vec<Effect>) -> Ticket {
        let ticket = Ticket(self.tickets);
        self.tickets += 1;
        out.push(Effect::Send { ticket, seat, ask, within });
        ticket
    }

    fn seek(&mut self, mut seek: Seek, event: Event, now: Moment, out: &mut Vec<Effect>) {
        if event == Event::Resign {
            // An insert that may still land is taken back; it would otherwise stand for a lease.
            match seek.under_way() {
                Some((seat, record)) => self.resign(seat, record, Notice::Resigned, now, out),
                None => out.push(Effect::Tell(Notice::Resigned)),
            }
            return;
        }
        let found = seek.hear(event, now, &self.setup);
        if let Some(found) = found {
            if now < self.setup.lease.act_until(found.since) {
                let Found { seat, record, since } = found;
                out.push(Effect::Tell(Notice::Acquired { seat, epoch: record.epoch }));
                let next = (self.setup.lease.renew_at(since), Query::Renew);
                let holding =
                    Holding { seat, record, sent: since, call: None, next, failed: false };
                self.phase = Phase::Holding(holding);
                return;
            }
            // It was won, but so long ago that nothing may be done with it.
            seek.take_back(found);
        }
        if seek.is_hopeless(now) {
            match seek.under_way() {
                Some((seat, record)) => self.resign(seat, record, Notice::NotAcquired, now, out),
                None => out.push(Effect::Tell(Notice::NotAcquired)),
            }
            return;
        }
        let setup = self.setup.clone();
        while let Some((seat, ask)) = seek.next_call(now, &setup) {
            let ticket = self.send(seat, ask, setup.lease.duration() / 4, out);
            seek.sent(seat, ticket, now);
        }
        self.phase = Phase::Seeking(seek);
    }

    fn hold(&mut self, mut holding: Holding, event: Event, now: Moment, out: &mut Vec<Effect>) {
        if now >= self.setup.lease.act_until(holding.sent) {
            let why = if holding.failed { Loss::StoreErrors } else { Loss::Deadline };
            self.lose(&holding, now, why, out);
            return;
        }
        match event {
            Event::Resign => {
                self.resign(holding.seat, holding.record, Notice::Resigned, now, out);
                return;
            }
            Event::Answered(ticket, answer) => {
                let is_answered = |call: &mut Call| call.ticket == ticket;
                if let Some(call) = holding.call.take_if(is_answered) {
                    self.hear_while_holding(holding, &call, answer, now, out);
                    return;
                }
            }
            Event::Changed(seat) if seat == holding.seat => match &mut holding.call {
                Some(call) => call.stale = true,
                None => holding.next = (now, Query::Read),
            },
            Event::Changed(_) | Event::Due => {}
        }
        self.keep(holding, now, out);
    }

    fn hear_while_holding(
        &mut self,
        mut holding: Holding,
        call: &Call,
        answer: Answer,
        now: Moment,
        out: &mut Vec<Effect>,
    ) {
        let lease = self.setup.lease;
        let good = match answer {
            Answer::Done => Some(call.sent),
            Answer::Lost => {
                let within = lease.duration() / 8;
                let asked = self.send(holding.seat, Ask::Read, within, out);
                self.phase = Phase::Losing { holding, lost: now, asked, until: now.after(within) };
                return;
            }
            Answer::Seen { holder, .. } => {
                let is_ours = |holder: &&Holder| {
                    holder.record.as_ref().is_some_and(|it| it.is_of(&holding.record))
                };
                let Some(ours) = holder.as_ref().filter(is_ours) else {
                    let why = self.why_lost(&holding, holder.as_ref(), now);
                    self.lose(&holding, now, why, out);
                    return;
                };
                let told = ours.remaining.map(|remaining| lease.sent_by(call.sent, remaining));
                told.filter(|good| *good > holding.sent)
            }
            Answer::Unknown => {
                holding.failed = true;
                None
            }
        };
        if let Some(good) = good {
            (holding.sent, holding.failed) = (good, false);
            out.push(Effect::Tell(Notice::Renewed));
        }
        holding.next = match call.query {
            _ if call.stale => (now, Query::Read),
            _ if !holding.failed => (lease.renew_at(holding.sent), Query::Renew),
            Query::Renew => (now, Query::Read),
            Query::Read => (now.after(lease.retry()), Query::Renew),
        };
        self.keep(holding, now, out);
    }

    fn keep(&mut self, mut holding: Holding, now: Moment, out: &mut Vec<Effect>) {
        let (at, query) = holding.next;
        if holding.call.is_none() && now >= at {
            let ask = match query {
                Query::Renew => Ask::Renew(holding.record.clone()),
                Query::Read => Ask::Read,
            };
            // One call that hangs leaves as much time again to hear from the store in.
            let left = self.setup.lease.act_until(holding.sent).since(now);
            let within = if holding.failed { left } else { left.saturating_sub(left / 2) };
            let ticket = self.send(holding.seat, ask, within, out);
            holding.call = Some(Call { ticket, query, sent: now, stale: false });
        }
        self.phase = Phase::Holding(holding);
    }

    fn why_lost(&self, holding: &Holding, holder: Option<&Holder>, now: Moment) -> Loss {
        match holder {
            Some(holder) => Loss::Stolen(holder.record.as_ref().map(|record| record.owner)),
            None if now >= self.setup.lease.expires_at(holding.sent) => Loss::Expired,
            None => Loss::Deleted,
        }
    }

    fn lose(&mut self, holding: &Holding, lost: Moment, why: Loss, out: &mut Vec<Effect>) {
        let killed_by = Some(self.setup.lease.kill_at(holding.sent, Some(lost)));
        self.phase = Phase::Over { killed_by };
        out.push(Effect::Tell(Notice::Lost(why)));
    }

    fn resign(
        &mut self,
        seat: Seat,
        record: Record,
        then: Notice,
        now: Moment,
        out: &mut Vec<Effect>,
    ) {
        let until = now.after(self.setup.lease.duration() / 4);
        let resigning = Resigning { seat, record, asked: None, again: now, until, then };
        self.leave(resigning, &Event::Due, now, out);
    }

    fn leave(&mut self, mut it: Resigning, event: &Event, now: Moment, out: &mut Vec<Effect>) {
        if let Event::Answered(ticket, answer) = event
            && it.asked.take_if(|asked| asked == ticket).is_some()
        {
            if matches!(answer, Answer::Done | Answer::Lost) {
                out.push(Effect::Tell(it.then));
                return;
            }
            it.again = now.after(self.setup.lease.retry());
        }
        if now >= it.until {
            out.push(Effect::Tell(it.then));
            return;
        }
        if it.asked.is_none() && now >= it.again {
            let ask = Ask::Delete(it.record.clone());
            it.asked = Some(self.send(it.seat, ask, it.until.since(now), out));
        }
        self.phase = Phase::Resigning(it);
    }
}
