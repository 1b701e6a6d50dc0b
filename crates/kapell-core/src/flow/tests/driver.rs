//! A run under mock time: a script says how commands end, the driver plays the world.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::watch::Watch;
use crate::flow::{
    Effect, Ended, Event, Fate, Finish, Flow, Kind, Note, Phase, Settings, State, Verdict,
};
use crate::seams::Moment;
use crate::workflow::{StepIx, Workflow, load};

/// How long anything takes of which a script says nothing, in milliseconds.
pub(super) const T: u64 = 10;
/// How long the driver lets a process take to end after it was asked to.
pub(super) const GRACE: u64 = 1_000;
pub(super) const SIGINT: i32 = 2;
pub(super) const SIGTERM: i32 = 15;
pub(super) const SIGKILL: i32 = 9;

pub(super) fn moment(ms: u64) -> Moment {
    Moment::from_origin(Duration::from_millis(ms))
}

fn millis(at: Moment) -> u64 {
    u64::try_from(at.since_origin().as_millis()).expect("runs are short")
}

/// How the commands of one step behave.
#[derive(Debug, Clone)]
pub(super) struct Script {
    lasts: Option<u64>,
    ends: Vec<Finish>,
    check_lasts: Option<u64>,
    checks: Vec<Ended>,
    stubborn: bool,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            lasts: Some(T),
            ends: vec![Finish::Exited(0)],
            check_lasts: Some(0),
            checks: Vec::new(),
            stubborn: false,
        }
    }
}

impl Script {
    /// Its command takes so many milliseconds.
    pub(super) fn lasts(ms: u64) -> Self {
        Self { lasts: Some(ms), ..Self::default() }
    }

    /// Its command ends only when it is made to.
    pub(super) fn hangs() -> Self {
        Self { lasts: None, ..Self::default() }
    }

    /// Exit codes by attempt; the last one stays.
    pub(super) fn exits(codes: &[i32]) -> Self {
        Self::default().then_exits(codes)
    }

    pub(super) fn then_exits(self, codes: &[i32]) -> Self {
        self.ends(codes.iter().map(|&code| Finish::Exited(code)).collect())
    }

    /// How its command ends, by attempt; the last one stays.
    pub(super) fn ends(self, ends: Vec<Finish>) -> Self {
        Self { ends, ..self }
    }

    /// Exit codes and outputs of its predicates in the order they are run; after that all succeed.
    pub(super) fn checks(self, checks: &[(i32, &str)]) -> Self {
        let ended = |&(code, stdout): &(i32, &str)| Ended {
            stdout: stdout.to_owned(),
            ..Ended::exited(code)
        };
        Self { checks: checks.iter().map(ended).collect(), ..self }
    }

    pub(super) fn check_ends(self, checks: Vec<Ended>) -> Self {
        Self { checks, ..self }
    }

    /// Its predicates take so long; without a number they end only when they are made to.
    pub(super) fn check_lasts(self, ms: Option<u64>) -> Self {
        Self { check_lasts: ms, ..self }
    }

    /// It does not heed a request to end.
    pub(super) fn stubborn(self) -> Self {
        Self { stubborn: true, ..self }
    }
}

/// A command that runs.
#[derive(Debug)]
struct Live {
    until: Option<Moment>,
    ended: Ended,
}

/// One run of one workflow, with everything that happened in it.
#[derive(Debug)]
pub(super) struct Sim {
    pub(super) flow: Flow,
    scripts: BTreeMap<StepIx, Script>,
    now: Moment,
    live: BTreeMap<StepIx, Live>,
    checked: BTreeMap<StepIx, usize>,
    planned: Vec<(Moment, Event)>,
    watch: Watch,
    pub(super) effects: Vec<(Moment, Effect)>,
    pub(super) verdict: Option<Verdict>,
}

impl Sim {
    /// Loads a file whose text must be good.
    pub(super) fn of(text: &str) -> Self {
        Self::new(workflow(text))
    }

    pub(super) fn new(workflow: Workflow) -> Self {
        Self::with(workflow, &[], 0)
    }

