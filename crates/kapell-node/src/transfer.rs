//! Moving all that a store holds: into a file, out of one, or into another store.

use std::collections::{BTreeSet, VecDeque};
use std::fs::File;
use std::io::{BufReader, BufWriter, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kapell_core::causes::chain;
use kapell_core::seams::{Clock, Ids};
use kapell_core::seat::{Record, Seat};
use kapell_store::archive::{ArchiveReader, ArchiveWriter, Batch, Head};
use kapell_store::model::{Commit, Entry, Fence, Generation, Item, Limits, Op, Raise, Shard};
use kapell_store::{Error as StoreError, Store, keys};

use crate::conductor::NoKiller;
use crate::elections::{Elections as _, Leased, Parts, Refusal, Tenure};

/// How far above those of the source the epochs of a target begin: more than the source can
/// have given out since it was read.
const EPOCH_GAP: u64 = 1 << 32;
/// How often a shard that changes while it is read is read again.
const READINGS: usize = 20;
const LEASE: Duration = Duration::from_secs(20);
/// Longer than a lease: one that was killed in the middle leaves its seats until they run out.
const WINDOW: Duration = Duration::from_secs(30);
/// How often something that failed but may pass is sent, and how long it is waited in between.
const TRIES: usize = 20;
const PAUSE: Duration = Duration::from_millis(50);
/// Where a seat's holder would be reached if it were a host.
const ADDRESS: &str = "kapell store";

/// Why nothing, or not everything, was moved.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("cannot write the backup")]
    Write(#[source] std::io::Error),
    #[error("cannot read `{}`", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error(
        "shard {0} changed during each of {READINGS} readings: stop the host that writes to it"
    )]
    Restless(Shard),
    #[error("seat {seat} of {store} is held by {owner} at {address}: stop that host first")]
    Led { store: String, seat: Seat, owner: String, address: String },
    #[error(
        "a restore into {store} has not ended, so what it holds is not whole: run that one again"
    )]
    Unfinished { store: String },
    #[error("{store} is what it would be copied from")]
    SameStore { store: String },
    #[error("{store} holds records already: give --replace to put others in their place")]
    NotEmpty { store: String },
    #[error("seat {seat} of {store} could not be taken")]
    NotTaken {
        store: String,
        seat: Seat,
        #[source]
        source: Refusal,
    },
    #[error("seat {0} was taken over by another host: the target is not complete, run this again")]
    Deposed(Seat),
}

/// What was moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Moved {
    pub records: u64,
    pub seats: usize,
}

/// Where time and names come from.
#[derive(Debug, Clone)]
pub struct Seams {
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn Ids>,
}

/// What is to become of what a target holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Leave {
    /// Its records may go.
    pub replace: bool,
    /// Nobody else has it open, so whoever stands in its seats is gone.
    pub alone: bool,
}

/// Writes all of a store to a file. The file is a backup only once this has returned.
pub async fn backup(from: &dyn Store, to: File) -> Result<Moved, Error> {
    let mut source = Live::begin(from).await?;
    let head = source.head.clone();
    let mut writer = ArchiveWriter::begin(BufWriter::new(to), &head).map_err(Error::Write)?;
    while let Some(batch) = source.next().await? {
        writer.put(&batch).map_err(Error::Write)?;
    }
    let (file, records) = writer.finish().map_err(Error::Write)?;
    let file = file.into_inner().map_err(|error| Error::Write(error.into_error()))?;
    file.sync_all().map_err(Error::Write)?;
    Ok(Moved { records, seats: seats(&head).count() })
}

