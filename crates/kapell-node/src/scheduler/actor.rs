//! The actor that owns all runs under way: one task, told everything by messages.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use kapell_core::board::JobId;
use kapell_core::job::SchedulerNews;
use kapell_core::job::admit::{Places, Terms};
use kapell_core::run::Happened;
use kapell_core::seams::{Clock, Moment, Timestamp};
use rustc_hash::{FxHashMap, FxHashSet};
use tokio::sync::{mpsc, watch};
use tokio::task::{Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use super::backend::{Attempt, News, What};
use super::checker::Checker;
use super::entry::Working;
use super::generator::Generator;
use super::heart::Heart;
use super::inbox::Message;
use super::lanes::{Deed, Discharge, Errand, Kind, Lanes};
use super::perform::{self, Case};
use super::service::Settings;
use super::slab::{Key, Slab};
use super::stats::{Collector, Snapshot};
use super::supplies::Backends;
use super::syncer::{Stored, Syncer};
use super::timers::{Timers, Watch};
use crate::board::Board;
use crate::constraint::Pulse;

/// The longest sleep: somebody may set the clock meanwhile.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);
/// How much of one kind is dealt with before the others have their turn.
pub(super) const SLICE: usize = 4_096;
/// After so many passes old runs are looked for.
const HISTORY_PASSES: u64 = 10;

/// What a backend has.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) backend: usize,
    pub(super) attempts: Result<Vec<Attempt>, String>,
}

/// What a task was for.
#[derive(Debug, Clone, Copy)]
struct Purpose {
    kind: Kind,
    /// None of what is done for no run under way.
    run: Option<(Key, u32)>,
}

/// Where it hears from others.
#[derive(Debug)]
pub(super) struct Ears {
    pub(super) inbox: mpsc::Receiver<Message>,
    pub(super) board: mpsc::UnboundedReceiver<SchedulerNews>,
    pub(super) backends: mpsc::UnboundedReceiver<News>,
    pub(super) stop: CancellationToken,
}

#[derive(Debug)]
pub(super) struct Actor {
    pub(super) board: Board,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) backends: Backends,
    pub(super) checker: Arc<dyn Checker>,
    pub(super) slab: Slab,
    pub(super) timers: Timers,
    pub(super) places: Places,
    pub(super) generator: Generator,
    pub(super) syncer: Syncer,
    pub(super) lanes: Lanes,
    pub(super) stats: Collector,
    pub(super) todo: VecDeque<(Key, Happened)>,
    /// Whose states changed since all have settled last.
    pub(super) changed: Vec<Key>,
    pub(super) searches: JoinSet<Found>,
    /// Jobs that are paused or suspended, as far as the board's news were read.
    pub(super) resting: FxHashSet<JobId>,
    /// All news of the board were read when this turn began.
    pub(super) caught_up: bool,
    /// Where the turn of being looked after is.
    pub(super) looked_after: usize,
    settings: Settings,
    heart: Heart,
    watch: Watch,
    tasks: JoinSet<Option<Happened>>,
    purposes: FxHashMap<Id, Purpose>,
    /// Requests to the board whose answers go straight to whoever asked.
    pub(super) asked: FuturesUnordered<BoxFuture<'static, ()>>,
    pub(super) shown: watch::Sender<Arc<Snapshot>>,
    next_flush: Moment,
    next_pass: Moment,
    passes: u64,
}

enum Event {
    Stop,
    Task(Option<Result<(Id, Option<Happened>), JoinError>>),
    Searched(Option<Result<Found, JoinError>>),
    Stored(Option<Vec<Stored>>),
    Planned,
    Asked,
    Backend(Option<News>),
    Board(Option<SchedulerNews>),
    Message(Option<Message>),
    Woken,
}

/// What an actor is made of.
#[derive(Debug)]
pub(super) struct Makings {
    pub(super) board: Board,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) backends: Backends,
    pub(super) checker: Arc<dyn Checker>,
    pub(super) settings: Settings,
    pub(super) shown: watch::Sender<Arc<Snapshot>>,
}