    /// Workers are those of the file, else many.
    pub(super) fn with(workflow: Workflow, fates: &[Fate], seed: u64) -> Self {
        let workers = workflow.workers.unwrap_or(10_000);
        let settings = Settings { workers, grace: Duration::from_millis(GRACE), seed };
        let workflow = Arc::new(workflow);
        let flow = Flow::new(Arc::clone(&workflow), fates, settings);
        Self {
            watch: Watch::new(&flow, fates, workers),
            flow,
            scripts: BTreeMap::new(),
            now: Moment::ZERO,
            live: BTreeMap::new(),
            checked: BTreeMap::new(),
            planned: Vec::new(),
            effects: Vec::new(),
            verdict: None,
        }
    }

    pub(super) fn step(&self, name: &str) -> StepIx {
        let steps = &self.flow.workflow().steps;
        let at = steps.iter().position(|step| &*step.name == name);
        at.map_or_else(|| panic!("there is no step {name}"), StepIx::new)
    }

    pub(super) fn play(self, name: &str, script: Script) -> Self {
        let step = self.step(name);
        self.play_at(step, script)
    }

    pub(super) fn play_at(mut self, step: StepIx, script: Script) -> Self {
        self.scripts.insert(step, script);
        self
    }

    /// Something that happens from outside; after all else that happens at that moment.
    pub(super) fn at(mut self, ms: u64, event: Event) -> Self {
        self.planned.push((moment(ms), event));
        self.planned.sort_by_key(|(at, _)| *at);
        self
    }

    /// Runs to the end.
    pub(super) fn run(mut self) -> Self {
        self.feed(Event::Begin);
        let mut patience = 1_000_000;
        while self.verdict.is_none() {
            self.advance();
            patience -= 1;
            assert!(patience > 0, "the run does not end");
        }
        assert!(self.flow.is_done());
        self
    }

    /// Runs to the end, where `choose` says which of the running commands ends next.
    pub(super) fn run_choosing(mut self, mut choose: impl FnMut(usize) -> usize) -> Self {
        self.feed(Event::Begin);
        while self.verdict.is_none() {
            self.now = self.now.after(Duration::from_millis(1));
            let running: Vec<StepIx> = self.live.keys().copied().collect();
            if running.is_empty() {
                self.now = self.flow.due().expect("a run that has not ended waits for something");
                self.feed(Event::Due);
            } else {
                self.end(running[choose(running.len())]);
            }
        }
        self
    }

    /// Lets the next thing happen: a command ends, a timer is due, somebody interferes.
    fn advance(&mut self) {
        let ending = self.live.iter().filter_map(|(&step, live)| Some((live.until?, step))).min();
        let due = self.flow.due();
        let planned = self.planned.first().map(|(at, _)| *at);
        let next = [ending.map(|(at, _)| at), due, planned].into_iter().flatten().min();
        let next = next.expect("a run that has not ended waits for something");
        self.now = self.now.max(next);
        match ending {
            Some((at, step)) if at == next => self.end(step),
            Some(_) | None if due == Some(next) => self.feed(Event::Due),
            Some(_) | None => {
                let (_, event) = self.planned.remove(0);
                self.feed(event);
            }
        }
    }

    fn end(&mut self, step: StepIx) {
        let live = self.live.remove(&step).expect("only what runs can end");
        self.feed(Event::Ended { step, ended: live.ended });
    }

    fn feed(&mut self, event: Event) {
        let mut effects = Vec::new();
        self.flow.step(event, self.now, &mut effects);
        for effect in effects {
            self.watch.effect(&effect, &self.flow, self.now);
            self.perform(&effect);
            self.effects.push((self.now, effect));
        }
        self.watch.after_event(&self.flow);
    }

    fn perform(&mut self, effect: &Effect) {
        match *effect {
            Effect::Start { step, phase, attempt } => {
                let live = self.command(step, phase, attempt);
                assert!(self.live.insert(step, live).is_none(), "one command a step at a time");
            }
            Effect::Signal { step, hard } => {
                let stubborn = self.scripts.get(&step).is_some_and(|script| script.stubborn);
                let live = self.live.get_mut(&step).expect("only what runs can be signalled");
                if hard || !stubborn {
                    let signal = if hard { SIGKILL } else { SIGTERM };
                    live.until = Some(self.now);
                    live.ended = Ended { finish: Finish::Killed(signal), stdout: String::new() };
                }
            }
            Effect::Note(_) => {}
            Effect::Finished(verdict) => self.verdict = Some(verdict),
        }
    }

