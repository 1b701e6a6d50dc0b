//! Programs that need no container of their own, run by one runner for all. See `kapell-shim`'s mode of that name.
//!
//! The runner outlives us, and what it has begun is in its journal before it is begun. So whatever is killed, and when: what
//! the runner does not know when it welcomes us was never started, and may be asked for again.

mod link;
mod parcel;
mod seat;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use self::link::Command;
pub use self::link::Link;
pub(crate) use self::seat::Seat;
use super::groups::Membership;
use super::spec_file::{self, Header};
use crate::containers::{Error, Exit, Process};

/// A program to be run.
#[derive(Debug)]
pub struct Order {
    /// Names it among all there ever were.
    pub guid: String,
    /// Whatever its owner wants to find again.
    pub tag: Vec<u8>,
    /// Without a directory it has one of its own, which is its home too unless it is told of another.
    pub process: Process,
    /// Made when there is something to be kept.
    pub logs: PathBuf,
    pub log_bytes: u64,
}

/// In the order in which it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// What became of a program.
    Of { tag: Arc<[u8]>, what: What },
    /// The runner is gone: another one is started and asked what became of everything.
    Lost { why: String },
    /// There is none, and none can be started: that is tried again.
    Without { why: String },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A host before us has had it begun.
    Found {
        at_ms: i64,
    },
    Began {
        at_ms: i64,
    },
    Ended {
        at_ms: i64,
        exit: Exit,
    },
}

/// Asks for programs. Whoever has it may be gone before they have begun.
#[derive(Debug, Clone)]
pub struct Runner {
    commands: mpsc::UnboundedSender<Command>,
    seat: Arc<Seat>,
}

/// A runner, and what does the talking with it.
#[derive(Debug)]
pub struct Opened {
    pub runner: Runner,
    /// Has to be run for anything to happen.
    pub link: Link,
}

/// Hears of programs, before whoever waits for the same is answered. It must not block.
pub trait Listener: fmt::Debug + Send + Sync {
    fn hear(&self, news: News);
}

/// Tells what hosts before us have left with a runner. Without any, one is started when it is needed.
pub(crate) async fn open(seat: Seat, listener: Arc<dyn Listener>) -> Result<Opened, Error> {
    let (commands, asked) = mpsc::unbounded_channel();
    let seat = Arc::new(seat);
    let mut link = Link::new(Arc::clone(&seat), asked, listener);
    if seat.is_used() {
        link.reconnect().await?;
    }
    Ok(Opened { runner: Runner { commands, seat }, link })
}

impl Runner {
    /// Runs a program, unless there is one of this name. Answered when it runs.
    pub async fn launch(&self, order: Order) -> Result<(), Error> {
        super::check_name("a program", &order.guid)?;
        let Order { guid, tag, process, logs, log_bytes } = order;
        let logs = logs.join(&process.name);
        let spec = spec_file::Order {
            boot: &self.seat.boot,
            guid: &guid,
            name: &process.name,
            program: &process.path,
            args: &process.args,
            env: &process.env,
            dir: process.dir.as_deref(),
            user: None,
            own_user: false,
            whole: false,
            own_group: false,
            stop_grace: process.stop_grace,
            logs: Some(&logs),
            log_bytes,
            log_rate: None,
            descriptors: self.seat.descriptors,
            pid_file: None,
            groups: &Membership::default(),
        };
        let spec = spec.encode()?;
        let header = header(process);
        let parcel = parcel::launch(&guid, &tag, &spec);
        let (answer, answered) = oneshot::channel();
        let launch = link::Launch { guid, tag: tag.into(), parcel, header, answer };
        self.send(Command::Launch(Box::new(launch)))?;
        answered.await.map_err(|_| super::cut_short())?
    }

    /// Ends a program and waits for that: at once, or after it was asked to and has had its grace. False if there is none.
    pub async fn stop(&self, guid: &str, at_once: bool) -> Result<bool, Error> {
        let (answer, answered) = oneshot::channel();
        self.send(Command::Stop { guid: guid.to_owned(), at_once, answer })?;
        answered.await.map_err(|_| super::cut_short())
    }

    /// What became of it is stored elsewhere. What still runs is ended.
    pub fn release(&self, guid: &str) {
        // Else the host is ending: the next one does it.
        drop(self.send(Command::Release { guid: guid.to_owned() }));
    }

    /// All that runs, in containers of the same driver too, is ended at once when this time is over and nothing more was
    /// said, whatever becomes of us.
    pub fn lease(&self, left: Duration) {
        drop(self.send(Command::Lease { left }));
    }

    fn send(&self, command: Command) -> Result<(), Error> {
        self.commands.send(command).map_err(|_| super::cut_short())
    }
}

/// What is said of a program that could not be started.
fn header(process: Process) -> Header {
    let dir = process.dir.map(|dir| dir.to_string_lossy().into_owned()).unwrap_or_default();
    Header { program: process.path, dir, ..Header::default() }
}