impl Actor {
    pub(super) fn new(makings: Makings) -> Self {
        let Makings { board, clock, backends, checker, settings, shown } = makings;
        let now = clock.now();
        Self {
            syncer: Syncer::new(board.clone()),
            lanes: Lanes::new(&settings.limits),
            generator: Generator::new(settings.ahead),
            heart: Heart::new(settings.heartbeat, settings.most_missed, now),
            watch: Watch::new(now, clock.wall()),
            next_flush: now,
            next_pass: now.after(settings.safety_pass),
            board,
            clock,
            backends,
            checker,
            settings,
            shown,
            slab: Slab::default(),
            timers: Timers::default(),
            places: Places::default(),
            stats: Collector::default(),
            todo: VecDeque::new(),
            changed: Vec::new(),
            searches: JoinSet::new(),
            resting: FxHashSet::default(),
            caught_up: false,
            looked_after: 0,
            tasks: JoinSet::new(),
            purposes: FxHashMap::default(),
            asked: FuturesUnordered::new(),
            passes: 0,
        }
    }

    pub(super) fn wall(&self) -> Timestamp {
        self.clock.wall()
    }

    /// Leads all runs until it is told to stop. What is under way then is let go of: the next leader finds it.
    pub(super) async fn run(mut self, mut ears: Ears) {
        loop {
            // Whoever was told that a job is paused sees none of its runs begin.
            self.read_news(&mut ears.board);
            let wait = self.turn();
            let event = self.hear(&mut ears, wait).await;
            match event {
                Event::Stop | Event::Board(None) | Event::Backend(None) | Event::Message(None) => {
                    return;
                }
                Event::Message(Some(message)) => self.answer(message),
                Event::Task(Some(done)) => {
                    self.task_done(done);
                    for _ in 0..SLICE {
                        let Some(done) = self.tasks.try_join_next_with_id() else { break };
                        self.task_done(done);
                    }
                }
                Event::Searched(Some(Ok(found))) => self.searched(found),
                Event::Stored(Some(stored)) => {
                    self.stored(stored);
                    let clock = Arc::clone(&self.clock);
                    for _ in 0..SLICE {
                        let next = self.syncer.next(|| clock.now()).now_or_never();
                        let Some(Some(stored)) = next else { break };
                        self.stored(stored);
                    }
                }
                Event::Backend(Some(news)) => {
                    self.news(news);
                    for _ in 0..SLICE {
                        let Ok(news) = ears.backends.try_recv() else { break };
                        self.news(news);
                    }
                }
                Event::Board(Some(news)) => self.told(news),
                Event::Task(None)
                | Event::Searched(Some(Err(_)) | None)
                | Event::Stored(None)
                | Event::Planned
                | Event::Asked
                | Event::Woken => {}
            }
        }
    }

    fn read_news(&mut self, board: &mut mpsc::UnboundedReceiver<SchedulerNews>) {
        for _ in 0..SLICE {
            let Ok(news) = board.try_recv() else { break };
            self.told(news);
        }
        self.caught_up = board.is_empty();
    }

    async fn hear(&mut self, ears: &mut Ears, wait: Duration) -> Event {
        let clock = Arc::clone(&self.clock);
        tokio::select! {
            biased;
            () = ears.stop.cancelled() => Event::Stop,
            stored = self.syncer.next(|| clock.now()), if !self.syncer.is_idle() => Event::Stored(stored),
            // Before the end of a stop: what it ended is told of first.
            news = ears.backends.recv() => Event::Backend(news),
            ended = self.tasks.join_next_with_id(), if !self.tasks.is_empty() => Event::Task(ended),
            _ = self.generator.answered(|| clock.wall()), if !self.generator.is_idle() => Event::Planned,
            news = ears.board.recv() => Event::Board(news),
            message = ears.inbox.recv() => Event::Message(message),
            found = self.searches.join_next(), if !self.searches.is_empty() => Event::Searched(found),
            _ = self.asked.next(), if !self.asked.is_empty() => Event::Asked,
            () = tokio::time::sleep(wait) => Event::Woken,
        }
    }