    fn command(&mut self, step: StepIx, phase: Phase, attempt: u32) -> Live {
        let default = Script::default();
        let script = self.scripts.get(&step).unwrap_or(&default);
        let until = |ms: Option<u64>| ms.map(|ms| self.now.after(Duration::from_millis(ms)));
        match phase {
            Phase::When | Phase::Precondition(_) => {
                let number = self.checked.entry(step).or_insert(0);
                let ended = script.checks.get(*number).cloned();
                *number += 1;
                let ended = ended.unwrap_or_else(|| Ended::exited(0));
                Live { until: until(script.check_lasts), ended }
            }
            Phase::Main => {
                let attempt = usize::try_from(attempt).expect("few attempts");
                let finish = script.ends[attempt.min(script.ends.len() - 1)].clone();
                Live { until: until(script.lasts), ended: Ended { finish, stdout: String::new() } }
            }
        }
    }
}

/// What the tests ask of a run.
impl Sim {
    pub(super) fn state(&self, name: &str) -> State {
        self.flow.state(self.step(name))
    }

    /// The states of all steps in file order, by name.
    pub(super) fn states(&self) -> Vec<&'static str> {
        let steps = self.flow.workflow().proper_steps();
        steps.map(|(step, _)| self.flow.state(step).name()).collect()
    }

    pub(super) fn notes(&self) -> impl Iterator<Item = &Note> {
        self.effects.iter().filter_map(|(_, effect)| match effect {
            Effect::Note(note) => Some(note),
            Effect::Start { .. } | Effect::Signal { .. } | Effect::Finished(_) => None,
        })
    }

    /// The only note of this kind about this step.
    pub(super) fn note(&self, name: &str, kind: Kind) -> &Note {
        let step = self.step(name);
        let mut found = self.notes().filter(|note| note.step == Some(step) && note.kind == kind);
        let note = found.next().unwrap_or_else(|| panic!("no {kind:?} of {name}"));
        assert!(found.next().is_none(), "more than one {kind:?} of {name}");
        note
    }

    pub(super) fn reason(&self, name: &str, kind: Kind) -> &str {
        self.note(name, kind).reason.as_deref().expect("a reason")
    }

    /// The note that ends the run.
    pub(super) fn last_note(&self) -> &Note {
        self.notes().last().expect("a run tells how it ended")
    }

    /// When the run ended, in milliseconds.
    pub(super) fn took(&self) -> u64 {
        millis(self.now)
    }

    /// Every command and signal of a step: `0 when`, `0 check 1`, `0 main`, `20 soft`, `30 hard`.
    pub(super) fn commands(&self, name: &str) -> Vec<String> {
        let wanted = self.step(name);
        let about = |(at, effect): &(Moment, Effect)| {
            let (step, what) = match effect {
                Effect::Start { step, phase: Phase::When, .. } => (*step, "when".to_owned()),
                Effect::Start { step, phase: Phase::Main, .. } => (*step, "main".to_owned()),
                Effect::Start { step, phase: Phase::Precondition(number), .. } => {
                    (*step, format!("check {number}"))
                }
                Effect::Signal { step, hard: false } => (*step, "soft".to_owned()),
                Effect::Signal { step, hard: true } => (*step, "hard".to_owned()),
                Effect::Note(_) | Effect::Finished(_) => return None,
            };
            (step == wanted).then(|| format!("{} {what}", millis(*at)))
        };
        self.effects.iter().filter_map(about).collect()
    }

    /// What was started, in order, by name.
    pub(super) fn started(&self) -> Vec<&str> {
        let workflow = self.flow.workflow();
        self.notes()
            .filter(|note| note.kind == Kind::NodeStarted)
            .map(|note| &*workflow.step(note.step.expect("of a step")).name)
            .collect()
    }
}

pub(super) fn workflow(text: &str) -> Workflow {
    match load(text.as_bytes(), "test") {
        Ok(loaded) => loaded.workflow,
        Err(problems) => panic!("{problems:?}\n{text}"),
    }
}
