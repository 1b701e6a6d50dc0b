//! Talks with a runner, and with the next one if that is killed.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kapell_core::causes::chain;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::parcel::{self, KILL, LEASE, RELEASE, STOP, Said};
use super::seat::{self, Seat};
use super::{Listener, News, What};
use crate::containers::{Error, Exit};
use crate::process::exit_file::{self, NO_RUNNER};
use crate::process::spec_file::Header;
use crate::process::trouble::{self, Failure, Stage};
use crate::process::{blocking, cut_short};

/// So much is heeded or read at once.
const SLICE: usize = 256;
const CHUNK: usize = 64 << 10;
/// For so long runners are tried that are gone before they welcome anybody.
const PATIENCE: Duration = Duration::from_secs(10);
/// Before a runner is started again that could not be.
const AGAIN: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) enum Command {
    Launch(Box<Launch>),
    Stop { guid: String, at_once: bool, answer: oneshot::Sender<bool> },
    Release { guid: String },
    Lease { left: Duration },
}

/// A program to be run.
#[derive(Debug)]
pub(super) struct Launch {
    pub(super) guid: String,
    pub(super) tag: Arc<[u8]>,
    pub(super) parcel: Vec<u8>,
    pub(super) header: Header,
    pub(super) answer: oneshot::Sender<Result<(), Error>>,
}

#[derive(Debug)]
enum State {
    /// Asked for, and not answered: it is asked for again if the next runner does not know it.
    Launching(Box<Launching>),
    Runs,
    Ended,
}

#[derive(Debug)]
struct Launching {
    parcel: Vec<u8>,
    header: Header,
    answer: oneshot::Sender<Result<(), Error>>,
    /// Some runner may have heard of it.
    was_sent: bool,
}

#[derive(Debug)]
struct Known {
    tag: Arc<[u8]>,
    state: State,
    /// Those who wait for its end.
    waiting: Vec<oneshot::Sender<bool>>,
    /// How it was asked to end.
    stop: Option<u8>,
}

/// See the module. It has no task of its own: [`Link::run`] is run by whoever opened it.
#[derive(Debug)]
pub struct Link {
    seat: Arc<Seat>,
    commands: mpsc::UnboundedReceiver<Command>,
    listener: Arc<dyn Listener>,
    stream: Option<UnixStream>,
    known: BTreeMap<String, Known>,
    unsent: Vec<u8>,
    read: Vec<u8>,
    /// What the runner has told of before its welcome.
    found: Option<BTreeSet<String>>,
    cleaners: JoinSet<()>,
    /// Until then we lead, if that is limited.
    lease: Option<Instant>,
    /// All that hosts before us have left was told.
    is_open: bool,
}

impl Known {
    const fn new(tag: Arc<[u8]>, state: State) -> Self {
        Self { tag, state, waiting: Vec::new(), stop: None }
    }
}

impl Link {
    pub(super) fn new(
        seat: Arc<Seat>,
        commands: mpsc::UnboundedReceiver<Command>,
        listener: Arc<dyn Listener>,
    ) -> Self {
        Self {
            seat,
            commands,
            listener,
            stream: None,
            known: BTreeMap::new(),
            unsent: Vec::new(),
            read: Vec::new(),
            found: None,
            cleaners: JoinSet::new(),
            lease: None,
            is_open: false,
        }
    }

    /// Until nobody is left who could ask for anything.
    pub async fn run(mut self) {
        let mut asked = Vec::new();
        loop {
            while self.cleaners.try_join_next().is_some() {}
            if self.stream.is_none() && self.is_needed() && !self.try_reconnect().await {
                tokio::time::sleep(AGAIN).await;
                while let Ok(command) = self.commands.try_recv() {
                    self.heed(command);
                }
                continue;
            }
            let interest = if self.unsent.is_empty() {
                Interest::READABLE
            } else {
                Interest::READABLE | Interest::WRITABLE
            };
            tokio::select! {
                biased;
                ready = ready(self.stream.as_ref(), interest) => match ready {
                    Ok(()) => self.talk(),
                    Err(error) => self.lost(&error),
                },
                count = self.commands.recv_many(&mut asked, SLICE) => {
                    if count == 0 {
                        return;
                    }
                    for command in asked.drain(..) {
                        self.heed(command);
                    }
                    if self.stream.is_some() {
                        self.talk();
                    }
                }
            }
        }
    }

    /// Whether there is something that only a runner can do.
    fn is_needed(&self) -> bool {
        self.lease.is_some()
            || self.known.values().any(|known| !matches!(known.state, State::Ended))
    }

