use std::time::Duration;

use async_trait::async_trait;
use kapell_core::seams::Moment;
use tokio::time::Instant;

use super::Fault;
use super::faulty::{Faulty, Slot, Standing, State};
use crate::check;
use crate::error::Error;
use crate::model::{Entry, Expiry, Generation, Held, Key, Write};
use crate::store::Ttl;
use crate::watch::{Bell, Watch};

impl Faulty {
    fn name(&self, key: &Key) -> Key {
        if self.is(Fault::KeysAreText) {
            return Key::new(String::from_utf8_lossy(key.as_bytes()).into_owned().into_bytes());
        }
        key.clone()
    }

    fn check(&self, key: &Key, value: &[u8]) -> Result<(), Error> {
        let unchecked = [Fault::NoLimits, Fault::RefusesAfterWriting];
        if unchecked.iter().any(|fault| self.is(*fault)) {
            Ok(())
        } else {
            check::entry(key, value)
        }
    }

    fn checked_late(&self, key: &Key, value: &[u8], done: bool) -> Result<Write, Error> {
        if self.is(Fault::RefusesAfterWriting) {
            check::entry(key, value)?;
        }
        Ok(Write::of(done))
    }

    fn standing<'a>(&self, state: &'a State, key: &Key, blind: Fault) -> Option<&'a Standing> {
        let now = self.now();
        let cleaned = self.is(Fault::CleanerUsesFirstDeadline)
            && state.deadlines.iter().any(|(each, at)| each == key && *at <= now);
        let standing = state.slots.get(key)?.standing.as_ref()?;
        let lives = standing.until.is_none_or(|until| now < until);
        (!cleaned && (lives || self.is(blind))).then_some(standing)
    }

    fn generation(&self, state: &State, key: &Key) -> u64 {
        let slot = state.slots.get(key);
        let gone = slot.is_some_and(|slot| {
            let until = slot.standing.as_ref().and_then(|standing| standing.until);
            until.is_some_and(|until| until <= self.now())
        });
        if gone && self.is(Fault::ExpiryResetsGeneration) {
            return 0;
        }
        slot.map_or(0, |slot| slot.generation)
    }

    fn set(&self, state: &mut State, key: &Key, generation: u64, standing: Option<Standing>) {
        if let Some(until) = standing.as_ref().and_then(|standing| standing.until) {
            state.deadlines.push((key.clone(), until));
        }
        let deleted = standing.is_none();
        let former = state.slots.insert(key.clone(), Slot { generation, standing });
        state.former.insert(key.clone(), former.unwrap_or_default());
        if deleted && self.is(Fault::WatchMissesDeletes) {
            return;
        }
        let bells = state.bells.entry(key.clone()).or_default();
        bells.retain(|(bell, _)| bell.is_heard());
        let most = if self.is(Fault::WatchTellsOne) { 1 } else { usize::MAX };
        for (bell, _) in bells.iter().filter(|(_, from)| *from <= Instant::now()).take(most) {
            bell.ring();
        }
    }

    fn begin(&self, value: &[u8], ttl: Option<Duration>, from: Moment) -> Standing {
        let short = Duration::from_millis(600);
        let ttl = if self.is(Fault::NoTtlIsShort) { ttl.or(Some(short)) } else { ttl };
        let lives = |ttl: Duration| match self.shared.fault {
            Some(Fault::GoesEarly) => ttl * 4 / 5,
            Some(Fault::GoesLate) => ttl + Duration::from_millis(400),
            _ => ttl,
        };
        let length =
            if self.is(Fault::ValuesAreCut) { value.len().min(60_000) } else { value.len() };
        let value = value[..length].to_vec();
        Standing { value, ttl, until: ttl.map(|ttl| from.after(lives(ttl))) }
    }

    fn entry(&self, state: &State, key: &Key) -> Entry {
        let standing = self.standing(state, key, Fault::ReadIgnoresExpiry);
        let standing =
            standing.filter(|it| !(it.value.is_empty() && self.is(Fault::EmptyIsAbsent)));
        let held = standing.map(|standing| Held {
            value: standing.value.clone(),
            remaining: match self.shared.fault {
                Some(Fault::RemainingIsTtl) => standing.ttl,
                Some(Fault::RemainingIsUntold) => None,
                _ => standing.until.map(|until| until.since(self.now())),
            },
        });
        Entry { generation: Generation(self.generation(state, key)), held }
    }

    fn swapped(&self, state: &State, key: &Key, new: &[u8], ttl: Option<Duration>) -> Standing {
        let former = state.slots.get(key).and_then(|slot| slot.standing.as_ref());
        let mut next = self.begin(new, ttl, self.now());
        let Some(former) = former else { return next };
        let keeps = match self.shared.fault {
            Some(Fault::SwapKeepsTtl) => true,
            Some(Fault::SwapKeepsLongerTtl) => former.until > next.until && next.until.is_some(),
            Some(Fault::SwapKeepsNoTtl) => former.until.is_none(),
            _ => false,
        };
        if keeps {
            (next.until, next.ttl) = (former.until, former.ttl);
        }
        next
    }
}

#[async_trait]
impl Ttl for Faulty {
    fn expiry(&self) -> Expiry {
        Expiry { shortest: Duration::from_millis(1), lag: Duration::ZERO }
    }