fn open(path: &Path) -> Result<ArchiveReader<BufReader<File>>, Error> {
    let file = File::open(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
    Ok(ArchiveReader::begin(BufReader::with_capacity(1 << 20, file), path.to_owned())?)
}

/// Reads a backup to its end and keeps nothing of it: an error if it is not whole.
pub fn check(path: &Path) -> Result<(), Error> {
    let mut reader = open(path)?;
    while reader.next_batch()?.is_some() {}
    Ok(())
}

/// Puts a backup into a store, in place of what is there if `leave` says so.
pub async fn restore(
    path: &Path,
    to: &Arc<dyn Store>,
    leave: Leave,
    seams: &Seams,
) -> Result<Moved, Error> {
    // Half a backup is worse than none.
    check(path)?;
    let reader = open(path)?;
    let target = Target::begin(to, reader.head(), leave, seams, None).await?;
    target.fill(Source::Archive(reader)).await
}

/// Puts all of a store into another one.
pub async fn copy(
    from: &dyn Store,
    to: &Arc<dyn Store>,
    leave: Leave,
    seams: &Seams,
) -> Result<Moved, Error> {
    let source = Live::begin(from).await?;
    let target = Target::begin(to, &source.head, leave, seams, Some(from)).await?;
    target.fill(Source::Live(source)).await
}

fn seats(head: &Head) -> impl Iterator<Item = (Seat, Generation)> {
    head.generations.iter().filter_map(|(key, generation)| Some((keys::seat_of(key)?, *generation)))
}

/// Where records come from.
enum Source<'a> {
    Live(Live<'a>),
    Archive(ArchiveReader<BufReader<File>>),
}

impl Source<'_> {
    async fn next(&mut self) -> Result<Option<Batch>, Error> {
        match self {
            Self::Live(live) => live.next().await,
            Self::Archive(reader) => Ok(reader.next_batch()?),
        }
    }
}

/// Reads a store shard by shard, each as it was at one moment.
struct Live<'a> {
    store: &'a dyn Store,
    head: Head,
    shards: VecDeque<Shard>,
}

impl<'a> Live<'a> {
    async fn begin(store: &'a dyn Store) -> Result<Self, Error> {
        let mark = keys::unfinished();
        if again(|| store.read(&mark)).await?.held.is_some() {
            return Err(Error::Unfinished { store: store.name().to_owned() });
        }
        let entries = again(|| store.list()).await?;
        let generations = entries.into_iter().map(|(key, entry)| (key, entry.generation));
        let head = Head { generations: generations.collect() };
        let shards = seats(&head).flat_map(|(seat, _)| Shard::all(seat)).collect();
        Ok(Self { store, head, shards })
    }

    async fn next(&mut self) -> Result<Option<Batch>, Error> {
        let Some(shard) = self.shards.pop_front() else { return Ok(None) };
        for _ in 0..READINGS {
            let before = again(|| self.store.fence(shard)).await?;
            let items = read_all(self.store, shard).await?;
            if again(|| self.store.fence(shard)).await? == before {
                return Ok(Some(Batch { shard, items }));
            }
        }
        Err(Error::Restless(shard))
    }
}

async fn read_all(store: &dyn Store, shard: Shard) -> Result<Vec<Item>, StoreError> {
    let (mut items, mut after) = (Vec::new(), None);
    loop {
        let page = again(|| store.scan(shard, after.as_ref())).await?;
        items.extend(page.items);
        after = page.next;
        if after.is_none() {
            return Ok(items);
        }
    }
}

/// A store that is being filled, its seats held meanwhile so that nobody leads on half of it.
struct Target {
    store: Arc<dyn Store>,
    elections: Leased,
    seats: Vec<(Tenure, Vec<Fence>)>,
    /// What stands in the store until it is filled. No two have the same.
    mark: Vec<u8>,
    moved: Moved,
}

impl Target {
    /// Takes the seats, and only then looks and marks: whoever else fills this store waits.
    /// What is refused is left as it was.
    async fn begin(
        store: &Arc<dyn Store>,
        head: &Head,
        leave: Leave,
        seams: &Seams,
        source: Option<&dyn Store>,
    ) -> Result<Self, Error> {
        let elections = Leased::new(Parts {
            store: Arc::clone(store),
            clock: Arc::clone(&seams.clock),
            ids: Arc::clone(&seams.ids),
            killer: Arc::new(NoKiller),
            lease: LEASE,
            address: ADDRESS.to_owned(),
        });
        let mark = format!("restore {:016x}", seams.ids.draw()).into_bytes();
        let mut target = Self {
            store: Arc::clone(store),
            elections,
            seats: Vec::new(),
            mark,
            moved: Moved::default(),
        };
        if let Err(refused) = target.claim(head, leave, source).await {
            target.elections.cleanup().await;
            return Err(refused);
        }
        match target.clear(head).await {
            Ok(()) => Ok(target),
            Err(error) => Err(target.give_up(error).await),
        }
    }

