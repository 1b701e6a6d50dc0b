//! The actor that owns all runs under way: one task, told everything by messages.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use kapell_core::board::JobId;
use kapell_core::job::SchedulerNews;
use kapell_core::job::admit::{Places, Terms};
use kapell_core::run::{Happened, RunState, UpdateKind};
use kapell_core::seams::{Clock, Moment, Timestamp};
use rustc_hash::{FxHashMap, FxHashSet};
use tokio::sync::{mpsc, watch};
use tokio::task::{Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use super::backend::{Attempt, News, What};
use super::checker::Checker;
use super::errands::Purpose;
use super::generator::Generator;
use super::heart::Heart;
use super::inbox::Message;
use super::lanes::{Lanes, let_go};
use super::launcher::{Launched, Start};
use super::service::Settings;
use super::slab::{Key, Slab};
use super::stats::{Collector, Snapshot};
use super::supplies::Backends;
use super::syncer::{Stored, Syncer};
use super::timers::{Timers, Watch};
use crate::board::Board;

/// The longest sleep: somebody may set the clock meanwhile.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);
/// How much of one kind is dealt with before the others have their turn.
const SLICE: usize = 4_096;
/// The same for what was stored, for each of which there is something to launch.
const STORED_SLICE: usize = 256;
/// The same for what backends have said.
const HEARD_SLICE: usize = 256;
/// After so many passes old runs are looked for.
const HISTORY_PASSES: u64 = 10;

/// What a backend has.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) backend: usize,
    pub(super) attempts: Result<Vec<Attempt>, String>,
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
    /// Those that have their place and nothing to ask, and since when: they begin as soon as that can be stored.
    pub(super) begun: VecDeque<(Timestamp, Key)>,
    /// What backends have said while too much was to be stored, in its order.
    pub(super) held: VecDeque<News>,
    /// Whose states changed since all have settled last.
    pub(super) changed: Vec<Key>,
    pub(super) searches: JoinSet<Found>,
    /// What no run knows, by backend, and has been told of.
    pub(super) leftovers: BTreeSet<(usize, Attempt)>,
    /// Jobs that are paused or suspended, as far as the board's news were read.
    pub(super) resting: FxHashSet<JobId>,
    /// All news of the board were read when this turn began.
    pub(super) caught_up: bool,
    /// Where the turn of being looked after is.
    pub(super) looked_after: usize,
    pub(super) settings: Settings,
    /// Since when this host leads.
    pub(super) since: Timestamp,
    heart: Heart,
    watch: Watch,
    pub(super) tasks: JoinSet<Option<Happened>>,
    pub(super) purposes: FxHashMap<Id, Purpose>,
    /// Launches that are about to be made, and where those that were made are told of.
    pub(super) starts: Vec<Start>,
    pub(super) answers: mpsc::UnboundedSender<Vec<Launched>>,
    launched: mpsc::UnboundedReceiver<Vec<Launched>>,
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
    Stored(Option<Stored>),
    Launched(Option<Vec<Launched>>),
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
    pub(super) since: Timestamp,
    pub(super) shown: watch::Sender<Arc<Snapshot>>,
}

impl Actor {
    pub(super) fn new(makings: Makings) -> Self {
        let Makings { board, clock, backends, checker, settings, since, shown } = makings;
        let now = clock.now();
        let (answers, launched) = mpsc::unbounded_channel();
        Self {
            starts: Vec::new(),
            answers,
            launched,
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
            since,
            shown,
            slab: Slab::default(),
            timers: Timers::default(),
            places: Places::default(),
            stats: Collector::default(),
            todo: VecDeque::new(),
            begun: VecDeque::new(),
            held: VecDeque::new(),
            changed: Vec::new(),
            leftovers: BTreeSet::new(),
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
            // Who may be launched does not wait until nothing more is stored.
            while let Ok(launched) = self.launched.try_recv() {
                self.launches_answered(launched);
            }
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
                    for _ in 0..STORED_SLICE {
                        let next = self.syncer.next(|| clock.now()).now_or_never();
                        let Some(Some(stored)) = next else { break };
                        self.stored(stored);
                    }
                }
                Event::Launched(Some(launched)) => self.launches_answered(launched),
                Event::Backend(Some(news)) => {
                    self.held.push_back(news);
                    for _ in 0..SLICE {
                        let Ok(news) = ears.backends.try_recv() else { break };
                        self.held.push_back(news);
                    }
                }
                Event::Board(Some(news)) => self.told(news),
                Event::Task(None)
                | Event::Searched(Some(Err(_)) | None)
                | Event::Stored(None)
                | Event::Launched(None)
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
            launched = self.launched.recv() => Event::Launched(launched),
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
        self.hear_some();
        self.ring(wall);
        self.begin_decided();
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

    fn stored(&mut self, mut stored: Stored) {
        if let Some(entry) = self.slab.get_mut(stored.key) {
            let run = stored.run.take();
            entry.intent = run.filter(|run| run.state == RunState::ContainerCreating);
        }
        for (kind, attempt) in stored.all() {
            let happened = match &stored.refused {
                Some(why) if kind == UpdateKind::Intent => {
                    Happened::IntentRefused { attempt, why: why.clone() }
                }
                // Of the rest nobody waits for more than the answer.
                Some(_) | None => Happened::Stored { kind, attempt },
            };
            self.tell(stored.key, happened);
        }
    }

    /// Hears what backends have said, for as long as what follows from it can be stored soon.
    fn hear_some(&mut self) {
        while !self.syncer.is_busy() && !self.held.is_empty() {
            for _ in 0..HEARD_SLICE {
                let Some(news) = self.held.pop_front() else { break };
                self.news(news);
            }
            self.settle();
        }
        let_go(&mut self.held);
    }

    /// Hears all that backends have said.
    pub(super) fn hear_held(&mut self) {
        while let Some(news) = self.held.pop_front() {
            self.news(news);
        }
    }

    fn news(&mut self, news: News) {
        let News { attempt: Attempt { run_id, number: attempt }, what } = news;
        let Some(key) = self.slab.key(&run_id) else { return };
        let happened = match what {
            What::Started { at } => Happened::Started { attempt, at },
            What::Hindered { why } => Happened::Hindered { attempt, why },
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
            SchedulerNews::Removed { job_id } => self.generator.look_at(job_id),
            SchedulerNews::Skips { job_id } => {
                self.pass_over(&job_id);
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
                // Nobody else has to go for whoever is to have its place.
                self.places.leaves(&run_id);
                if let Some(key) = self.slab.key(&run_id) {
                    self.tell(key, Happened::Cancel { kind, why });
                }
            }
            SchedulerNews::Task { guid } => self.backends.task_changed(&guid),
        }
    }
}