    async fn prepare(&self, ttl: Duration) -> Result<(), Error> {
        let now = self.now();
        self.prepared().entry(ttl).or_default().push(now);
        Ok(())
    }

    async fn insert_if_absent(
        &self,
        key: &Key,
        seen: Generation,
        value: &[u8],
        ttl: Option<Duration>,
    ) -> Result<Write, Error> {
        self.check(key, value)?;
        let name = &self.name(key);
        let decide = |state: &State| {
            let standing = self.standing(state, name, Fault::InsertIgnoresExpiry);
            let absent = standing.is_none()
                || (self.is(Fault::EqualInsertWins)
                    && standing.is_some_and(|it| it.value == value));
            let current = self.generation(state, name) == seen.0;
            absent && (current || self.is(Fault::InsertIgnoresGeneration))
        };
        let write = |state: &mut State| {
            let prepared = ttl.and_then(|ttl| self.prepared().get_mut(&ttl).and_then(Vec::pop));
            let prepared = prepared.filter(|_| self.is(Fault::PreparedClockRuns));
            let standing = self.begin(value, ttl, prepared.unwrap_or_else(|| self.now()));
            let generation = self.generation(state, name) + 1;
            self.set(state, name, generation, Some(standing));
        };
        let done = self.write(self.is(Fault::TwoStepInsert), decide, write).await;
        if !done && self.is(Fault::LostInsertRenews) {
            let until = ttl.map(|ttl| self.now().after(ttl));
            if let Some(slot) = self.state().slots.get_mut(name)
                && let Some(standing) = &mut slot.standing
            {
                standing.until = until;
            }
        }
        self.checked_late(key, value, done)
    }

    async fn compare_and_swap(
        &self,
        key: &Key,
        old: &[u8],
        new: &[u8],
        ttl: Option<Duration>,
    ) -> Result<Write, Error> {
        self.check(key, new)?;
        let name = &self.name(key);
        let decide = |state: &State| {
            let standing = self.standing(state, name, Fault::SwapIgnoresExpiry);
            let Some(standing) = standing else { return self.is(Fault::SwapInserts) };
            standing.value == old
                || self.is(Fault::SwapIgnoresValue)
                || (self.is(Fault::SwapComparesBeginning) && standing.value.starts_with(old))
        };
        let write = |state: &mut State| {
            let standing = self.swapped(state, name, new, ttl);
            let counts = u64::from(self.is(Fault::SwapCountsGeneration));
            let generation = self.generation(state, name) + counts;
            self.set(state, name, generation, Some(standing));
        };
        let done = self.write(self.is(Fault::TwoStepSwap), decide, write).await;
        self.checked_late(key, new, done)
    }

    async fn compare_and_delete(&self, key: &Key, old: &[u8]) -> Result<Write, Error> {
        let name = &self.name(key);
        let decide = |state: &State| {
            let standing = self.standing(state, name, Fault::DeleteIgnoresExpiry);
            standing.is_some_and(|it| it.value == old || self.is(Fault::DeleteIgnoresValue))
        };
        let write = |state: &mut State| {
            let resets = self.is(Fault::DeleteResetsGeneration);
            let generation = if resets { 0 } else { self.generation(state, name) };
            self.set(state, name, generation, None);
        };
        Ok(Write::of(self.write(self.is(Fault::TwoStepDelete), decide, write).await))
    }

    async fn read(&self, key: &Key) -> Result<Entry, Error> {
        let (state, name) = (self.state(), self.name(key));
        if self.is(Fault::StaleReads)
            && let Some(former) = state.former.get(&name)
        {
            let held = former.standing.as_ref();
            let held = held.map(|it| Held { value: it.value.clone(), remaining: it.ttl });
            return Ok(Entry { generation: Generation(former.generation), held });
        }
        Ok(self.entry(&state, &name))
    }

    async fn list(&self) -> Result<Vec<(Key, Entry)>, Error> {
        let state = self.state();
        let all = state.slots.keys().map(|key| (key.clone(), self.entry(&state, key)));
        let stands = |entry: &Entry| entry.held.is_some() || !self.is(Fault::ListsWhatStands);
        let mut all: Vec<_> = all.filter(|(_, entry)| stands(entry)).collect();
        if self.is(Fault::ListsBackwards) {
            all.reverse();
        }
        Ok(all)
    }

    async fn lift(&self, key: &Key, floor: Generation) -> Result<(), Error> {
        let (mut state, name) = (self.state(), self.name(key));
        let slot = state.slots.entry(name).or_default();
        let lowers = self.is(Fault::LiftLowers);
        slot.generation = if lowers { floor.0 } else { slot.generation.max(floor.0) };
        if self.is(Fault::LiftDrops) {
            slot.standing = None;
        }
        Ok(())
    }

    async fn watch(&self, key: &Key) -> Result<Watch, Error> {
        let bell = Bell::new();
        let watch = bell.watch();
        let late = Duration::from_millis(if self.is(Fault::WatchBeginsLate) { 6 } else { 0 });
        let (mut state, name) = (self.state(), self.name(key));
        state.bells.entry(name).or_default().push((bell, Instant::now() + late));
        Ok(watch)
    }
}
