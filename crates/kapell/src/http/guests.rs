//! Who has a connection, and who has to leave when there is no room.
//!
//! Nobody is let in for being there: those who keep us waiting go first. Cells have room of their own, so that however
//! many people and programs ask, cells are heard.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyper::StatusCode;
use hyper::header::CONTENT_TYPE;
use kapell_core::access::Role;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::answer::{Answer, JSON, Problem};
use super::body::Body;
use super::door::Entry;

/// How long a stranger has at least to say who they are.
const HEARING: Duration = Duration::from_millis(200);
/// How long a guest may keep us waiting while others have no room.
const PATIENCE: Duration = Duration::from_secs(1);
/// The same between two requests, where nobody loses anything. What was answered is on its way by then.
const PAUSE: Duration = Duration::from_millis(250);

/// Whose connection it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whose {
    /// Nobody was let in over it yet.
    Stranger,
    Operator,
    Cell,
}

/// What a connection waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Awaits {
    /// The next request.
    Request,
    /// What we do.
    Us,
    /// The rest of a request, which its client has to send.
    Body,
    /// Somebody who takes an answer that comes in pieces.
    Taker,
    /// Somebody who reads for as long as they like, and has a place for that.
    Reader,
}

impl Awaits {
    const ALL: [Self; 5] = [Self::Request, Self::Us, Self::Body, Self::Taker, Self::Reader];
}

/// What a connection does, as those see it who have no room.
#[derive(Debug)]
pub(super) struct Guest {
    began: Instant,
    awaits: AtomicU8,
    /// The client does not take what we send.
    is_stuck: AtomicBool,
    /// When something last moved, or the wait for a body began, in milliseconds after the connection did.
    moved_ms: AtomicU64,
}

impl Guest {
    fn new() -> Self {
        let awaits = AtomicU8::new(Awaits::Request as u8);
        let (is_stuck, moved_ms) = (AtomicBool::new(false), AtomicU64::new(0));
        Self { began: Instant::now(), awaits, is_stuck, moved_ms }
    }

    fn awaits(&self, what: Awaits) {
        self.awaits.store(what as u8, Ordering::Relaxed);
        self.note_now();
    }

    /// Something was sent to the client, which counts for nothing while it is the client who has to send.
    pub(super) fn moved(&self) {
        if self.awaits.load(Ordering::Relaxed) != Awaits::Body as u8 {
            self.note_now();
        }
    }

    fn note_now(&self) {
        let ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.moved_ms.store(ms, Ordering::Relaxed);
    }

    /// A request has come.
    pub(super) fn is_served(&self) {
        self.awaits(Awaits::Us);
    }

    /// A request was answered.
    pub(super) fn is_answered(&self, answer: &Answer) {
        let is_data = answer.headers().get(CONTENT_TYPE) == Some(&JSON);
        self.awaits(match answer.body() {
            Body::Whole(_) => Awaits::Request,
            Body::Fed(_) | Body::Relayed(_) if is_data => Awaits::Taker,
            Body::Fed(_) | Body::Relayed(_) => Awaits::Reader,
        });
    }

    /// A request's body is waited for, or all of it has come. Who sends a byte now and then does not begin anew.
    pub(super) fn awaits_body(&self, is_so: bool) {
        let what = if is_so { Awaits::Body } else { Awaits::Us };
        if self.awaits.load(Ordering::Relaxed) != what as u8 {
            self.awaits(what);
        }
    }

    /// Whether an answer may be read for as long as somebody likes.
    pub(super) fn streams(&self) -> bool {
        self.awaits.load(Ordering::Relaxed) == Awaits::Reader as u8
    }

    /// What we send is taken, or not.
    pub(super) fn takes(&self, is_so: bool) {
        self.is_stuck.store(!is_so, Ordering::Relaxed);
    }

    /// How long the client has kept us waiting; nothing if it is not the one that is waited for.
    fn is_late(&self) -> Option<Duration> {
        let number = self.awaits.load(Ordering::Relaxed);
        let awaits = Awaits::ALL.into_iter().find(|it| *it as u8 == number)?;
        let moved = Duration::from_millis(self.moved_ms.load(Ordering::Relaxed));
        let still = self.began.elapsed().saturating_sub(moved);
        let is_stuck = self.is_stuck.load(Ordering::Relaxed);
        let patience = match awaits {
            Awaits::Request => Some(if is_stuck { PATIENCE } else { PAUSE }),
            Awaits::Body => Some(PATIENCE),
            Awaits::Taker => is_stuck.then_some(PATIENCE),
            Awaits::Us | Awaits::Reader => None,
        }?;
        Some(still).filter(|still| *still >= patience)
    }
}

/// All connections of a listener. Cheap to clone; all clones are the same.
#[derive(Debug, Clone, Default)]
pub(super) struct Guests(Arc<Mutex<Book>>);

