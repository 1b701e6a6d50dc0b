//! Changes of Leases, each of which names the version that it is about.

use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{ListParams, PostParams};

use super::Leases;
use super::failure::{Changed, Failure, changed};
use super::seen::Known;
use super::stand::{STORE, Stand, all_in_ledger, hex, in_ledger, key_of, put_in_ledger};
use crate::model::{Entry, Generation, Key, Write};

/// What is to become of an entry.
enum Change<'a> {
    Nothing,
    Put { generation: Generation, value: Option<&'a [u8]>, ttl: Option<Duration> },
}

impl Leases {
    pub(super) fn lease_name(&self, key: &Key) -> String {
        format!("{}-{}", self.prefix, hex(key.as_bytes()))
    }

    fn ledger_name(&self) -> String {
        format!("{}-ledger", self.prefix)
    }

    fn recall(&self, name: &str) -> Option<Known> {
        self.sights.lock().unwrap_or_else(PoisonError::into_inner).leases.get(name).cloned()
    }

    fn remember(&self, name: &str, lease: Option<Lease>) {
        let mut sights = self.sights.lock().unwrap_or_else(PoisonError::into_inner);
        sights.leases.insert(name.to_owned(), Known(lease));
    }

    async fn fetch(&self, name: &str) -> Result<Option<Lease>, Failure> {
        let found = self.api.get_opt(name).await?;
        self.remember(name, found.clone());
        Ok(found)
    }

    /// An entry by its Lease, or without one.
    async fn entry(&self, key: &Key, lease: Option<&Lease>) -> Result<Entry, Failure> {
        let Some(lease) = lease else {
            return Ok(Entry { generation: self.floor(key).await?, held: None });
        };
        let stand = Stand::of(lease)?;
        let now = self.clock.now();
        let mut sights = self.sights.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(sights.see(key, &stand, now))
    }

    /// The highest generation of a key whose Lease is not there: somebody may have deleted it.
    async fn floor(&self, key: &Key) -> Result<Generation, Failure> {
        let ledger = self.fetch(&self.ledger_name()).await?;
        let noted = ledger.map(|ledger| in_ledger(&ledger, key)).transpose()?.unwrap_or_default();
        let sights = self.sights.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(noted.max(sights.highest(key)))
    }

    /// Notes a generation where it outlives the Lease of its key. It is not given out before that.
    async fn note(&self, key: &Key, floor: Generation) -> Result<(), Failure> {
        let name = self.ledger_name();
        let mut known = self.recall(&name);
        loop {
            let found = match known.take() {
                Some(Known(found)) => found,
                None => self.fetch(&name).await?,
            };
            if let Some(ledger) = &found
                && in_ledger(ledger, key)? >= floor
            {
                return Ok(());
            }
            let there = found.is_some();
            let mut ledger = found.unwrap_or_default();
            put_in_ledger(&mut ledger, &self.prefix, key, floor);
            if let Changed::Done(_) = self.put(ledger, &name, there).await? {
                return Ok(());
            }
        }
    }

    async fn put(
        &self,
        mut lease: Lease,
        name: &str,
        there: bool,
    ) -> Result<Changed<Lease>, Failure> {
        let how = PostParams::default();
        let put = if there {
            changed(self.api.replace(name, &how, &lease).await, &[409, 404])?
        } else {
            lease.metadata.name = Some(name.to_owned());
            changed(self.api.create(&how, &lease).await, &[409])?
        };
        if let Changed::Done(made) = &put {
            self.remember(name, Some(made.clone()));
        }
        Ok(put)
    }

    /// Changes an entry as `decide` says, unless somebody is faster; then it is decided anew.
    ///
    /// What was last seen is enough to try: a change names the version that it is about. It is not enough to give up.
    async fn change<'a>(
        &self,
        key: &Key,
        decide: impl Fn(&Entry) -> Change<'a> + Send,
    ) -> Result<Write, Failure> {
        let name = self.lease_name(key);
        let mut known = self.recall(&name);
        loop {
            let is_new = known.is_none();
            let found = match known.take() {
                Some(Known(found)) => found,
                None => self.fetch(&name).await?,
            };
            let entry = self.entry(key, found.as_ref()).await?;
            let (generation, value, ttl) = match decide(&entry) {
                Change::Put { generation, value, ttl } => (generation, value, ttl),
                Change::Nothing if is_new => return Ok(Write::Lost),
                Change::Nothing => continue,
            };
            if generation > entry.generation {
                self.note(key, generation).await?;
            }
            let value = value.map(<[u8]>::to_vec);
            let stand = Stand { generation, value, ttl, version: String::new() };
            let there = found.is_some();
            let mut lease = found.unwrap_or_default();
            stand.put(&mut lease, &self.prefix, key);
            if let Changed::Done(made) = self.put(lease, &name, there).await? {
                // It counts from now on as seen.
                self.entry(key, Some(&made)).await?;
                return Ok(Write::Done);
            }
        }
    }

    pub(super) async fn insert(
        &self,
        key: &Key,
        seen: Generation,
        value: &[u8],
        ttl: Option<Duration>,
    ) -> Result<Write, Failure> {
        let decide = |entry: &Entry| {
            if entry.held.is_some() || entry.generation != seen {
                return Change::Nothing;
            }
            Change::Put { generation: seen.next(), value: Some(value), ttl }
        };
        self.change(key, decide).await
    }

    /// Puts something else, or nothing, where exactly `old` stands.
    pub(super) async fn swap(
        &self,
        key: &Key,
        old: &[u8],
        new: Option<&[u8]>,
        ttl: Option<Duration>,
    ) -> Result<Write, Failure> {
        let decide = |entry: &Entry| {
            if entry.held.as_ref().is_none_or(|held| held.value != old) {
                return Change::Nothing;
            }
            Change::Put { generation: entry.generation, value: new, ttl }
        };
        self.change(key, decide).await
    }

    pub(super) async fn look(&self, key: &Key) -> Result<Entry, Failure> {
        let found = self.fetch(&self.lease_name(key)).await?;
        self.entry(key, found.as_ref()).await
    }

    pub(super) async fn look_at_all(&self) -> Result<Vec<(Key, Entry)>, Failure> {
        let ours = ListParams::default().labels(&format!("{STORE}={}", self.prefix));
        let mut all = BTreeMap::new();
        for lease in self.api.list(&ours).await?.items {
            let Some(key) = key_of(&lease) else {
                for (key, generation) in all_in_ledger(&lease)? {
                    let deleted = Entry { generation, held: None };
                    all.entry(key).or_insert(deleted);
                }
                continue;
            };
            all.insert(key.clone(), self.entry(&key, Some(&lease)).await?);
        }
        Ok(all.into_iter().collect())
    }

    /// What stands there stays, and so does its time: nothing of it is written.
    pub(super) async fn lift_generation(
        &self,
        key: &Key,
        floor: Generation,
    ) -> Result<(), Failure> {
        self.note(key, floor).await?;
        let name = self.lease_name(key);
        loop {
            let Some(mut lease) = self.fetch(&name).await? else { return Ok(()) };
            let stand = Stand::of(&lease)?;
            if stand.generation >= floor {
                return Ok(());
            }
            Stand { generation: floor, ..stand }.put(&mut lease, &self.prefix, key);
            if let Changed::Done(_) = self.put(lease, &name, true).await? {
                return Ok(());
            }
        }
    }
}
