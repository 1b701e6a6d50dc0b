//! Entries with a time to live: an entry stands on a lease of its own.
//!
//! A time to live counts from when the call was made, so a lease must be granted or kept alive
//! after that. Both go to the server's memory of leases and not through a transaction; each
//! function here says why the two together are one step.

use std::time::Duration;

use etcd_client::{Compare, CompareOp, DeleteOptions, PutOptions, Txn, TxnOp, TxnOpResponse};
use etcd_client::{GetOptions, KeyValue, TxnResponse};
use futures_util::future::{join, try_join, try_join_all};

use super::ears::Seen;
use super::failure::Failure;
use super::leases::{Lease, LeaseId, Pulse, Seconds, Spare};
use super::paths::{behind, end_of};
use super::{Etcd, absent, found_by, holds, revision_of};
use crate::model::{Entry, Generation, Held, Key, Write};

/// Pages of `list`: entries are up to 64 KiB, keys up to 1 KiB.
const ENTRIES_A_PAGE: i64 = 100;
const GENERATIONS_A_PAGE: i64 = 1000;
const LOOKUPS_AT_ONCE: usize = 16;

impl Etcd {
    pub(super) async fn grant_ahead(&self, ttl: Seconds) -> Result<(), Failure> {
        let now = self.clock.now();
        if let Some(mut spare) = self.leases.take_any(ttl) {
            if spare.is_young(ttl, now) {
                self.leases.keep(ttl, spare);
                return Ok(());
            }
            if self.link.keep_alive(&mut spare.lease).await? == Pulse::Beats {
                self.leases.keep(ttl, Spare { since: now, ..spare });
                return Ok(());
            }
        }
        let mut lease = Lease::new(self.link.grant(ttl).await?.0);
        // Not for its time, which is full, but to have the stream.
        self.link.keep_alive(&mut lease).await?;
        self.leases.keep(ttl, Spare { lease, since: now });
        Ok(())
    }

    pub(super) async fn insert(
        &self,
        key: &Key,
        seen: Generation,
        value: &[u8],
        ttl: Option<Seconds>,
    ) -> Result<Write, Failure> {
        let Some(ttl) = ttl else {
            let answer = self.link.txn(self.insertion(key, seen, value, LeaseId::NONE)).await?;
            if answer.succeeded() {
                self.leases.forget(key);
            }
            return Ok(Write::of(answer.succeeded()));
        };
        let now = self.clock.now();
        if let Some(spare) = self.leases.take_young(ttl, now)
            && let Some(write) = self.insert_on(spare, key, seen, value, ttl).await?
        {
            return Ok(write);
        }
        let (id, _) = self.link.grant(ttl).await?;
        let answer = self.link.txn(self.insertion(key, seen, value, id)).await?;
        if answer.succeeded() {
            self.leases.stands(key, ttl, Lease::new(id));
        } else {
            self.leases.keep(ttl, Spare { lease: Lease::new(id), since: now });
        }
        Ok(Write::of(answer.succeeded()))
    }

    /// Inserts on a lease that was granted earlier, and gives that lease its full time at the
    /// same moment. Nothing if the lease was gone and so nothing was inserted.
    ///
    /// The entry is in place for its full time only if both succeeded, in whatever order: until
    /// the entry leaves the lease, keeping the lease alive keeps the entry.
    async fn insert_on(
        &self,
        Spare { mut lease, .. }: Spare,
        key: &Key,
        seen: Generation,
        value: &[u8],
        ttl: Seconds,
    ) -> Result<Option<Write>, Failure> {
        let now = self.clock.now();
        let insertion = self.link.txn(self.insertion(key, seen, value, lease.id));
        let (answer, pulse) = join(insertion, self.link.keep_alive(&mut lease)).await;
        let is_in = match answer {
            Err(failure) if failure.is_lease_gone() => return Ok(None),
            answer => answer?.succeeded(),
        };
        let is_alive = matches!(pulse, Ok(Pulse::Beats));
        match (is_in, is_alive) {
            (true, true) => self.leases.stands(key, ttl, lease),
            (true, false) => self.put_on_new_lease(key, value, ttl, lease.id).await?,
            (false, true) => self.leases.keep(ttl, Spare { lease, since: now }),
            (false, false) => self.leases.discard(lease.id),
        }
        Ok(Some(Write::of(is_in)))
    }

