//! The job state syncer: brings what must not be lost of runs to the board.
//!
//! Of one run at most one update is on its way, and exactly that one is sent again until the board has answered: what
//! comes meanwhile is put together into the next. So nothing is lost, nothing is written twice, and nothing overtakes.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use kapell_core::board::{Refusal, Request};
use kapell_core::job::JobRequest;
use kapell_core::run::{Entry, Run, RunId, RunUpdate, UpdateKind};
use kapell_core::seams::Moment;
use tokio::sync::mpsc;

use super::insist::insist_later;
use super::lanes::let_go;
use super::slab::{CHUNK, Key};
use crate::board::{Board, Declined, Tagged};
use crate::failpoint;

/// So many for which nobody waits are kept back at most while others are on their way, or for so long.
const FLUSH_AT: usize = 100;
const FLUSH_AFTER: Duration = Duration::from_secs(1);
/// So many are on their way at once: the board commits them in groups.
const MOST_FLYING: usize = 4_096;
/// With so many waiting to be sent, others that nobody waits for need not be made yet.
const BUSY: usize = 4_096;
/// With so many waiting, whoever makes more of them is slowed down.
const FULL: usize = 131_072;

/// An update that the board has answered, with those before it that were put together with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) key: Key,
    /// Its run with it, if that changed anything.
    pub(super) run: Option<Arc<Run>>,
    /// Why the board does not take it: then it is not on disk, and never will be.
    pub(super) refused: Option<String>,
    earlier: Vec<Which>,
    last: Which,
}

/// Which update of a run.
pub(super) type Which = (UpdateKind, u32);

impl Stored {
    /// All of them, in the order in which they were made.
    pub(super) fn all(&self) -> impl Iterator<Item = Which> {
        self.earlier.iter().copied().chain([self.last])
    }
}

#[derive(Debug)]
struct Line {
    key: Key,
    run_id: RunId,
    /// On its way, unchanged until it is answered.
    sent: Option<Parcel>,
    next: Option<Parcel>,
}

/// One update, and which ones it stands for.
#[derive(Debug)]
struct Parcel {
    update: Arc<RunUpdate>,
    /// Of those before it that were put together with it.
    earlier: Vec<Which>,
}

/// The lines of all runs that have one, each at the slot of its run: there may be very many at once.
#[derive(Debug, Default)]
struct Lines {
    slots: Vec<Option<Box<Line>>>,
    count: usize,
}

impl Lines {
    fn get(&self, key: Key) -> Option<&Line> {
        self.slots.get(key.slot())?.as_deref().filter(|line| line.key == key)
    }

    fn get_mut(&mut self, key: Key) -> Option<&mut Line> {
        self.slots.get_mut(key.slot())?.as_deref_mut().filter(|line| line.key == key)
    }

    /// The line of a run, made if there is none. A slot is used again only once nothing of its run is to be stored.
    fn of(&mut self, key: Key, run_id: &RunId) -> &mut Line {
        let slot = key.slot();
        if self.slots.len() <= slot {
            self.slots.resize_with((slot + 1).next_multiple_of(CHUNK), || None);
        }
        let line = &mut self.slots[slot];
        self.count += usize::from(line.is_none());
        debug_assert!(line.as_ref().is_none_or(|line| line.key == key), "it has another run");
        line.get_or_insert_with(|| {
            Box::new(Line { key, run_id: run_id.clone(), sent: None, next: None })
        })
    }

    fn remove(&mut self, key: Key) {
        if self.get(key).is_some() {
            self.slots[key.slot()] = None;
            self.count -= 1;
        }
    }
}

#[derive(Debug)]
pub(super) struct Syncer {
    board: Board,
    lines: Lines,
    queue: VecDeque<(Moment, Key)>,
    /// Those before whose storing nothing is launched: they do not wait for others.
    urgent: VecDeque<Key>,
    /// How many are on their way.
    flying: usize,
    /// Where answers come in.
    answers: mpsc::UnboundedReceiver<Tagged>,
    answer: mpsc::UnboundedSender<Tagged>,
    /// What the board could not decide, and is asked again after a while.
    again: FuturesUnordered<BoxFuture<'static, Tagged>>,
}

impl Syncer {
    pub(super) fn new(board: Board) -> Self {
        let (answer, answers) = mpsc::unbounded_channel();
        Self {
            board,
            lines: Lines::default(),
            queue: VecDeque::new(),
            urgent: VecDeque::new(),
            flying: 0,
            answers,
            answer,
            again: FuturesUnordered::new(),
        }
    }

    pub(super) fn offer(
        &mut self,
        (key, run_id): (Key, &RunId),
        mut update: Arc<RunUpdate>,
        now: Moment,
    ) {
        let line = self.lines.of(key, run_id);
        let mut earlier = Vec::new();
        let mut waits = false;
        if let Some(next) = line.next.take() {
            waits = true;
            earlier = next.earlier;
            if next.update.which() != update.which() {
                earlier.push(next.update.which());
            }
            Arc::make_mut(&mut update).include(Arc::unwrap_or_clone(next.update));
        }
        let is_urgent = update.kind == UpdateKind::Intent;
        let is_free = line.sent.is_none();
        line.next = Some(Parcel { update, earlier });
        // What comes behind one that is on its way is put in line when that one is answered.
        if is_free && (is_urgent || !waits) {
            self.line_up(key, is_urgent, now);
        }
    }