#[derive(Debug, Default)]
struct Book {
    next: u64,
    /// In the order in which they came.
    lines: BTreeMap<u64, Line>,
    operators: usize,
    /// How often it became known who a stranger is.
    heard: u64,
}

#[derive(Debug)]
struct Line {
    whose: Whose,
    guest: Arc<Guest>,
    handle: Option<AbortHandle>,
}

/// What a connection goes by, until it is closed.
#[derive(Debug)]
pub(super) struct Pass {
    guests: Guests,
    number: u64,
    pub(super) guest: Arc<Guest>,
}

impl Guests {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a connection and has it served.
    pub(super) fn enter(&self, serve: impl FnOnce(Pass) -> AbortHandle) {
        let guest = Arc::new(Guest::new());
        let number = {
            let mut book = self.book();
            book.next += 1;
            let number = book.next;
            let line = Line { whose: Whose::Stranger, guest: Arc::clone(&guest), handle: None };
            book.lines.insert(number, line);
            number
        };
        let handle = serve(Pass { guests: self.clone(), number, guest });
        // It may be gone already.
        if let Some(line) = self.book().lines.get_mut(&number) {
            line.handle = Some(handle);
        }
    }

    pub(super) fn count(&self) -> usize {
        self.book().lines.len()
    }

    /// Changes whenever it becomes known who a stranger is.
    pub(super) fn heard(&self) -> u64 {
        self.book().heard
    }

    /// Makes room for somebody new. False if nobody can be asked to leave.
    pub(super) fn send_one_away(&self) -> bool {
        self.book().send_stranger_away()
    }
}

impl Book {
    /// The stranger who has been there longest, if they had time to say who they are: for one stranger nobody has to
    /// leave who is known.
    fn send_stranger_away(&mut self) -> bool {
        let mut lines = self.lines.iter();
        let Some((&number, line)) = lines.find(|(_, line)| line.whose == Whose::Stranger) else {
            return self.send_late_away();
        };
        let had_time = line.guest.began.elapsed() >= HEARING;
        if had_time {
            self.close(number);
        }
        had_time
    }

    /// The one among those who are known that keeps us waiting longest.
    fn send_late_away(&mut self) -> bool {
        let operators = self.lines.iter().filter(|(_, line)| line.whose == Whose::Operator);
        let late = operators.filter_map(|(number, line)| Some((line.guest.is_late()?, *number)));
        let Some((_, number)) = late.max() else { return false };
        self.close(number);
        true
    }

    fn close(&mut self, number: u64) {
        let Some(line) = self.lines.remove(&number) else { return };
        self.operators -= usize::from(line.whose == Whose::Operator);
        if let Some(handle) = line.handle {
            handle.abort();
        }
    }

    /// Somebody was let in, who needs room among so many of their kind.
    fn know(&mut self, number: u64, whose: Whose, most_operators: usize) -> bool {
        let Some(before) = self.lines.get(&number).map(|line| line.whose) else { return true };
        // A cell that also asks as others do stays a cell.
        if before == whose || before == Whose::Cell {
            return true;
        }
        self.heard += u64::from(before == Whose::Stranger);
        if whose == Whose::Operator && self.operators >= most_operators && !self.send_late_away() {
            return false;
        }
        if let Some(line) = self.lines.get_mut(&number) {
            self.operators += usize::from(whose == Whose::Operator);
            self.operators -= usize::from(before == Whose::Operator);
            line.whose = whose;
        }
        true
    }
}

impl Pass {
    /// Whoever is at the other end was let in, if there is room for them.
    pub(super) fn known(
        &self,
        entry: &Entry,
        path: &str,
        most_operators: usize,
    ) -> Result<(), Box<Problem>> {
        let whose = if speaks_for_cell(entry, path) { Whose::Cell } else { Whose::Operator };
        if self.guests.book().know(self.number, whose, most_operators) {
            return Ok(());
        }
        let text = "all connections of this host are in use: ask again later";
        let problem = Problem::new(StatusCode::TOO_MANY_REQUESTS, "too_many_connections", text);
        Err(problem.passing().closing())
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let mut book = self.guests.book();
        if let Some(line) = book.lines.remove(&self.number) {
            book.operators -= usize::from(line.whose == Whose::Operator);
        }
    }
}

/// Whether a request is a cell's own. Cells that are known by the token of the hosts are told by what they ask.
pub(super) fn speaks_for_cell(entry: &Entry, path: &str) -> bool {
    match entry.who.role {
        Role::Cell(_) | Role::Joiner(_) => true,
        Role::Operator | Role::Host => {
            path.starts_with("/v1/cells/") && !path.ends_with("/evacuate")
        }
        Role::Reader => false,
    }
}