    /// Moves an entry that was just inserted off a lease with an unknown time left.
    pub(super) async fn put_on_new_lease(
        &self,
        key: &Key,
        value: &[u8],
        ttl: Seconds,
        from: LeaseId,
    ) -> Result<(), Failure> {
        let path = self.paths.entry(key);
        let (to, _) = self.link.grant(ttl).await?;
        let txn = Txn::new()
            .when([holds(&path, value), on_lease(&path, from)])
            .and_then([put(path, value, to)]);
        if self.link.txn(txn).await?.succeeded() {
            self.leases.discard(from);
            self.leases.stands(key, ttl, Lease::new(to));
            return Ok(());
        }
        self.leases.discard(to);
        if self.link.time_left(from).await?.is_some_and(|left| !left.is_zero()) {
            // Its time was not over: another has taken it away or put something else in its place, which anybody may do
            // once it is there.
            self.leases.discard(from);
            return Ok(());
        }
        // It was in place and is gone: neither "done" nor "nothing changed" would be true.
        Err(Failure::odd("the entry went before its time to live was confirmed"))
    }

    pub(super) fn insertion(
        &self,
        key: &Key,
        seen: Generation,
        value: &[u8],
        lease: LeaseId,
    ) -> Txn {
        let (entry, generation) = (self.paths.entry(key), self.paths.generation(key));
        Txn::new().when([absent(&entry), is_generation(&generation, seen)]).and_then([
            put(entry, value, lease),
            put(generation, &generation_bytes(seen.next()), LeaseId::NONE),
        ])
    }

    pub(super) async fn swap(
        &self,
        key: &Key,
        old: &[u8],
        new: &[u8],
        ttl: Option<Seconds>,
    ) -> Result<Write, Failure> {
        if let Some(ttl) = ttl
            && old == new
            && let Some(lease) = self.leases.borrow(key, ttl)
            && let Some(write) = self.renew(key, old, lease).await?
        {
            return Ok(write);
        }
        let now = self.clock.now();
        let lease = match ttl {
            Some(ttl) => self.link.grant(ttl).await?.0,
            None => LeaseId::NONE,
        };
        let path = self.paths.entry(key);
        let options = PutOptions::new().with_lease(lease.0).with_prev_key();
        let txn =
            Txn::new().when([holds(&path, old)]).and_then([TxnOp::put(path, new, Some(options))]);
        let answer = self.link.txn(txn).await?;
        if answer.succeeded() {
            let left = lease_left(&answer);
            let was_ours = self.leases.is_ours(key, left);
            match ttl {
                Some(ttl) => self.leases.stands(key, ttl, Lease::new(lease)),
                None => self.leases.forget(key),
            }
            self.leave(left, was_ours).await?;
        } else if let Some(ttl) = ttl {
            self.leases.keep(ttl, Spare { lease: Lease::new(lease), since: now });
        }
        Ok(Write::of(answer.succeeded()))
    }

    /// Renews without a write: keeps the lease alive and looks whether the entry stands on it.
    /// Nothing if only a swap can tell.
    ///
    /// As good as one step: the read is linearizable, so at some moment of this call the entry
    /// stood there with `old`. It had been on this lease since it was put there, because a lease
    /// is put under an entry once, and leaves it only by a later write. If the keep-alive came
    /// before that moment, the entry had its full time then; if after, then the entry did not
    /// run out in between, or the lease would have been gone. Either way the outcome is that
    /// of a swap at the moment of the read.
    async fn renew(
        &self,
        key: &Key,
        old: &[u8],
        mut lease: Lease,
    ) -> Result<Option<Write>, Failure> {
        if self.is_kept_unseen(old, &mut lease).await {
            self.leases.give_back(key, lease);
            return Ok(Some(Write::Done));
        }
        let path = self.paths.entry(key);
        // What was heard until now is in the look.
        let mark = self.ears.mark(key, self.link.member());
        let look = self.link.get(&path, GetOptions::new());
        let (found, pulse) = join(look, self.link.keep_alive(&mut lease)).await;
        let standing = found?.take_kvs().pop();
        let is_old = standing.as_ref().is_some_and(|kv| kv.value() == old);
        if standing.is_none_or(|kv| kv.lease() != lease.id.0) {
            self.leases.forget(key);
            self.leases.discard(lease.id);
            return Ok(if is_old { None } else { Some(Write::Lost) });
        }
        let is_alive = !is_old || pulse? == Pulse::Beats;
        lease.seen = mark.filter(|_| is_old && is_alive).map(|mark| Seen::new(old, mark));
        self.leases.give_back(key, lease);
        Ok(is_alive.then_some(Write::of(is_old)))
    }

