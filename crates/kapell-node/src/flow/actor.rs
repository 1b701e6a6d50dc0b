//! The loop of a run: the world becomes events, the machine decides, effects become I/O.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use kapell_backend::executor::{self, Control, Executor, Exit};
use kapell_backend::local::{Local, Swept};
use kapell_core::flow::{Effect, Ended, Event, Finish, Flow, Kind, Note, Phase, State, Verdict};
use kapell_core::seams::Clock;
use kapell_core::workflow::StepIx;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::capture::{Capture, Captured, SharedLogger, Sink, Wanted, lock};
use super::context::{Context, Script, explain, fits};
use super::journal::{Given, RunJournal};
use super::logger::{NodeEvent, NodeSnapshot, WorkflowEvent};
use super::report::{Failure, Report, StepReport};

/// How often loggers hear how everything stands.
const STATUS_INTERVAL: Duration = Duration::from_millis(100);
/// How long processes that steps left behind may take to end.
const SWEEP_GRACE: Duration = Duration::from_secs(2);

/// A command that has ended.
struct Done {
    step: StepIx,
    phase: Phase,
    result: Result<executor::Ended, executor::Error>,
    capture: Arc<Capture>,
    /// Kept until here so that the script's file outlives its process.
    _script: Option<Script>,
}

