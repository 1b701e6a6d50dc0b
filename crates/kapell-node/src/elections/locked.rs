use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use kapell_core::causes::chain;
use kapell_core::seams::{Clock, Ids};
use kapell_core::seat::{Epoch, Owner, Record, Seat};
use kapell_store::file::{self, FileStore, Holder};
use kapell_store::model::Generation;
use kapell_store::{Error, How, Store, Ttl as _, keys};
use tokio_util::sync::CancellationToken;

use super::tenure::Standing;
use super::{Elections, Refusal, Sight, Tenure};

/// How often to look whether a store has become free: the kernel tells nobody.
const LOOK: Duration = Duration::from_millis(50);
/// How often to look whether a disk has room again.
const LOOK_FOR_ROOM: Duration = Duration::from_secs(1);

/// Elections over a store that one process at a time can open. Having it open is the seat:
/// there is no lease and nobody to be killed, and a laptop that slept goes on.
#[derive(Debug)]
pub struct Locked {
    parts: LockedParts,
    closing: CancellationToken,
    held: Mutex<Option<Held>>,
    /// The disk has no room, so the store cannot be opened.
    is_full: AtomicBool,
}

/// What elections over a file store are made of.
#[derive(Debug)]
pub struct LockedParts {
    pub dir: PathBuf,
    pub how: How,
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn Ids>,
    pub address: String,
    /// What to tell others who find the store held.
    pub command: String,
}

#[derive(Debug)]
struct Held {
    seat: Seat,
    record: Record,
    store: Arc<FileStore>,
    standing: Standing,
}

impl Locked {
    pub fn new(parts: LockedParts) -> Self {
        let (closing, held) = (CancellationToken::new(), Mutex::default());
        Self { parts, closing, held, is_full: AtomicBool::new(false) }
    }

    fn held(&self) -> MutexGuard<'_, Option<Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the store as soon as nobody else has it open.
    async fn open(&self, holder: &Holder) -> Result<FileStore, Error> {
        loop {
            let (dir, holder, how) =
                (self.parts.dir.clone(), holder.clone(), self.parts.how.clone());
            let opened =
                tokio::task::spawn_blocking(move || FileStore::open(&dir, &holder, &how)).await;
            match opened {
                Ok(Err(Error::InUse { .. })) => tokio::time::sleep(LOOK).await,
                Ok(opened) => return opened,
                Err(error) => std::panic::resume_unwind(error.into_panic()),
            }
        }
    }

    /// Writes who we are into the seat, in place of a former holder that cannot be there any more.
    async fn sit(&self, store: &FileStore, seat: Seat) -> Result<Record, Error> {
        let key = keys::leader(seat);
        loop {
            let entry = store.read(&key).await?;
            if let Some(former) = entry.held {
                let _gone = store.compare_and_delete(&key, &former.value).await?;
            }
            let record = Record {
                epoch: Epoch(entry.generation.0).next(),
                owner: Owner(self.parts.ids.draw()),
                address: self.parts.address.clone(),
                since: self.parts.clock.wall(),
            };
            let seen = Generation(entry.generation.0);
            if store.insert_if_absent(&key, seen, &record.encode(), None).await?.is_done() {
                return Ok(record);
            }
        }
    }

    async fn take(&self, seat: Seat) -> Result<Tenure, Error> {
        let mut holder = Holder {
            pid: std::process::id(),
            address: Some(self.parts.address.clone()),
            command: self.parts.command.clone(),
            since_ms: self.parts.clock.wall().0,
        };
        let store = Arc::new(self.open(&holder).await?);
        for note in store.notes() {
            tracing::warn!(%note, "the store was not left as it should be");
        }
        let record = self.sit(&store, seat).await?;
        holder.since_ms = record.since.0;
        store.announce(&announcement(&holder, seat, &record))?;
        let standing = Standing::for_ever();
        let shared: Arc<dyn Store> = Arc::<FileStore>::clone(&store);
        let clock = Arc::clone(&self.parts.clock);
        let tenure = Tenure::new(seat, record.clone(), shared, clock, standing.clone());
        *self.held() = Some(Held { seat, record, store, standing });
        Ok(tenure)
    }

