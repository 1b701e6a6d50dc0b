use std::time::Duration;

use kapell_store::Bell;
use kapell_store::model::Key;

use super::checks::Violation;
use super::log::What;
use super::world::{Event, World};
use crate::parts::link::{Letter, ReplyTo, failed};

/// What is between hosts and the store: who watches what, and what was never answered.
#[derive(Debug, Default)]
pub(super) struct Post {
    watches: Vec<Option<Watching>>,
    /// Nobody will answer these, and nobody says so.
    limbo: Vec<ReplyTo>,
    letters: u64,
}

#[derive(Debug)]
struct Watching {
    host: usize,
    key: Key,
    bell: Bell,
}

impl Post {
    /// Whose watch rang, if it still stands.
    pub(super) fn ring(&mut self, watch: usize) -> Option<usize> {
        let watching = self.watches.get(watch)?.as_ref()?;
        watching.bell.ring();
        Some(watching.host)
    }

    /// Closes all watches of a host.
    pub(super) fn forget(&mut self, host: usize) {
        for watch in &mut self.watches {
            watch.take_if(|it| it.host == host);
        }
    }

    pub(super) fn forget_all(&mut self) {
        self.watches.fill_with(|| None);
    }
}

impl World {
    /// Puts a letter on its way, or loses it.
    pub(super) fn dispatch(&mut self, host: usize, letter: Letter) {
        let number = self.post.letters;
        self.post.letters += 1;
        self.note(Some(host), What::Sent { letter: number, call: letter.call.name() });
        let from = (host, self.hosts[host].boots);
        let apart = self.now() < self.hosts[host].apart_until;
        if apart || self.chance.permille(self.weather.lost) {
            self.note(Some(host), What::NeverArrived(number));
            let call = letter.call.name();
            self.fail(from, number, call, letter.reply);
            return;
        }
        let wait = self.delay() + self.late(self.weather.latest);
        self.plan_in(wait, Event::Arrive { from, number, letter });
    }

    fn delay(&mut self) -> Duration {
        let (least, most) = self.weather.delay;
        self.chance.between(least, most)
    }

    /// How much later than others a message comes, if it does. Being late is a fault too, and
    /// ends with the others.
    fn late(&mut self, most: Duration) -> Duration {
        if !self.chance.permille(self.weather.late) {
            return Duration::ZERO;
        }
        let left = self.calm.since.saturating_sub(self.now());
        self.chance.between(Duration::ZERO, most).min(left)
    }

    /// The caller hears of an error that says nothing, or does not hear at all.
    fn fail(&mut self, to: (usize, u32), number: u64, call: &'static str, reply: ReplyTo) {
        if self.chance.permille(500) {
            self.post.limbo.push(reply);
        } else {
            let wait = self.delay();
            let answer = Err(failed(call, "the connection broke"));
            self.plan_in(wait, Event::Answer { to, number, reply, answer });
        }
    }

    /// The store does what a letter asks for, whoever may have sent it and however long ago.
    pub(super) fn arrive(
        &mut self,
        from: (usize, u32),
        number: u64,
        letter: Letter,
    ) -> Result<(), Violation> {
        let Letter { call, reply } = letter;
        if self.store_down {
            self.note(Some(from.0), What::Refused(number));
            self.fail(from, number, call.name(), reply);
            return Ok(());
        }
        let applied = self.server.apply(&call, &mut self.checks)?;
        self.note(Some(from.0), What::Applied { letter: number, took: applied.took });
        if let Some(key) = applied.changed {
            self.tell_watches(&key);
        }
        let apart = self.now() < self.hosts[from.0].apart_until;
        if apart || self.chance.permille(self.weather.unanswered) {
            self.note(Some(from.0), What::Unanswered(number));
            self.fail(from, number, call.name(), reply);
            return Ok(());
        }
        if let Some((key, bell)) = applied.bell.filter(|_| self.is_same(from.0, from.1)) {
            self.watch(from.0, key, bell);
        }
        let wait = self.delay() + self.late(self.plan.lease / 2);
        let answer = Ok(applied.reply);
        self.plan_in(wait, Event::Answer { to: from, number, reply, answer });
        Ok(())
    }

    fn watch(&mut self, host: usize, key: Key, bell: Bell) {
        self.post.watches.push(Some(Watching { host, key, bell }));
    }

    fn tell_watches(&mut self, key: &Key) {
        for watch in 0..self.post.watches.len() {
            let Some(it) = &self.post.watches[watch] else { continue };
            let host = &self.hosts[it.host];
            let is_deaf = self.now() < host.deaf_until.max(host.apart_until);
            if it.key == *key && !is_deaf {
                let wait = self.delay();
                self.plan_in(wait, Event::Ring(watch));
            }
        }
    }
}