    /// Renews by the keep-alive alone, if a watch of ours would have told that somebody has changed the entry since the
    /// last look, and has not.
    ///
    /// Whoever takes an entry off a lease that is not its own has that lease revoked before it says so: that this one is
    /// alive means that nobody was told of any change. The watch is for those who do not keep to that, and for changes
    /// that nobody has been told of yet.
    async fn is_kept_unseen(&self, old: &[u8], lease: &mut Lease) -> bool {
        let Some(seen) = lease.seen.take() else { return false };
        let member = self.link.member();
        if !seen.stands(old, member) || self.link.beat(lease).await != Some(Pulse::Beats) {
            return false;
        }
        let stands = seen.stands(old, member);
        lease.seen = Some(seen);
        stands
    }

    pub(super) async fn delete(&self, key: &Key, old: &[u8]) -> Result<Write, Failure> {
        let path = self.paths.entry(key);
        let options = DeleteOptions::new().with_prev_key();
        let txn =
            Txn::new().when([holds(&path, old)]).and_then([TxnOp::delete(path, Some(options))]);
        let answer = self.link.txn(txn).await?;
        if answer.succeeded() {
            let left = lease_left(&answer);
            let was_ours = self.leases.is_ours(key, left);
            self.leases.forget(key);
            self.leave(left, was_ours).await?;
        }
        Ok(Write::of(answer.succeeded()))
    }

    /// Ends a lease that an entry was taken from. Another client may renew by nothing but its lease, so it has to be gone
    /// before anyone is told; what this one knows itself it need not wait for.
    async fn leave(&self, lease: LeaseId, was_ours: bool) -> Result<(), Failure> {
        if was_ours {
            self.leases.discard(lease);
            return Ok(());
        }
        self.leases.revoke(lease).await
    }

    pub(super) async fn look(&self, key: &Key) -> Result<Entry, Failure> {
        let (entry, generation) = (self.paths.entry(key), self.paths.generation(key));
        let mut over = None;
        loop {
            let mut found = self.link.get(&entry, GetOptions::new()).await?;
            let then = GetOptions::new().with_revision(revision_of(&found));
            let standing = found.take_kvs().pop();
            let lease = standing.as_ref().map_or(LeaseId::NONE, |kv| LeaseId(kv.lease()));
            let (generation, remaining) =
                try_join(self.link.get(&generation, then), self.time_left(lease)).await?;
            // A lease that ended may have been replaced; one that was found twice was not, and
            // the entry is only waiting to be cleared away.
            if remaining == Some(Duration::ZERO) && over.replace(lease) != Some(lease) {
                continue;
            }
            let generation = parse_generation(generation.kvs().first())?;
            let held = standing.map(|kv| Held { value: kv.into_key_value().1, remaining });
            return Ok(Entry { generation, held });
        }
    }

    /// What is left of an entry on this lease; zero if that has run out.
    ///
    /// etcd cuts off to whole seconds, as of a moment after the caller asked. So from the
    /// moment of asking on it is at least this long, and less than a second longer.
    async fn time_left(&self, lease: LeaseId) -> Result<Option<Duration>, Failure> {
        if lease == LeaseId::NONE {
            return Ok(None);
        }
        Ok(Some(self.link.time_left(lease).await?.unwrap_or(Duration::ZERO)))
    }

