//! The run as a machine: events in, effects out, no clock and no I/O of its own.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::timers::{Timer, Timers};
use super::{Cause, Fate, IllegalStep, Kind, Note, State, Verdict};
use crate::seams::Moment;
use crate::workflow::{StepIx, Workflow};

/// Which command of a step is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    When,
    Precondition(usize),
    Main,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finish {
    Exited(i32),
    Killed(i32),
    /// It could not be started, or what it gave cannot be used; the text says why.
    Broken(String),
}

/// A command's end, with what a predicate printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    pub finish: Finish,
    pub stdout: String,
}

impl Ended {
    pub fn exited(code: i32) -> Self {
        Self { finish: Finish::Exited(code), stdout: String::new() }
    }
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    Begin,
    Ended {
        step: StepIx,
        ended: Ended,
    },
    /// [`Flow::due`] has come.
    Due,
    /// Somebody wants the run to end, gently.
    Stop(Cause),
    /// Somebody wants the run to end now.
    Kill,
}

/// What is to be done, in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    Start {
        step: StepIx,
        phase: Phase,
        attempt: u32,
    },
    /// Ask a step's processes to end, or end them (`hard`).
    Signal {
        step: StepIx,
        hard: bool,
    },
    Note(Note),
    Finished(Verdict),
}

/// How a run is to be conducted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// How many steps run at once.
    pub workers: u32,
    /// How long a process may take to end after it was asked to.
    pub grace: Duration,
    /// Where chance (the jitter of retries) starts from.
    pub seed: u64,
}

/// What the run is doing as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Running,
    /// Running steps may end, nothing is started.
    Finishing,
    /// Running steps were told to end.
    Stopping,
    Handling,
    Done,
}

/// Why a running attempt was told to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    Nothing,
    TimedOut,
    Cancelled,
}

/// One step's progress.
#[derive(Debug, Clone)]
pub(super) struct Progress {
    state: State,
    pub(super) phase: Phase,
    pub(super) told: Told,
    pub(super) attempt: u32,
    /// Parents that have not ended.
    pub(super) waiting: u32,
    pub(super) met: u32,
    pub(super) unmet: u32,
    pub(super) fate: Fate,
    /// The failure that keeps this step from running, whatever else it depends on.
    pub(super) barred_by: Option<StepIx>,
    /// Whether it was announced as started.
    pub(super) announced: bool,
    pub(super) started: Moment,
    pub(super) ended: Moment,
}

impl Progress {
    pub(super) fn state(&self) -> State {
        self.state
    }

    /// The only way to change a step's state.
    pub(super) fn advance(&mut self, to: State) -> Result<(), IllegalStep> {
        if !self.state.next().contains(&to) {
            return Err(IllegalStep { from: self.state, to });
        }
        self.state = to;
        Ok(())
    }
}

/// One run of one workflow.
#[derive(Debug)]
pub struct Flow {
    pub(super) workflow: Arc<Workflow>,
    pub(super) settings: Settings,
    pub(super) steps: Vec<Progress>,
    pub(super) errors: BTreeMap<StepIx, String>,
    pub(super) ready: BinaryHeap<(i32, Reverse<StepIx>)>,
    pub(super) running: Vec<StepIx>,
    pub(super) timers: Timers,
    pub(super) mode: Mode,
    pub(super) begun: Moment,
    /// Steps (handlers not counted) that have not ended.
    pub(super) unfinished: usize,
    pub(super) first_failure: Option<StepIx>,
    pub(super) cause: Option<Cause>,
    /// What ended a handler before its time.
    pub(super) interrupt: Option<Cause>,
    pub(super) handlers: VecDeque<StepIx>,
    /// Nothing more is started, handlers included.
    pub(super) killed: bool,
    pub(super) chance: u64,
}

impl Flow {
    /// Prepares a run. `fates` has one entry a step, handlers not counted.
    pub fn new(workflow: Arc<Workflow>, fates: &[Fate], settings: Settings) -> Self {
        let steps: Vec<Progress> = (0..workflow.steps.len())
            .map(|at| {
                let fate = fates.get(at).copied().unwrap_or(Fate::Run);
                let parents = workflow.graph.parents(StepIx::new(at)).len();
                Progress {
                    state: match fate {
                        Fate::Run | Fate::GoesOn | Fate::Picked => State::Waiting,
                        Fate::Counts(state) => state,
                    },
                    phase: Phase::Main,
                    told: Told::Nothing,
                    attempt: 0,
                    waiting: u32::try_from(parents).unwrap_or(u32::MAX),
                    met: 0,
                    unmet: 0,
                    fate,
                    barred_by: None,
                    announced: false,
                    started: Moment::ZERO,
                    ended: Moment::ZERO,
                }
            })
            .collect();
        let unfinished =
            steps[..workflow.len()].iter().filter(|step| !step.state.is_final()).count();
        Self {
            workflow,
            settings,
            steps,
            errors: BTreeMap::new(),
            ready: BinaryHeap::new(),
            running: Vec::new(),
            timers: Timers::default(),
            mode: Mode::Running,
            begun: Moment::ZERO,
            unfinished,
            first_failure: None,
            cause: None,
            interrupt: None,
            handlers: VecDeque::new(),
            killed: false,
            chance: settings.seed,
        }
    }