    /// Does all that is due, and says how long there is nothing more to do.
    fn turn(&mut self) -> Duration {
        let (now, wall) = (self.clock.now(), self.wall());
        let jump = self.watch.look(now, wall);
        if jump != 0 {
            self.clock_set(jump);
        }
        self.settle();
        self.ring(wall);
        if !self.syncer.is_full() {
            self.generator.turn(&self.board, wall);
        }
        if self.heart.next() <= now {
            for (key, happened) in self.heart.sweep(&mut self.slab, now) {
                self.tell(key, happened);
            }
        }
        if self.next_pass <= now {
            self.next_pass = now.after(self.settings.safety_pass);
            self.look_after();
            self.search_all();
            self.passes += 1;
            if self.passes.is_multiple_of(HISTORY_PASSES) {
                self.clear_histories();
            }
        }
        if self.next_flush <= now {
            self.next_flush = now.after(self.settings.stats_flush);
            self.show();
        }
        self.settle();
        self.begin_errands();
        self.syncer.flush(now);
        self.until_next(now, wall)
    }

    fn until_next(&self, now: Moment, wall: Timestamp) -> Duration {
        let mut wait = LONGEST_SLEEP;
        if !self.syncer.is_full() {
            let walls = [self.timers.next(), self.generator.due()];
            wait = walls.into_iter().flatten().map(|at| at.since(wall)).fold(wait, Duration::min);
        }
        let moments = [
            Some(self.heart.next()),
            Some(self.next_flush),
            Some(self.next_pass),
            self.syncer.due(),
        ];
        moments.into_iter().flatten().map(|at| at.since(now)).fold(wait, Duration::min)
    }

    fn begin_errands(&mut self) {
        while let Some(errand) = self.lanes.take() {
            self.begin(errand);
        }
        while let Some(Discharge { backend, attempts, stop }) = self.lanes.take_discharge() {
            let backend = Arc::clone(self.backends.get(backend));
            let logs = self.backends.keeps().map(|keeps| keeps.logs.clone());
            let task = self.tasks.spawn(async move {
                perform::discharge(backend, attempts, stop, logs).await;
                None
            });
            self.purposes.insert(task.id(), Purpose { kind: Kind::Release, run: None });
        }
    }

