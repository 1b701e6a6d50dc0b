//! The loop of a run: the world becomes events, the machine decides, effects become I/O.

mod telling;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use kapell_backend::executor::{self, Control, Exit, Later};
use kapell_backend::local::Local;
use kapell_core::flow::{Effect, Ended, Event, Finish, Flow, Phase, Verdict};
use kapell_core::seams::Clock;
use kapell_core::workflow::StepIx;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::capture::{Capture, Captured, SharedLogger, Sink, Wanted, lock};
use super::context::{Context, Script, explain, fits};
use super::journal::{Given, RunJournal};
use super::places::{Command, Places};
use super::report::Report;

/// How often loggers hear how everything stands.
const STATUS_INTERVAL: Duration = Duration::from_millis(100);
/// How long processes that steps left behind may take to end.
const SWEEP_GRACE: Duration = Duration::from_secs(2);

/// How long what commands left elsewhere may take to be removed at the end.
const SETTLE_LIMIT: Duration = Duration::from_secs(10);
const HASTY_SETTLE_LIMIT: Duration = Duration::from_secs(3);

/// A command that has ended.
struct Done {
    step: StepIx,
    phase: Phase,
    result: Result<executor::Ended, executor::Error>,
    capture: Arc<Capture>,
    /// Kept until here so that the script's file outlives its process.
    _script: Option<Script>,
    settle: Option<Later<()>>,
}

/// What a run is made of.
pub(super) struct Parts {
    pub(super) flow: Flow,
    /// Steps whose standard output others look into.
    pub(super) quoted: Vec<StepIx>,
    pub(super) context: Context,
    pub(super) places: Places,
    /// Things to be done elsewhere while the run goes on.
    pub(super) chores: Vec<Later<()>>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) journal: Option<RunJournal>,
    pub(super) logger: SharedLogger,
    pub(super) sink: Arc<Sink>,
    pub(super) inbox: mpsc::Receiver<Event>,
}

pub(super) struct Actor {
    parts: Parts,
    running: BTreeMap<StepIx, Arc<dyn Control>>,
    tasks: JoinSet<Done>,
    lingering: JoinSet<()>,
    /// Removals that wait for the journal, and those under way.
    unsettled: Vec<Later<()>>,
    settling: JoinSet<()>,
    /// What steps that are about to succeed give to others.
    given: BTreeMap<StepIx, Given>,
    tails: BTreeMap<StepIx, String>,
    failed: Vec<StepIx>,
    todo: VecDeque<Event>,
    verdict: Option<Verdict>,
    /// Somebody wants the run to end now.
    hurried: bool,
}

impl Actor {
    pub(super) fn new(mut parts: Parts) -> Self {
        Self {
            unsettled: std::mem::take(&mut parts.chores),
            settling: JoinSet::new(),
            parts,
            running: BTreeMap::new(),
            tasks: JoinSet::new(),
            lingering: JoinSet::new(),
            given: BTreeMap::new(),
            tails: BTreeMap::new(),
            failed: Vec::new(),
            todo: VecDeque::new(),
            verdict: None,
            hurried: false,
        }
    }

    pub(super) async fn run(mut self, local: &Local) -> Report {
        let mut updates = lock(&self.parts.logger)
            .wants_status_updates()
            .then(|| tokio::time::interval(STATUS_INTERVAL));
        let mut effects = Vec::new();
        self.todo.push_back(Event::Begin);
        while !self.parts.flow.is_done() {
            if self.todo.is_empty() {
                self.wait(&mut updates).await;
            }
            while let Some(event) = self.todo.pop_front() {
                self.hurried |= event == Event::Kill;
                self.parts.flow.step(event, self.parts.clock.now(), &mut effects);
                for effect in effects.drain(..) {
                    self.perform(effect);
                }
                self.flush_journal();
                self.settle();
            }
        }
        let duration = self.parts.clock.now().since(self.parts.flow.begun());
        let swept = local.sweep(if self.hurried { Duration::ZERO } else { SWEEP_GRACE }).await;
        self.lingering.abort_all();
        self.settle_all().await;
        self.report(&swept, duration)
    }

    /// Removes what is left of commands whose end is on record.
    fn settle(&mut self) {
        for settle in self.unsettled.drain(..) {
            self.settling.spawn(settle);
        }
    }

    /// Waits until nothing of the run is left elsewhere, but not for long.
    async fn settle_all(&mut self) {
        self.unsettled.extend(self.parts.places.abandon_found());
        self.settle();
        let limit = if self.hurried { HASTY_SETTLE_LIMIT } else { SETTLE_LIMIT };
        let all = async { while self.settling.join_next().await.is_some() {} };
        // What is not removed by then is forgotten by its board in its own time.
        let _late = tokio::time::timeout(limit, all).await;
    }