    pub fn workflow(&self) -> &Arc<Workflow> {
        &self.workflow
    }

    /// When [`Event::Due`] is wanted next.
    pub fn due(&self) -> Option<Moment> {
        self.timers.next()
    }

    pub fn is_done(&self) -> bool {
        self.mode == Mode::Done
    }

    pub fn state(&self, step: StepIx) -> State {
        self.steps[step.index()].state
    }

    pub fn attempt(&self, step: StepIx) -> u32 {
        self.steps[step.index()].attempt
    }

    pub fn error(&self, step: StepIx) -> Option<&str> {
        self.errors.get(&step).map(String::as_str)
    }

    /// When the step started and ended, as far as it has.
    pub fn times(&self, step: StepIx) -> (Option<Moment>, Option<Moment>) {
        let it = &self.steps[step.index()];
        let started = it.announced.then_some(it.started);
        (started, (it.announced && it.state.is_final()).then_some(it.ended))
    }

    pub fn begun(&self) -> Moment {
        self.begun
    }

    pub fn first_failure(&self) -> Option<StepIx> {
        self.first_failure
    }

    /// Why the run was stopped early, if it was.
    pub fn cause(&self) -> Option<Cause> {
        self.cause
    }

    /// Takes one event and adds what is to be done about it.
    pub fn step(&mut self, event: Event, now: Moment, effects: &mut Vec<Effect>) {
        match event {
            Event::Begin => self.begin(now, effects),
            Event::Ended { step, ended } => self.command_ended(step, ended, now, effects),
            Event::Due => {
                while let Some(timer) = self.timers.take_due(now) {
                    self.timer(timer, now, effects);
                }
            }
            Event::Stop(cause) => self.stop(cause, now, effects),
            Event::Kill => self.kill_all(now, effects),
        }
        self.dispatch(now, effects);
        self.conclude(now, effects);
    }

    fn begin(&mut self, now: Moment, effects: &mut Vec<Effect>) {
        self.begun = now;
        effects.push(Effect::Note(Note::new(now, Kind::WorkflowStarted, None)));
        if let Some(limit) = self.workflow.timeout {
            self.timers.add(now.after(limit), Timer::Workflow);
        }
        for at in 0..self.workflow.len() {
            let step = StepIx::new(at);
            match self.steps[at].fate {
                Fate::Counts(_) => self.tell_children(step, now, effects),
                Fate::Run | Fate::GoesOn | Fate::Picked
                    if self.workflow.graph.parents(step).is_empty() =>
                {
                    self.make_ready(step);
                }
                Fate::Run | Fate::GoesOn | Fate::Picked => {}
            }
        }
    }

    fn timer(&mut self, timer: Timer, now: Moment, effects: &mut Vec<Effect>) {
        match timer {
            Timer::Retry(step) => {
                if self.state(step) == State::Retrying {
                    self.make_ready(step);
                }
            }
            Timer::Timeout(step, attempt) => {
                let it = &mut self.steps[step.index()];
                if it.state == State::Running && it.attempt == attempt && it.told == Told::Nothing {
                    it.told = Told::TimedOut;
                    effects.push(Effect::Signal { step, hard: false });
                    self.timers.add(now.after(self.settings.grace), Timer::Kill(step, attempt));
                }
            }
            Timer::Kill(step, attempt) => {
                let it = &self.steps[step.index()];
                if it.state == State::Running && it.attempt == attempt {
                    effects.push(Effect::Signal { step, hard: true });
                }
            }
            Timer::KillAll => self.kill_told(effects),
            Timer::Workflow => {
                if matches!(self.mode, Mode::Running | Mode::Finishing)
                    && let Some(limit) = self.workflow.timeout
                {
                    self.stop(Cause::Timeout(limit), now, effects);
                }
            }
        }
    }

    /// Starts what may start, highest priority first, then in file order.
    fn dispatch(&mut self, now: Moment, effects: &mut Vec<Effect>) {
        let workers = usize::try_from(self.settings.workers.max(1)).unwrap_or(usize::MAX);
        while self.running.len() < workers {
            let Some((_, Reverse(step))) = self.ready.pop() else { break };
            self.start(step, now, effects);
        }
    }

    pub(super) fn make_ready(&mut self, step: StepIx) {
        self.go(step, State::Ready);
        self.ready.push((self.workflow.step(step).options.priority, Reverse(step)));
    }

    /// Changes a step's state; a change that the table does not have is a bug worth dying for.
    pub(super) fn go(&mut self, step: StepIx, to: State) {
        if let Err(illegal) = self.steps[step.index()].advance(to) {
            panic!("step `{}`: {illegal}", self.workflow.step(step).name);
        }
    }
}