/// What a run is made of.
pub(super) struct Parts {
    pub(super) flow: Flow,
    /// Steps whose standard output others look into.
    pub(super) quoted: Vec<StepIx>,
    pub(super) context: Context,
    pub(super) executor: Arc<dyn Executor>,
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
    pub(super) fn new(parts: Parts) -> Self {
        Self {
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
            }
        }
        let duration = self.parts.clock.now().since(self.parts.flow.begun());
        let swept = local.sweep(if self.hurried { Duration::ZERO } else { SWEEP_GRACE }).await;
        self.lingering.abort_all();
        self.report(&swept, duration)
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
            Effect::Start { step, phase, attempt: _ } => self.start(step, phase),
            Effect::Signal { step, hard } => {
                if let Some(control) = self.running.get(&step) {
                    control.signal(hard);
                }
            }
            Effect::Note(note) => self.tell(&note),
            Effect::Finished(verdict) => self.verdict = Some(verdict),
        }
    }

    fn start(&mut self, step: StepIx, phase: Phase) {
        // What made this step ready is on record before it does anything.
        self.flush_journal();
        if step.index() >= self.parts.flow.workflow().len() {
            self.describe_ending();
        }
        let workflow = Arc::clone(self.parts.flow.workflow());
        let options = &workflow.step(step).options;
        let wanted = match phase {
            Phase::Main => Wanted {
                stdout: options.output.stdout.is_some()
                    || self.parts.quoted.binary_search(&step).is_ok(),
                stderr: options.output.stderr.is_some(),
                console: options.console,
            },
            Phase::When | Phase::Precondition(_) => Wanted { stdout: true, ..Wanted::default() },
        };
        let capture = Arc::new(Capture::new(step, wanted, Arc::clone(&self.parts.sink)));
        let prepared = self
            .parts
            .context
            .job(step, workflow.step(step), phase)
            .map_err(|error| error.to_string());
        let started = prepared.and_then(|prepared| {
            let output = Arc::<Capture>::clone(&capture);
            let started = self.parts.executor.start(&prepared.job, output);
            let started = started.map_err(|error| explain(&error, &prepared.job))?;
            Ok((started, prepared.script))
        });
        match started {
            Ok((started, script)) => {
                self.running.insert(step, started.control);
                self.tasks.spawn(async move {
                    Done { step, phase, result: started.ended.await, capture, _script: script }
                });
            }
            Err(error) => {
                let ended = Ended { finish: Finish::Broken(error), stdout: String::new() };
                self.todo.push_back(Event::Ended { step, ended });
            }
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
        let Done { step, phase, result, capture, .. } = done;
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

    fn tell(&mut self, note: &Note) {
        let at = self.parts.clock.wall();
        let workflow = Arc::clone(self.parts.flow.workflow());
        let Some(step) = note.step else {
            self.tell_of_workflow(note);
            return;
        };
        let name = &*workflow.step(step).name;
        let given = self.given.remove(&step).unwrap_or_default();
        if note.kind == Kind::NodeCompleted {
            self.parts.context.learn(name, &given.outputs, given.stdout.as_deref());
        }
        if matches!(note.kind, Kind::NodeFailed | Kind::NodeFailedContinue) {
            self.failed.push(step);
        }
        if let Some(journal) = &mut self.parts.journal {
            journal.node(at, name, note, given);
        }
        lock(&self.parts.logger).on_node_event(&NodeEvent {
            kind: note.kind,
            at,
            step,
            node: name,
            attempt: note.attempt,
            exit_code: note.exit_code,
            duration: note.duration,
            reason: note.reason.as_deref(),
            error: note.error.as_deref(),
        });
    }

    fn tell_of_workflow(&mut self, note: &Note) {
        let at = self.parts.clock.wall();
        let run = self.run_id();
        let event = WorkflowEvent {
            kind: note.kind,
            at,
            workflow: self.parts.flow.workflow(),
            run: &run,
            duration: note.duration,
            error: note.error.as_deref(),
        };
        if note.kind == Kind::WorkflowStarted {
            lock(&self.parts.logger).on_workflow_start(&event);
            return;
        }
        if let Some(journal) = &mut self.parts.journal {
            journal.end(at, self.parts.flow.verdict().name(), note);
        }
        let states = self.snapshot();
        let mut logger = lock(&self.parts.logger);
        logger.on_status_update(&states, self.parts.flow.workflow());
        logger.on_workflow_complete(&event);
        logger.close();
    }

    fn update_status(&self) {
        let states = self.snapshot();
        lock(&self.parts.logger).on_status_update(&states, self.parts.flow.workflow());
    }

    fn snapshot(&self) -> Vec<NodeSnapshot> {
        let now = self.parts.clock.now();
        (0..self.parts.flow.workflow().steps.len())
            .map(|at| {
                let step = StepIx::new(at);
                let (started, ended) = self.parts.flow.times(step);
                NodeSnapshot {
                    state: self.parts.flow.state(step),
                    attempt: self.parts.flow.attempt(step),
                    elapsed: started.map(|started| ended.unwrap_or(now).since(started)),
                    error: self.parts.flow.error(step).map(str::to_owned),
                }
            })
            .collect()
    }

    fn report(mut self, swept: &Swept, duration: Duration) -> Report {
        let workflow = Arc::clone(self.parts.flow.workflow());
        let mut problems: Vec<String> = lock(&self.parts.sink.problem).take().into_iter().collect();
        if !swept.beyond.is_empty() {
            let pids: Vec<_> = swept.beyond.iter().map(ToString::to_string).collect();
            let pids = pids.join(", ");
            problems
                .push(format!("left running, because they belong to another user: process {pids}"));
        }
        let run = self.parts.journal.as_ref().map(|journal| journal.id().clone());
        problems.extend(self.parts.journal.as_mut().and_then(RunJournal::close));
        let steps = self
            .snapshot()
            .into_iter()
            .zip(&workflow.steps)
            .enumerate()
            .map(|(at, (snapshot, step))| StepReport {
                name: step.name.to_string(),
                is_handler: at >= workflow.len(),
                state: snapshot.state,
                attempts: if snapshot.elapsed.is_some() { snapshot.attempt + 1 } else { 0 },
                duration: snapshot.elapsed,
            })
            .collect();
        let failures = self.failed.iter().map(|&step| Failure {
            name: workflow.step(step).name.to_string(),
            error: self.parts.flow.error(step).unwrap_or_default().to_owned(),
            tolerated: self.parts.flow.state(step) == State::FailedContinue,
            tail: self.tails.remove(&step).unwrap_or_default(),
        });
        Report {
            verdict: self.verdict.unwrap_or_else(|| self.parts.flow.verdict()),
            cause: self.parts.flow.cause(),
            run,
            duration,
            steps,
            failures: failures.collect(),
            swept: swept.ended,
            problems,
        }
    }
}