    async fn try_reconnect(&mut self) -> bool {
        let Err(error) = self.reconnect().await else { return true };
        let why = chain(&error);
        // What no runner was ever told of has certainly not begun.
        let is_untold = |known: &Known| match &known.state {
            State::Launching(launching) => !launching.was_sent,
            State::Runs | State::Ended => false,
        };
        let untold = self.known.iter().filter(|(_, known)| is_untold(known));
        for guid in untold.map(|(guid, _)| guid.clone()).collect::<Vec<_>>() {
            let source = io::Error::other(why.clone());
            self.refuse(&guid, |_| Error::Io { what: "there is no runner".to_owned(), source });
        }
        self.listener.hear(News::Without { why });
        false
    }

    /// Has a runner, and knows from it what is there. One that was about to end has let us in and is gone.
    pub(super) async fn reconnect(&mut self) -> Result<(), Error> {
        let start = Instant::now();
        while !self.connect().await? {
            if start.elapsed() > PATIENCE {
                return Err(cut_short());
            }
        }
        Ok(())
    }

    /// Whether there was a welcome.
    async fn connect(&mut self) -> Result<bool, Error> {
        (self.unsent, self.read) = (Vec::new(), Vec::new());
        let seat = Arc::clone(&self.seat);
        let stream = blocking(move || seat.connect()).await?;
        let dir = self.seat.dir.clone();
        let failed = |error| trouble::io("talk with the runner in", &dir)(error);
        stream.set_nonblocking(true).map_err(failed)?;
        let stream = UnixStream::from_std(stream).map_err(failed)?;
        self.found = Some(BTreeSet::new());
        let mut stream = Some(stream);
        while self.found.is_some() {
            ready(stream.as_ref(), Interest::READABLE).await.map_err(failed)?;
            self.stream = stream.take();
            self.talk();
            stream = self.stream.take();
            if stream.is_none() {
                return Ok(false);
            }
        }
        self.stream = stream;
        self.talk();
        Ok(true)
    }

    fn heed(&mut self, command: Command) {
        match command {
            Command::Launch(launch) => {
                let Launch { guid, tag, parcel, header, answer } = *launch;
                if self.known.contains_key(&guid) {
                    drop(answer.send(Ok(())));
                    return;
                }
                self.unsent.extend_from_slice(&parcel);
                let was_sent = self.stream.is_some();
                let launching = Launching { parcel, header, answer, was_sent };
                let state = State::Launching(Box::new(launching));
                self.known.insert(guid, Known::new(tag, state));
            }
            Command::Stop { guid, at_once, answer } => match self.known.get_mut(&guid) {
                None => {
                    let _nobody_waits_any_more = answer.send(false);
                }
                Some(Known { state: State::Ended, .. }) => answer_all(vec![answer]),
                Some(known) => {
                    known.waiting.push(answer);
                    let kind = if at_once { KILL } else { STOP };
                    known.stop = Some(kind);
                    parcel::push(&mut self.unsent, kind, &guid, &[]);
                }
            },
            Command::Release { guid } => {
                if self.known.remove(&guid).is_some() {
                    parcel::push(&mut self.unsent, RELEASE, &guid, &[]);
                }
            }
            Command::Lease { left } => {
                self.lease = Instant::now().checked_add(left);
                self.say_lease();
            }
        }
    }

    /// How long what runs may go on if no more is heard of us.
    fn say_lease(&mut self) {
        let Some(until) = self.lease else { return };
        let left = until.saturating_duration_since(Instant::now());
        let left = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
        parcel::push(&mut self.unsent, LEASE, "", &[&left.to_be_bytes()]);
    }

    /// Sends and hears as much as there is.
    fn talk(&mut self) {
        let Some(stream) = self.stream.take() else { return };
        match self.exchange(&stream) {
            Ok(()) => self.stream = Some(stream),
            Err(error) => self.lost(&error),
        }
    }