    /// Begins what was asked for, unless it is not wanted any more.
    fn begin(&mut self, errand: Errand) {
        let Errand { key, ticket, attempt, deed } = errand;
        let kind = deed.kind();
        if matches!(deed, Deed::Launch) && !self.board.may_act() {
            // Whoever leads by now decides what becomes of it.
            return self.lanes.ended(kind);
        }
        let wanted = self.slab.get(key).filter(|entry| entry.ticket == ticket);
        let Some(entry) = wanted else { return self.lanes.ended(kind) };
        let run_id = entry.it.run_id();
        let run = self.board.look(run_id.job(), |records| records.runs.get(run_id).cloned());
        let Some(run) = run else {
            // Nothing more can be stored of it; what is left of its work goes when it is let go of.
            let over = entry.it.state().is_final();
            self.lanes.ended(kind);
            let gone = Happened::Stopped { attempt, left: None };
            return self.tell(key, if over { gone } else { Happened::Silent });
        };
        let (definition, pulse) = (Arc::clone(&entry.it.plan().definition), Pulse::default());
        let backend =
            Backends::number_for(&definition).map(|backend| Arc::clone(self.backends.get(backend)));
        let started_at = entry.it.started_at();
        let case = Case { definition, run, attempt, started_at, pulse: pulse.clone() };
        let checker = Arc::clone(&self.checker);
        let launching = matches!(deed, Deed::Launch);
        let work: BoxFuture<'static, Happened> = match deed {
            Deed::Check => Box::pin(perform::check(case, checker)),
            Deed::Act => Box::pin(perform::act(case, checker)),
            Deed::CheckPost { work } => Box::pin(perform::check_post(case, checker, work)),
            Deed::Launch => Box::pin(perform::launch(case, backend)),
            Deed::Find => Box::pin(perform::find(case, backend)),
            Deed::Stop { kind } => Box::pin(perform::stop(case, backend, kind)),
        };
        let abort = self.tasks.spawn(async move { Some(work.await) });
        self.purposes.insert(abort.id(), Purpose { kind, run: Some((key, ticket)) });
        let working = Working { abort, pulse, seen: 0, last: self.clock.now() };
        if let Some(entry) = self.slab.get_mut(key) {
            entry.working = Some(Box::new(working));
            entry.launching = launching;
        }
    }

    fn task_done(&mut self, done: Result<(Id, Option<Happened>), JoinError>) {
        match done {
            Ok((id, happened)) => self.ended(id, happened),
            Err(error) => self.task_lost(&error),
        }
    }

    /// A task has done what it was for.
    fn ended(&mut self, id: Id, happened: Option<Happened>) {
        let Some(purpose) = self.purposes.remove(&id) else { return };
        self.lanes.ended(purpose.kind);
        let Some((key, ticket)) = purpose.run else { return };
        let Some(entry) = self.slab.get_mut(key) else { return };
        let mine = entry.working.as_ref().is_some_and(|working| working.abort.id() == id);
        if mine {
            entry.working = None;
            entry.launching = false;
        }
        let (counts, attempt) = (entry.ticket == ticket, entry.it.attempt());
        if let Some(kind) = entry.stop_then.take_if(|_| mine) {
            return self.errand(key, attempt, Deed::Stop { kind });
        }
        if let Some(happened) = happened.filter(|_| counts) {
            self.tell(key, happened);
        }
    }

    /// It was let go of; or it failed in a way that nobody foresaw, and then its run is found to be silent.
    fn task_lost(&mut self, error: &JoinError) {
        let Some(purpose) = self.purposes.remove(&error.id()) else { return };
        self.lanes.ended(purpose.kind);
        if !error.is_panic() {
            return;
        }
        tracing::error!(%error, "a task of the scheduler failed");
        // A launch that failed so is under way no more: what waits for its end may go on.
        let Some((key, _)) = purpose.run else { return };
        let Some(entry) = self.slab.get_mut(key) else { return };
        if entry.working.as_ref().is_some_and(|working| working.abort.id() == error.id()) {
            entry.launching = false;
            let (attempt, stop) = (entry.it.attempt(), entry.stop_then.take());
            if let Some(kind) = stop {
                self.errand(key, attempt, Deed::Stop { kind });
            }
        }
    }

    fn stored(&mut self, stored: Vec<Stored>) {
        for Stored { run_id, kind, attempt } in stored {
            if let Some(key) = self.slab.key(&run_id) {
                self.tell(key, Happened::Stored { kind, attempt });
            }
        }
    }

    fn news(&mut self, news: News) {
        let News { attempt: Attempt { run_id, number: attempt }, what } = news;
        let Some(key) = self.slab.key(&run_id) else { return };
        let happened = match what {
            What::Started { at } => Happened::Started { attempt, at },
            What::Unstartable { why } => Happened::Unstartable { attempt, why },
            What::Ended(work) => Happened::Ended { attempt, work },
        };
        self.tell(key, happened);
    }

    /// News of the board.
    fn told(&mut self, news: SchedulerNews) {
        match news {
            SchedulerNews::Applied { job_id } => {
                if let Some((_, definition)) = self.current(&job_id) {
                    let decisions = self.places.update(&job_id, Terms::of(&definition));
                    self.decided(decisions);
                }
                self.hand_on(&job_id);
                self.note_rest(&job_id);
                self.generator.look_at(job_id);
            }
            SchedulerNews::Paused { job_id, .. } | SchedulerNews::Resumed { job_id } => {
                self.note_rest(&job_id);
                self.generator.look_at(job_id);
            }
            SchedulerNews::Removed { job_id } | SchedulerNews::Skips { job_id } => {
                self.generator.look_at(job_id);
            }
            SchedulerNews::Gone { job_id } => {
                let decisions = self.places.forget(&job_id);
                self.decided(decisions);
                self.generator.forget(&job_id);
                self.stats.forget(&job_id);
                self.resting.remove(&job_id);
            }
            SchedulerNews::Made { run_id } => {
                let run =
                    self.board.look(run_id.job(), |records| records.runs.get(&run_id).cloned());
                if let Some(run) = run.filter(|run| !run.state.is_final()) {
                    self.take_up(&run);
                }
            }
            SchedulerNews::CancelWanted { run_id, kind, why } => {
                if let Some(key) = self.slab.key(&run_id) {
                    self.tell(key, Happened::Cancel { kind, why });
                }
            }
            SchedulerNews::Task { guid } => self.backends.task_changed(&guid),
        }
    }
}