    async fn claim(
        &mut self,
        head: &Head,
        leave: Leave,
        source: Option<&dyn Store>,
    ) -> Result<(), Error> {
        let store = Arc::clone(&self.store);
        let entries = again(|| store.list()).await?;
        for (key, entry) in &entries {
            let Some((seat, standing)) = keys::seat_of(key).zip(entry.held.as_ref()) else {
                continue;
            };
            if leave.alone {
                let _gone = again(|| store.compare_and_delete(key, &standing.value)).await?;
                continue;
            }
            // One of us may have been killed: its seat is waited for.
            let host = Record::decode(&standing.value).filter(|record| record.address != ADDRESS);
            if let Some(record) = host {
                let (store, owner) = (store.name().to_owned(), record.owner.to_string());
                return Err(Error::Led { store, seat, owner, address: record.address });
            }
        }
        // Before a seat is taken, because that counts; and again when nobody else can come in.
        self.may_fill(leave).await?;
        let known = entries.iter().filter_map(|(key, _)| keys::seat_of(key));
        // Seats that only the target knows have records too, and those go.
        let all: BTreeSet<Seat> = seats(head).map(|(seat, _)| seat).chain(known).collect();
        for seat in all {
            let taken = self.elections.acquire(&[seat], Some(WINDOW)).await;
            let name = || store.name().to_owned();
            let tenure = taken.map_err(|source| Error::NotTaken { store: name(), seat, source })?;
            self.seats.push((tenure, Vec::new()));
        }
        let former = self.may_fill(leave).await?;
        if !again(|| self.put_mark(&former)).await? {
            return Err(Error::Deposed(Seat::FIRST));
        }
        // By whatever names the two go: what was written here is not to be read there.
        let Some(source) = source else { return Ok(()) };
        let key = keys::unfinished();
        let seen = again(|| source.read(&key)).await?.held;
        if seen.is_some_and(|held| held.value == self.mark) {
            self.take_mark().await?;
            return Err(Error::SameStore { store: store.name().to_owned() });
        }
        Ok(())
    }

    /// Puts the mark where `former` stood; false if somebody else was faster. May be sent again.
    async fn put_mark(&self, former: &Entry) -> Result<bool, StoreError> {
        let (store, key, mark) = (&self.store, keys::unfinished(), &self.mark);
        let marked = match &former.held {
            Some(standing) => store.compare_and_swap(&key, &standing.value, mark, None).await?,
            None => store.insert_if_absent(&key, former.generation, mark, None).await?,
        };
        if marked.is_done() {
            return Ok(true);
        }
        // An earlier attempt of ours may have landed.
        Ok(store.read(&key).await?.held.is_some_and(|held| held.value == *mark))
    }

    /// Nobody else has this mark: if it is not there, it is gone.
    async fn take_mark(&self) -> Result<(), StoreError> {
        let key = keys::unfinished();
        again(|| self.store.compare_and_delete(&key, &self.mark)).await.map(drop)
    }

    /// Whether what is there may go, and the mark that stands.
    async fn may_fill(&self, leave: Leave) -> Result<Entry, Error> {
        let key = keys::unfinished();
        let mark = again(|| self.store.read(&key)).await?;
        // What an unfinished one left is nobody's.
        if !leave.replace && mark.held.is_none() && !is_empty(&*self.store).await? {
            return Err(Error::NotEmpty { store: self.store.name().to_owned() });
        }
        Ok(mark)
    }

    /// Fences off whoever was there before and deletes what is there.
    async fn clear(&mut self, head: &Head) -> Result<(), Error> {
        for (seat, generation) in seats(head) {
            let floor = Generation(generation.0.saturating_add(EPOCH_GAP));
            let key = keys::leader(seat);
            again(|| self.store.lift(&key, floor)).await?;
            self.moved.seats += 1;
        }
        for at in 0..self.seats.len() {
            let tenure = self.seats[at].0.clone();
            let seat = tenure.seat();
            let raised = again(|| self.store.raise(seat, tenure.epoch())).await?;
            let Raise::Done(fences) = raised else {
                return Err(Error::Deposed(seat));
            };
            self.seats[at].1 = fences;
            for shard in Shard::all(seat) {
                let former = read_all(&*self.store, shard).await?;
                let delete = former.into_iter().map(|item| Op::Delete(item.key));
                self.commit(shard, delete.collect()).await?;
            }
        }
        Ok(())
    }

    /// Lets go of the seats. The mark stays: what is here is not whole.
    async fn give_up(&self, error: Error) -> Error {
        self.elections.cleanup().await;
        error
    }