    pub(super) async fn all_entries(&self) -> Result<Vec<(Key, Entry)>, Failure> {
        let mut revision = 0;
        let generations = self.range(&self.paths.generations, GENERATIONS_A_PAGE, &mut revision);
        let generations = generations.await?;
        let standing = self.range(&self.paths.entries, ENTRIES_A_PAGE, &mut revision).await?;

        let mut left = Vec::with_capacity(standing.len());
        for some in standing.chunks(LOOKUPS_AT_ONCE) {
            let lookups = some.iter().map(|kv| self.time_left(LeaseId(kv.lease())));
            left.extend(try_join_all(lookups).await?);
        }
        let mut standing = standing.into_iter().zip(left).peekable();
        let mut all = Vec::with_capacity(generations.len());
        for kv in generations {
            let name = &kv.key()[self.paths.generations.len()..];
            let here = |kv: &KeyValue| &kv.key()[self.paths.entries.len()..] == name;
            let held = standing
                .next_if(|(kv, _)| here(kv))
                .map(|(kv, remaining)| Held { value: kv.into_key_value().1, remaining });
            let generation = parse_generation(Some(&kv))?;
            all.push((Key::new(name), Entry { generation, held }));
        }
        Ok(all)
    }

    /// Everything below a prefix, in order. With a revision of zero it is what stands now,
    /// and the revision is set; otherwise it is what stood then.
    async fn range(
        &self,
        prefix: &[u8],
        limit: i64,
        revision: &mut i64,
    ) -> Result<Vec<KeyValue>, Failure> {
        let end = end_of(prefix);
        let mut all = Vec::new();
        let mut from = prefix.to_vec();
        loop {
            let options = GetOptions::new()
                .with_range(end.clone())
                .with_limit(limit)
                .with_revision(*revision);
            let mut page = self.link.get(&from, options).await?;
            if *revision == 0 {
                *revision = revision_of(&page);
            }
            all.append(&mut page.take_kvs());
            match all.last() {
                Some(last) if page.more() => from = behind(last.key()),
                Some(_) | None => return Ok(all),
            }
        }
    }

    pub(super) async fn lift_generation(
        &self,
        key: &Key,
        floor: Generation,
    ) -> Result<(), Failure> {
        let path = self.paths.generation(key);
        let mut standing = self.link.get(&path, GetOptions::new()).await?.take_kvs().pop();
        loop {
            let seen = parse_generation(standing.as_ref())?;
            if seen >= floor {
                return Ok(());
            }
            let txn = Txn::new()
                .when([is_generation(&path, seen)])
                .and_then([put(path.clone(), &generation_bytes(floor), LeaseId::NONE)])
                .or_else([TxnOp::get(path.clone(), None)]);
            let answer = self.link.txn(txn).await?;
            if answer.succeeded() {
                return Ok(());
            }
            standing = found_by(&answer).pop().flatten();
        }
    }
}

fn put(path: Vec<u8>, value: &[u8], lease: LeaseId) -> TxnOp {
    TxnOp::put(path, value, Some(PutOptions::new().with_lease(lease.0)))
}

fn on_lease(path: &[u8], lease: LeaseId) -> Compare {
    Compare::lease(path, CompareOp::Equal, lease.0)
}

/// The lease that an entry stood on before this write.
fn lease_left(answer: &TxnResponse) -> LeaseId {
    let before = answer.op_responses().into_iter().next().and_then(|answer| match answer {
        TxnOpResponse::Put(mut put) => put.take_prev_key(),
        TxnOpResponse::Delete(mut delete) => delete.take_prev_kvs().pop(),
        TxnOpResponse::Get(_) | TxnOpResponse::Txn(_) => None,
    });
    before.map_or(LeaseId::NONE, |kv| LeaseId(kv.lease()))
}

fn generation_bytes(generation: Generation) -> [u8; 8] {
    generation.0.to_be_bytes()
}

fn is_generation(path: &[u8], seen: Generation) -> Compare {
    if seen == Generation::default() { absent(path) } else { holds(path, &generation_bytes(seen)) }
}

fn parse_generation(kv: Option<&KeyValue>) -> Result<Generation, Failure> {
    let Some(kv) = kv else { return Ok(Generation::default()) };
    let bytes = kv
        .value()
        .try_into()
        .map_err(|_| Failure::odd(format!("a generation of {} bytes", kv.value().len())))?;
    Ok(Generation(u64::from_be_bytes(bytes)))
}
