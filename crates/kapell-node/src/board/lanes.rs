//! How requests come to a shard: a bounded way in for everybody, and one of the board's own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kapell_core::board::{Reply, Request};
use tokio::sync::{mpsc, oneshot};

use super::handle::Declined;

/// How many requests from outside may wait for one shard.
pub const WAITING: usize = 1024;

pub(crate) type Answer = Result<Reply, Declined>;

/// What became of a request, for who asks for many things, gives each a number, and waits for none of them alone.
#[derive(Debug)]
pub(crate) struct Tagged {
    pub(crate) tag: u64,
    pub(crate) answer: Answer,
}

/// Where an answer goes.
#[derive(Debug)]
pub(super) enum Asker {
    One(oneshot::Sender<Answer>),
    Many(u64, mpsc::UnboundedSender<Tagged>),
}

impl Asker {
    pub(super) fn tell(self, answer: Answer) {
        // Whoever asked may have gone.
        match self {
            Self::One(to) => drop(to.send(answer)),
            Self::Many(tag, to) => drop(to.send(Tagged { tag, answer })),
        }
    }
}

/// A request, and who waits for its answer.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) request: Request,
    pub(super) answer: Option<Asker>,
    /// The board asked itself.
    pub(super) inside: bool,
}

impl Asked {
    pub(super) fn answer(self, with: Answer) {
        if let Some(asker) = self.answer {
            asker.tell(with);
        }
    }
}

/// The ways in.
#[derive(Debug)]
pub(super) struct Door {
    outer: mpsc::Sender<Asked>,
    /// What follows from committed changes must not get lost because others ask too much.
    inner: mpsc::UnboundedSender<Asked>,
    inner_waiting: Arc<AtomicUsize>,
}

/// Where requests come out, from both ways in turn: neither keeps the other waiting.
#[derive(Debug)]
pub(super) struct Lanes {
    outer: mpsc::Receiver<Asked>,
    inner: mpsc::UnboundedReceiver<Asked>,
    inner_waiting: Arc<AtomicUsize>,
    inner_first: bool,
}

pub(super) fn lanes() -> (Door, Lanes) {
    let (outer_in, outer) = mpsc::channel(WAITING);
    let (inner_in, inner) = mpsc::unbounded_channel();
    let waiting = Arc::new(AtomicUsize::new(0));
    let door = Door { outer: outer_in, inner: inner_in, inner_waiting: Arc::clone(&waiting) };
    (door, Lanes { outer, inner, inner_waiting: waiting, inner_first: true })
}

impl Door {
    pub(super) fn ask(&self, asked: Asked) -> Result<(), Declined> {
        self.outer.try_send(asked).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => Declined::Busy,
            mpsc::error::TrySendError::Closed(_) => Declined::NotLeading,
        })
    }

    pub(super) fn ask_inside(&self, asked: Asked) -> Result<(), Declined> {
        self.inner_waiting.fetch_add(1, Ordering::Relaxed);
        self.inner.send(asked).map_err(|_| Declined::NotLeading)
    }

    /// How many wait: those of others, and the board's own.
    pub(super) fn waiting(&self) -> (usize, usize) {
        let outer = self.outer.max_capacity() - self.outer.capacity();
        (outer, self.inner_waiting.load(Ordering::Relaxed))
    }
}

impl Lanes {
    /// The next request, when there is one.
    pub(super) async fn next(&mut self) -> Option<Asked> {
        let (asked, inner) = if self.inner_first {
            tokio::select! {
                biased;
                asked = self.inner.recv() => (asked, true),
                asked = self.outer.recv() => (asked, false),
            }
        } else {
            tokio::select! {
                biased;
                asked = self.outer.recv() => (asked, false),
                asked = self.inner.recv() => (asked, true),
            }
        };
        asked.map(|asked| self.taken(asked, inner))
    }

    /// The next request, if there is one already.
    pub(super) fn try_next(&mut self) -> Option<Asked> {
        let (asked, inner) = if self.inner_first {
            let asked = self.inner.try_recv().map(|asked| (asked, true));
            asked.or_else(|_| self.outer.try_recv().map(|asked| (asked, false)))
        } else {
            let asked = self.outer.try_recv().map(|asked| (asked, false));
            asked.or_else(|_| self.inner.try_recv().map(|asked| (asked, true)))
        }
        .ok()?;
        Some(self.taken(asked, inner))
    }

    /// Sends those from outside away who wait; the board's own stay.
    pub(super) fn turn_away(&mut self, why: &Declined) {
        while let Ok(asked) = self.outer.try_recv() {
            asked.answer(Err(why.clone()));
        }
    }

    fn taken(&mut self, asked: Asked, inner: bool) -> Asked {
        self.inner_first = !inner;
        if inner {
            self.inner_waiting.fetch_sub(1, Ordering::Relaxed);
        }
        asked
    }
}