    fn exchange(&mut self, stream: &UnixStream) -> io::Result<()> {
        let mut sent = 0;
        while sent < self.unsent.len() {
            match stream.try_write(&self.unsent[sent..]) {
                Ok(count) => sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        self.unsent.drain(..sent);
        loop {
            let from = self.read.len();
            self.read.resize(from + CHUNK, 0);
            let taken = stream.try_read(&mut self.read[from..]);
            self.read.truncate(from + taken.as_ref().map_or(0, |count| *count));
            match taken {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => self.hear()?,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    fn hear(&mut self) -> io::Result<()> {
        let read = std::mem::take(&mut self.read);
        let mut from = 0;
        while let Some((guid, said, length)) = parcel::read(&read[from..]) {
            match said {
                Said::Found { began_ms, tag } => self.here(guid, began_ms, tag),
                Said::Started { began_ms } => self.began(guid, began_ms),
                Said::Failed(failure) => self.failed(guid, &failure),
                Said::Ended { at_ms, left, record } => self.ended(guid, at_ms, left, record),
                Said::Welcome => self.welcome(),
                Said::Nonsense => return Err(io::ErrorKind::InvalidData.into()),
            }
            from += length;
        }
        self.read = read;
        self.read.drain(..from);
        Ok(())
    }

    /// The runner has it, from before.
    fn here(&mut self, guid: &str, began_ms: i64, tag: &[u8]) {
        if let Some(found) = &mut self.found {
            found.insert(guid.to_owned());
        }
        if !self.known.contains_key(guid) {
            if self.is_open {
                // It was released, and the runner has not heard of it.
                return parcel::push(&mut self.unsent, RELEASE, guid, &[]);
            }
            self.known.insert(guid.to_owned(), Known::new(Arc::from(tag), State::Runs));
            self.tell(guid, What::Found { at_ms: began_ms });
        }
        self.began(guid, began_ms);
    }

    fn began(&mut self, guid: &str, at_ms: i64) {
        let Some(known) = self.known.get_mut(guid) else { return };
        match std::mem::replace(&mut known.state, State::Runs) {
            State::Launching(launching) => {
                self.tell(guid, What::Began { at_ms });
                drop(launching.answer.send(Ok(())));
            }
            before @ (State::Runs | State::Ended) => known.state = before,
        }
    }

    fn failed(&mut self, guid: &str, failure: &Failure) {
        let seat = Arc::clone(&self.seat);
        let cause = io::Error::from_raw_os_error(failure.errno);
        self.refuse(guid, |header| match failure.stage {
            Stage::Exit => trouble::io("write", &seat.journal())(cause),
            Stage::Work => trouble::io("make a directory in", &seat.dirs())(cause),
            Stage::Pid
            | Stage::Spec
            | Stage::Pipes
            | Stage::Fork
            | Stage::User
            | Stage::Dir
            | Stage::Program
            | Stage::Interpreter
            | Stage::Group
            | Stage::Launcher => failure.to_error(&seat.dir, header),
        });
    }

    /// It was not started and will not be.
    fn refuse(&mut self, guid: &str, why: impl FnOnce(&Header) -> Error) {
        let Some(known) = self.known.remove(guid) else { return };
        if let State::Launching(launching) = known.state {
            drop(launching.answer.send(Err(why(&launching.header))));
        }
        answer_all(known.waiting);
    }

    fn ended(&mut self, guid: &str, at_ms: i64, left: Option<u64>, record: &[u8]) {
        if let Some(number) = left {
            let dir = self.seat.dirs().join(number.to_string());
            self.cleaners.spawn_blocking(move || seat::remove(&dir));
        }
        self.began(guid, at_ms);
        let exit = exit_file::parse(record, &self.seat.dir, &Header::default());
        self.over(guid, at_ms, exit.unwrap_or_default());
    }

    fn over(&mut self, guid: &str, at_ms: i64, exit: Exit) {
        let Some(known) = self.known.get_mut(guid) else { return };
        if matches!(known.state, State::Ended) {
            return;
        }
        known.state = State::Ended;
        let waiting = std::mem::take(&mut known.waiting);
        self.tell(guid, What::Ended { at_ms, exit });
        answer_all(waiting);
    }

    fn tell(&self, guid: &str, what: What) {
        if let Some(Known { tag, .. }) = self.known.get(guid) {
            self.listener.hear(News::Of { tag: Arc::clone(tag), what });
        }
    }

    /// All that the runner has was told. What it lacks was never begun; what it has and we do not was released.
    fn welcome(&mut self) {
        let Some(found) = self.found.take() else { return };
        self.is_open = true;
        self.say_lease();
        let mut lost = Vec::new();
        for (guid, known) in &mut self.known {
            match &mut known.state {
                State::Launching(_) | State::Runs if found.contains(guid) => {}
                State::Launching(launching) => {
                    launching.was_sent = true;
                    self.unsent.extend_from_slice(&launching.parcel);
                }
                State::Runs => lost.push(guid.clone()),
                State::Ended => continue,
            }
            if let Some(kind) = known.stop {
                parcel::push(&mut self.unsent, kind, guid, &[]);
            }
        }
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let now = now.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX));
        for guid in lost {
            let exit = Exit { trouble: Some(NO_RUNNER.to_owned()), ..Exit::default() };
            self.over(&guid, now, exit);
        }
    }

    /// The runner was killed, or there is something wrong with it: what it had is asked of the next one.
    fn lost(&mut self, error: &io::Error) {
        self.stream = None;
        self.listener.hear(News::Lost { why: error.to_string() });
    }
}

fn answer_all(waiting: Vec<oneshot::Sender<bool>>) {
    for answer in waiting {
        let _nobody_waits_any_more = answer.send(true);
    }
}

/// Never, without a stream.
async fn ready(stream: Option<&UnixStream>, interest: Interest) -> io::Result<()> {
    match stream {
        Some(stream) => stream.ready(interest).await.map(drop),
        None => std::future::pending().await,
    }
}
