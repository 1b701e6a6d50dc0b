use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use kapell_core::audit::AuditRecord;
use kapell_core::seams::{Clock, Ids, Timestamp};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::files::{Disk, Files, Limits};
use super::read::{self, Bad, Page, Place, Wanted};
use super::trouble::{Full, Trouble};
use super::writer::{Order, Writer, line};

/// More than there are connections.
const WAITING: usize = 4096;
/// How long a disk may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long it may take at the end.
const LAST_MOMENTS: Duration = Duration::from_secs(1);

/// Why it cannot be noted who does something, so that it may not be done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    #[error("{0}")]
    Disk(String),
    #[error("the disk does not answer")]
    Silent,
}

/// Where it is noted who does what. It ends with the last who holds it.
#[derive(Debug)]
pub struct Journal {
    dir: PathBuf,
    clock: Arc<dyn Clock>,
    names: Arc<Names>,
    orders: SyncSender<Order>,
    /// The file that is written to.
    current: Arc<AtomicU64>,
    trouble: Arc<Trouble>,
}

/// Ids that no other process gives.
#[derive(Debug)]
pub(super) struct Names {
    ours: u64,
    next: AtomicU64,
}

impl Names {
    pub(super) fn next(&self) -> String {
        format!("{:016x}-{}", self.ours, self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// What follows the part of an id by which this process is known.
    fn strip<'a>(&self, id: &'a str) -> Option<&'a str> {
        id.strip_prefix(&format!("{:016x}-", self.ours))
    }
}

impl Journal {
    /// Begins to write below `dir`. Whether that can be written to is seen by whoever wants to.
    pub fn open(
        dir: PathBuf,
        limits: Limits,
        disk: Box<dyn Disk>,
        clock: Arc<dyn Clock>,
        ids: &dyn Ids,
    ) -> std::io::Result<Self> {
        let (orders, taken) = sync_channel(WAITING);
        let names = Arc::new(Names { ours: ids.draw(), next: AtomicU64::new(1) });
        let files = Files::new(dir.clone(), limits, disk);
        let current = files.current();
        let (our_clock, our_names) = (Arc::clone(&clock), Arc::clone(&names));
        let trouble = Arc::default();
        let our_trouble = Arc::clone(&trouble);
        let writer = Writer::new(files, our_clock, our_names, our_trouble);
        std::thread::Builder::new().name("audit".to_owned()).spawn(move || writer.run(&taken))?;
        Ok(Self { dir, clock, names, orders, current, trouble })
    }

    pub fn now(&self) -> Timestamp {
        self.clock.wall()
    }

    /// Why nothing can be noted, so that nothing may be changed, while that is so.
    pub fn trouble(&self) -> Option<Full> {
        self.trouble.now()
    }

    /// An id for a record.
    pub fn name(&self) -> String {
        self.names.next()
    }

    /// Keeps a record: it is on disk when this returns.
    pub async fn keep(&self, record: &AuditRecord) -> Result<(), Unavailable> {
        let (told, heard) = oneshot::channel();
        self.orders.try_send(Order::Keep(line(record), told)).map_err(|_| Unavailable::Silent)?;
        match timeout(PATIENCE, heard).await {
            Ok(Ok(done)) => done,
            Ok(Err(_)) | Err(_) => Err(Unavailable::Silent),
        }
    }

    /// Adds a record without waiting. It is on disk with the next that is kept.
    pub fn note(&self, record: &AuditRecord) {
        self.tell(Order::Note(line(record)));
    }

    /// Counts somebody who was not let in.
    pub fn refused(&self, peer: String, code: &str) {
        self.tell(Order::Knock { peer, code: code.to_owned() });
    }

    /// Puts all that was noted or counted on disk. A disk that hangs keeps nobody from ending.
    pub async fn end(&self) {
        let (told, heard) = oneshot::channel();
        self.tell(Order::Last(told));
        let _in_time = timeout(LAST_MOMENTS, heard).await;
    }

    fn tell(&self, order: Order) {
        if self.orders.try_send(order).is_err() {
            tracing::warn!("an audit record was dropped: the disk does not answer");
        }
    }

    /// Reads what was noted, with all that was noted before this was asked. It goes on after a page of this process;
    /// anything else means the beginning.
    pub async fn read(
        &self,
        after: Option<&str>,
        since: Timestamp,
        most: usize,
    ) -> Result<Page, Bad> {
        let (told, heard) = oneshot::channel();
        if self.orders.try_send(Order::Reach(told)).is_ok() {
            // A disk that hangs does not keep what is there from being read.
            let _reached = timeout(PATIENCE, heard).await;
        }
        let from = after.and_then(|text| self.names.strip(text)?.parse().ok());
        let (dir, names) = (self.dir.clone(), Arc::clone(&self.names));
        let current = self.current.load(Ordering::Relaxed);
        let wanted = Wanted { from: from.unwrap_or_default(), current, since, most };
        let read = move || read::page(&dir, &wanted, |id| names.strip(id).is_some());
        match tokio::task::spawn_blocking(read).await {
            Ok(read) => {
                let (records, next, is_last) = read?;
                Ok(Page { records, next: self.place(next), is_last })
            }
            Err(error) => Err(Bad(error.to_string())),
        }
    }

    /// A place, as it is known to this process only.
    fn place(&self, Place { file, offset }: Place) -> String {
        format!("{:016x}-{file}-{offset}", self.names.ours)
    }
}