    /// Waits until something happens.
    async fn wait(&mut self, updates: &mut Option<tokio::time::Interval>) {
        let due = self.parts.flow.due();
        let until_due = due.map(|due| due.since(self.parts.clock.now()));
        let timer = async {
            match until_due {
                Some(wait) => tokio::time::sleep(wait).await,
                None => std::future::pending().await,
            }
        };
        let update = async {
            match updates {
                Some(interval) => interval.tick().await,
                None => std::future::pending().await,
            }
        };
        let event = tokio::select! {
            biased;
            Some(event) = self.parts.inbox.recv() => Some(event),
            Some(done) = self.tasks.join_next() => match done {
                Ok(done) => Some(self.command_ended(done)),
                Err(panic) => std::panic::resume_unwind(panic.into_panic()),
            },
            () = timer => Some(Event::Due),
            _ = update => None,
        };
        match event {
            Some(event) => self.todo.push_back(event),
            None => self.update_status(),
        }
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Start { step, phase, attempt } => self.start(step, phase, attempt),
            Effect::Signal { step, hard } => {
                if let Some(control) = self.running.get(&step) {
                    control.signal(hard);
                }
            }
            Effect::Note(note) => self.tell(&note),
            Effect::Finished(verdict) => self.verdict = Some(verdict),
        }
    }

    fn start(&mut self, step: StepIx, phase: Phase, attempt: u32) {
        let workflow = Arc::clone(self.parts.flow.workflow());
        let command = Command { step, phase, attempt };
        let place = self.parts.places.of(&workflow, command, &self.parts.context);
        if let (Phase::Main, Ok(place), Some(journal)) = (phase, &place, &mut self.parts.journal)
            && let Some(placed) = &place.placed
        {
            let at = self.parts.clock.wall();
            journal.placed(at, &workflow.step(step).name, attempt, placed.clone());
        }
        // What made this step ready, and where to find it again, is on record before it does anything.
        self.flush_journal();
        if step.index() >= workflow.len() {
            self.describe_ending();
        }
        let capture =
            Arc::new(Capture::new(step, self.wanted(step, phase), Arc::clone(&self.parts.sink)));
        let output = Arc::<Capture>::clone(&capture);
        let started = place.and_then(|place| {
            let context = &self.parts.context;
            let prepared = context.job(step, workflow.step(step), phase, place.placed.is_some());
            let prepared = prepared.map_err(|error| error.to_string())?;
            let started = place.executor.start(&prepared.job, output);
            let started = started.map_err(|error| explain(&error, &prepared.job))?;
            Ok((started, prepared.script))
        });
        match started {
            Ok((started, script)) => {
                self.running.insert(step, started.control);
                let (ended, settle) = (started.ended, started.settle);
                self.tasks.spawn(async move {
                    Done { step, phase, result: ended.await, capture, _script: script, settle }
                });
            }
            Err(error) => {
                let ended = Ended { finish: Finish::Broken(error), stdout: String::new() };
                self.todo.push_back(Event::Ended { step, ended });
            }
        }
    }

    /// What is wanted of the output of a command.
    fn wanted(&self, step: StepIx, phase: Phase) -> Wanted {
        let options = &self.parts.flow.workflow().step(step).options;
        match phase {
            Phase::Main => Wanted {
                stdout: options.output.stdout.is_some()
                    || self.parts.quoted.binary_search(&step).is_ok(),
                stderr: options.output.stderr.is_some(),
                console: options.console,
            },
            Phase::When | Phase::Precondition(_) => Wanted { stdout: true, ..Wanted::default() },
        }
    }

    fn flush_journal(&mut self) {
        if let Some(journal) = &mut self.parts.journal {
            journal.flush();
        }
    }

    /// The run's id; empty if it is not journalled.
    fn run_id(&self) -> String {
        let journal = self.parts.journal.as_ref();
        journal.map_or_else(String::new, |journal| journal.id().to_string())
    }

    /// Tells handlers how the run went.
    fn describe_ending(&mut self) {
        let verdict = self.parts.flow.verdict();
        let failed = self.parts.flow.first_failure();
        let name = failed.map_or("", |step| &*self.parts.flow.workflow().step(step).name);
        let error = failed.and_then(|step| self.parts.flow.error(step)).unwrap_or_default();
        let run = self.run_id();
        self.parts.context.ending = [
            ("KAPELL_STATUS", verdict.name()),
            ("KAPELL_WORKFLOW", self.parts.flow.workflow().name.as_str()),
            ("KAPELL_RUN_ID", run.as_str()),
            ("KAPELL_FAILED_STEP", name),
            ("KAPELL_ERROR", error),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    }

    fn command_ended(&mut self, done: Done) -> Event {
        let Done { step, phase, result, capture, settle, .. } = done;
        self.unsettled.extend(settle);
        self.running.remove(&step);
        let captured = capture.captured();
        let finish = match result {
            Ok(ended) => {
                if let Some(lingering) = ended.lingering {
                    self.lingering.spawn(lingering);
                }
                match ended.exit {
                    Exit::Code(code) => Finish::Exited(code),
                    Exit::Signal(signal) => Finish::Killed(signal),
                }
            }
            Err(error) => Finish::Broken(error.to_string()),
        };
        let finish = match (phase, finish) {
            (Phase::Main, Finish::Exited(0)) => match self.collect(step, &captured) {
                Ok(given) => {
                    self.given.insert(step, given);
                    Finish::Exited(0)
                }
                Err(error) => Finish::Broken(error),
            },
            (_, finish) => finish,
        };
        if !matches!(finish, Finish::Exited(0)) && !captured.tail.is_empty() {
            self.tails.insert(step, captured.tail);
        }
        Event::Ended { step, ended: Ended { finish, stdout: captured.stdout } }
    }

    /// The output variables of a step that succeeded, and its output if others look into it.
    fn collect(&self, step: StepIx, captured: &Captured) -> Result<Given, String> {
        let output = &self.parts.flow.workflow().step(step).options.output;
        let quoted = self.parts.quoted.binary_search(&step).is_ok();
        let mut given = Given::default();
        for (name, text) in [(&output.stdout, &captured.stdout), (&output.stderr, &captured.stderr)]
        {
            if let Some(name) = name {
                fits(name, text)?;
                given.outputs.push((name.clone(), text.clone()));
            }
        }
        if quoted && captured.overflowed {
            return Err("its output is longer than 1 MiB and others look into it: write it to a file instead".into());
        }
        if quoted {
            given.stdout = Some(captured.stdout.clone());
        }
        Ok(given)
    }
}