    /// The same, on a full disk as soon as it has room: whoever makes room need not start us again.
    async fn take_with_room(&self, seat: Seat) -> Result<Tenure, Error> {
        loop {
            let taken = self.take(seat).await;
            let full = taken.as_ref().err().filter(|error| is_full(error));
            let was_full = self.is_full.swap(full.is_some(), Ordering::Relaxed);
            let Some(error) = full else { return taken };
            if !was_full {
                let error = chain(error);
                tracing::warn!(error, "the store's disk is full; waiting until there is room");
            }
            tokio::time::sleep(LOOK_FOR_ROOM).await;
        }
    }

    async fn leave(&self, held: Held) {
        held.standing.act_until(None);
        let key = keys::leader(held.seat);
        if let Err(error) = held.store.compare_and_delete(&key, &held.record.encode()).await {
            tracing::warn!(error = chain(&error), "the seat's record could not be deleted");
        }
        held.store.close().await;
    }
}

fn is_full(error: &Error) -> bool {
    let kind = error.io().map(io::Error::kind);
    matches!(kind, Some(io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded))
}

/// What stands beside the lock: the holder, and its seat.
fn announcement(holder: &Holder, seat: Seat, record: &Record) -> Vec<u8> {
    let mut text = serde_json::json!(holder);
    text["seat"] = serde_json::json!(seat);
    text["record"] = serde_json::json!(record);
    text.to_string().into_bytes()
}

/// Reads the seat of whoever has a file store open, beside it.
pub fn look(dir: &std::path::Path) -> Result<Option<(Seat, Record)>, Error> {
    let peek = file::peek(dir)?;
    let announced = peek.announced.filter(|_| peek.held);
    Ok(announced.and_then(|bytes| {
        let value: serde_json::Value = serde_json::from_slice(&bytes).ok()?;
        let seat = serde_json::from_value(value.get("seat")?.clone()).ok()?;
        let record = serde_json::from_value(value.get("record")?.clone()).ok()?;
        Some((seat, record))
    }))
}

#[async_trait]
impl Elections for Locked {
    async fn acquire(&self, seats: &[Seat], window: Option<Duration>) -> Result<Tenure, Refusal> {
        let Some(&seat) = seats.first() else { return Err(Refusal::Closed) };
        if self.closing.is_cancelled() {
            return Err(Refusal::Closed);
        }
        if let Some(held) = &*self.held() {
            return Err(Refusal::HeldHere(held.seat));
        }
        let too_late = async {
            match window {
                Some(window) => tokio::time::sleep(window).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.closing.cancelled() => Err(Refusal::Closed),
            taken = self.take_with_room(seat) => taken.map_err(|error| {
                let is_damaged = matches!(error, Error::Damaged { .. });
                let refuse = if is_damaged { Refusal::Damaged } else { Refusal::Store };
                refuse(chain(&error))
            }),
            () = too_late => Err(Refusal::NotAcquired {
                window: window.unwrap_or_default(),
                store_error: None,
            }),
        }
    }

    async fn release(&self, seat: Seat) -> bool {
        let held = self.held().take_if(|held| held.seat == seat);
        match held {
            Some(held) => {
                self.leave(held).await;
                true
            }
            None => false,
        }
    }

    async fn cleanup(&self) {
        self.closing.cancel();
        let held = self.held().take();
        if let Some(held) = held {
            self.leave(held).await;
        }
    }

    fn store_answers(&self) -> bool {
        !self.is_full.load(Ordering::Relaxed)
    }

    fn seen(&self, seat: Seat) -> Option<Sight> {
        let (held, record) = look(&self.parts.dir).ok().flatten()?;
        (held == seat).then_some(Sight { record, until: None })
    }
}