    /// Takes over all that the source has.
    async fn fill(mut self, mut source: Source<'_>) -> Result<Moved, Error> {
        loop {
            let done = match source.next().await {
                Ok(Some(batch)) => self.put(batch).await.map(|()| false),
                Ok(None) => Ok(true),
                Err(error) => Err(error),
            };
            match done {
                Ok(false) => {}
                Ok(true) => return self.finish().await,
                Err(error) => return Err(self.give_up(error).await),
            }
        }
    }

    async fn put(&mut self, batch: Batch) -> Result<(), Error> {
        self.moved.records += batch.items.len() as u64;
        let put = batch.items.into_iter().map(|item| Op::Put(item.key, item.value));
        self.commit(batch.shard, put.collect()).await
    }

    async fn commit(&mut self, shard: Shard, ops: Vec<Op>) -> Result<(), Error> {
        let seat = self.seats.iter_mut().find(|(tenure, _)| tenure.seat() == shard.seat);
        let Some((tenure, fences)) = seat else { return Err(Error::Deposed(shard.seat)) };
        let fence = &mut fences[usize::from(shard.number)];
        for group in groups(ops, self.store.limits()) {
            commit_surely(&*self.store, tenure, shard, *fence, &group).await?;
            *fence = fence.next();
        }
        Ok(())
    }

    async fn finish(self) -> Result<Moved, Error> {
        self.take_mark().await?;
        self.elections.cleanup().await;
        Ok(self.moved)
    }
}

/// Asks until there is an answer, as long as the failure may pass: a store may be throttled, and one with much that was
/// deleted learns from each attempt how to go on. Only for what may be sent twice.
async fn again<T, F>(ask: impl Fn() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let mut tries = 0;
    loop {
        tries += 1;
        match ask().await {
            Err(error) if may_pass(&error) && tries < TRIES => {
                let error = chain(&error);
                tracing::warn!(error, "the store gave no answer; trying again");
                tokio::time::sleep(PAUSE).await;
            }
            answer => return answer,
        }
    }
}

/// Sends a commit until it is known to have landed: again after an unknown outcome.
async fn commit_surely(
    store: &dyn Store,
    tenure: &Tenure,
    shard: Shard,
    at: Fence,
    ops: &[Op],
) -> Result<(), Error> {
    let mut tries = 0;
    loop {
        tries += 1;
        match store.commit(shard, at, ops).await {
            Ok(Commit::Done) => return Ok(()),
            Ok(Commit::Fenced(now)) if tries > 1 && now == at.next() => return Ok(()),
            Ok(Commit::Fenced(_)) => return Err(Error::Deposed(shard.seat)),
            Err(error) if may_pass(&error) && tries < TRIES && tenure.may_act() => {
                tracing::warn!(%error, "a commit of unknown outcome is sent again");
                tokio::time::sleep(PAUSE).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// A full disk needs a person.
fn may_pass(error: &StoreError) -> bool {
    let full = |error: &std::io::Error| {
        matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
    };
    error.may_pass() && !error.io().is_some_and(full)
}

/// Cuts changes into commits that the store takes.
fn groups(ops: Vec<Op>, limits: Limits) -> Vec<Vec<Op>> {
    let mut groups: Vec<Vec<Op>> = Vec::new();
    let mut bytes = 0;
    for op in ops {
        let size = op.bytes();
        let fits = groups.last().is_some_and(|group| {
            group.len() < limits.commit_ops && bytes + size <= limits.commit_bytes
        });
        if !fits {
            groups.push(Vec::new());
            bytes = 0;
        }
        bytes += size;
        if let Some(group) = groups.last_mut() {
            group.push(op);
        }
    }
    groups
}

async fn is_empty(store: &dyn Store) -> Result<bool, StoreError> {
    for (key, _) in again(|| store.list()).await? {
        for shard in keys::seat_of(&key).into_iter().flat_map(Shard::all) {
            if holds_any(store, shard).await? {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

async fn holds_any(store: &dyn Store, shard: Shard) -> Result<bool, StoreError> {
    let mut after = None;
    loop {
        let page = again(|| store.scan(shard, after.as_ref())).await?;
        after = page.next;
        if !page.items.is_empty() || after.is_none() {
            return Ok(!page.items.is_empty());
        }
    }
}

#[cfg(test)]
mod tests;