    fn line_up(&mut self, key: Key, is_urgent: bool, now: Moment) {
        if is_urgent {
            self.urgent.push_back(key);
        } else {
            self.queue.push_back((now, key));
        }
    }

    /// What was noted of a run and is on its way.
    pub(super) fn noted(&self, key: Key) -> impl Iterator<Item = Entry> {
        let line = self.lines.get(key);
        let sent = line.and_then(|line| line.sent.as_ref());
        let next = line.and_then(|line| line.next.as_ref());
        [sent, next].into_iter().flatten().flat_map(|parcel| &parcel.update.timeline)
    }

    /// Whether whoever makes updates is to wait.
    pub(super) fn is_full(&self) -> bool {
        self.lines.count >= FULL
    }

    /// Whether what nobody waits for had better be made later: an update that waits costs much more than the news of it.
    pub(super) fn is_busy(&self) -> bool {
        self.queue.len() >= BUSY
    }

    /// Whether one more that is urgent would be sent with the next flush.
    pub(super) fn has_room(&self) -> bool {
        self.flying + self.urgent.len() < MOST_FLYING
    }

    /// How many runs have updates that are not stored.
    pub(super) fn waiting(&self) -> usize {
        self.lines.count
    }

    pub(super) const fn is_idle(&self) -> bool {
        self.flying == 0
    }

    /// When what waits is sent at the latest; with too much on its way, once some of that is answered.
    pub(super) fn due(&self) -> Option<Moment> {
        let next = self.queue.front().filter(|_| self.flying < MOST_FLYING);
        next.map(|(since, _)| since.after(FLUSH_AFTER))
    }

    /// Sends what waits: at once what is urgent, and the rest if nothing is on its way, there is enough of it or it has
    /// waited long.
    pub(super) fn flush(&mut self, now: Moment) {
        let due = self.due().is_some_and(|due| due <= now);
        let all = self.flying == 0 || self.queue.len() >= FLUSH_AT || due;
        while self.flying < MOST_FLYING {
            let key = match self.urgent.pop_front() {
                Some(key) => key,
                None if !all => return,
                None => match self.queue.pop_front() {
                    Some((_, key)) => key,
                    None => {
                        let_go(&mut self.urgent);
                        return let_go(&mut self.queue);
                    }
                },
            };
            let Some(line) = self.lines.get_mut(key) else { continue };
            let Some(parcel) = line.next.take() else { continue };
            let (run_id, update) = (line.run_id.clone(), Arc::clone(&parcel.update));
            line.sent = Some(parcel);
            self.flying += 1;
            failpoint::pass(update.kind.name());
            let request =
                JobRequest::Update { run_id: run_id.clone(), update: Arc::clone(&update) };
            if self.board.ask_tagged((key.tag(), Request::Job(request)), &self.answer).is_err() {
                self.ask_again(key, run_id, update);
            }
        }
    }

    fn ask_again(&self, key: Key, run_id: RunId, update: Arc<RunUpdate>) {
        let board = self.board.clone();
        self.again.push(Box::pin(async move {
            let request = JobRequest::Update { run_id, update };
            let answer = insist_later(&board, request).await.map_err(Declined::Refused);
            Tagged { tag: key.tag(), answer }
        }));
    }

    /// The next one that is on disk, with all that it stands for; none if nothing is on its way.
    pub(super) async fn next(&mut self, now: impl Fn() -> Moment) -> Option<Stored> {
        let (key, run, refused) = loop {
            let Tagged { tag, answer } = tokio::select! {
                biased;
                told = self.answers.recv(), if self.flying > self.again.len() => told?,
                told = self.again.next(), if !self.again.is_empty() => told?,
                else => return None,
            };
            let key = Key::of_tag(tag);
            let line = self.lines.get(key)?;
            let sent = line.sent.as_ref()?;
            let (run, refused) = match answer {
                Ok(reply) => {
                    failpoint::pass_stored(sent.update.kind.name());
                    (reply.into_run(), None)
                }
                // What the board refuses it will always refuse: the run is gone, or it is a mistake.
                Err(Declined::Refused(why)) => {
                    log_refused(&line.run_id, &sent.update, &why);
                    (None, Some(why.to_string()))
                }
                Err(
                    Declined::Busy
                    | Declined::ReadOnly(_)
                    | Declined::Unsettled(_)
                    | Declined::NotLeading,
                ) => {
                    self.ask_again(key, line.run_id.clone(), Arc::clone(&sent.update));
                    continue;
                }
            };
            break (key, run, refused);
        };
        self.flying -= 1;
        let line = self.lines.get_mut(key)?;
        let Parcel { update, earlier } = line.sent.take()?;
        match line.next.as_ref().map(|next| next.update.kind == UpdateKind::Intent) {
            Some(is_urgent) => self.line_up(key, is_urgent, now()),
            None => self.lines.remove(key),
        }
        Some(Stored { key, run, refused, earlier, last: update.which() })
    }
}

fn log_refused(run_id: &RunId, update: &RunUpdate, why: &Refusal) {
    let (job_id, attempt, state) = (run_id.job(), update.attempt, update.state.name());
    tracing::error!(%run_id, job_id, state, attempt, %why, "the board does not take what became of a run");
}
