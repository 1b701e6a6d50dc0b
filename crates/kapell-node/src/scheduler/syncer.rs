//! The job state syncer: brings what must not be lost of runs to the board.
//!
//! Of one run at most one update is on its way, and exactly that one is sent again until the board has answered: what
//! comes meanwhile is put together into the next. So nothing is lost, nothing is written twice, and nothing overtakes.

use std::collections::VecDeque;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use kapell_core::job::JobRequest;
use kapell_core::run::{Entry, RunId, RunUpdate, UpdateKind};
use kapell_core::seams::Moment;
use rustc_hash::FxHashMap;

use super::insist::insist;
use crate::board::Board;
use crate::failpoint;

/// So many wait at most while others are on their way, or so long.
const FLUSH_AT: usize = 100;
const FLUSH_AFTER: Duration = Duration::from_secs(1);
/// So many are on their way at once: the board commits them in groups.
const MOST_FLYING: usize = 4_096;
/// With so many waiting, whoever makes more of them is slowed down.
const FULL: usize = 131_072;

/// An update that is on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) run_id: RunId,
    pub(super) kind: UpdateKind,
    pub(super) attempt: u32,
}

#[derive(Debug, Default)]
struct Line {
    /// On its way, unchanged until it is answered.
    sent: Option<Parcel>,
    next: Option<Parcel>,
}

/// One update, and which ones it stands for.
#[derive(Debug, Clone)]
struct Parcel {
    update: Box<RunUpdate>,
    kinds: Vec<(UpdateKind, u32)>,
}

type Flight = BoxFuture<'static, RunId>;

#[derive(Debug)]
pub(super) struct Syncer {
    board: Board,
    lines: FxHashMap<RunId, Line>,
    queue: VecDeque<(Moment, RunId)>,
    flying: FuturesUnordered<Flight>,
}

impl Syncer {
    pub(super) fn new(board: Board) -> Self {
        Self {
            board,
            lines: FxHashMap::default(),
            queue: VecDeque::new(),
            flying: FuturesUnordered::new(),
        }
    }

    pub(super) fn offer(&mut self, run_id: &RunId, mut update: Box<RunUpdate>, now: Moment) {
        let line = self.lines.entry(run_id.clone()).or_default();
        let mut kinds = Vec::with_capacity(1);
        if let Some(earlier) = line.next.take() {
            kinds = earlier.kinds;
            update.include(*earlier.update);
        } else if line.sent.is_none() {
            self.queue.push_back((now, run_id.clone()));
        }
        let id = (update.kind, update.attempt);
        if !kinds.contains(&id) {
            kinds.push(id);
        }
        line.next = Some(Parcel { update, kinds });
    }

    /// What was noted of a run and is on its way.
    pub(super) fn noted(&self, run_id: &RunId) -> impl Iterator<Item = Entry> {
        let line = self.lines.get(run_id);
        let parcels = line.map(|line| [&line.sent, &line.next]).into_iter().flatten().flatten();
        parcels.flat_map(|parcel| parcel.update.timeline.clone())
    }

    /// Whether whoever makes updates is to wait.
    pub(super) fn is_full(&self) -> bool {
        self.lines.len() >= FULL
    }

    /// How many runs have updates that are not stored.
    pub(super) fn waiting(&self) -> usize {
        self.lines.len()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.flying.is_empty()
    }

    /// When what waits is sent at the latest.
    pub(super) fn due(&self) -> Option<Moment> {
        self.queue.front().map(|(since, _)| since.after(FLUSH_AFTER))
    }

    /// Sends what waits: at once if nothing is on its way, else when there is enough of it or it has waited long.
    pub(super) fn flush(&mut self, now: Moment) {
        let due = self.due().is_some_and(|due| due <= now);
        if !self.flying.is_empty() && self.queue.len() < FLUSH_AT && !due {
            return;
        }
        while self.flying.len() < MOST_FLYING {
            let Some((_, run_id)) = self.queue.pop_front() else { return };
            let Some(line) = self.lines.get_mut(&run_id) else { continue };
            let Some(parcel) = line.next.take() else { continue };
            let update = parcel.update.clone();
            line.sent = Some(parcel);
            self.flying.push(Box::pin(deliver(self.board.clone(), run_id, update)));
        }
    }

    /// What a rush needed is not kept when it is over.
    fn let_go(&mut self) {
        if self.lines.is_empty() && self.lines.capacity() > MOST_FLYING {
            (self.lines, self.queue) = Default::default();
        }
    }

    /// The next one that is on disk, with all that it stands for; none if nothing is on its way.
    pub(super) async fn next(&mut self, now: impl Fn() -> Moment) -> Option<Vec<Stored>> {
        let run_id = self.flying.next().await?;
        let line = self.lines.get_mut(&run_id)?;
        let sent = line.sent.take()?;
        if line.next.is_some() {
            self.queue.push_back((now(), run_id.clone()));
        } else {
            self.lines.remove(&run_id);
            self.let_go();
        }
        let stored = |(kind, attempt)| Stored { run_id: run_id.clone(), kind, attempt };
        Some(sent.kinds.into_iter().map(stored).collect())
    }
}

/// What the board refuses it will always refuse: the run is gone, or it is a mistake.
async fn deliver(board: Board, run_id: RunId, update: Box<RunUpdate>) -> RunId {
    let (kind, attempt, state) = (update.kind, update.attempt, update.state.name());
    failpoint::pass(kind.name());
    match insist(&board, JobRequest::Update { run_id: run_id.clone(), update }).await {
        Ok(_) => failpoint::pass(&format!("{}-stored", kind.name())),
        Err(why) => {
            let job_id = run_id.job();
            tracing::error!(%run_id, job_id, state, attempt, %why, "the board does not take what became of a run");
        }
    }
    run_id
}
