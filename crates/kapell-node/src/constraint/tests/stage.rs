//! A run with constraints, a scheduler that answers from a script, and cells that say what they are told to.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use kapell_core::board::CellState;
use kapell_core::constraint::lines::Pace;
use kapell_core::constraint::{About, JobState, PastRun, Work};
use kapell_core::job::ActionId;
use kapell_core::job::JobDefinition;
use kapell_core::run::{ActionsDone, Checked, Noted, RunId, RunState, Trigger};
use kapell_core::seams::Timestamp;
use serde_json::{Value as Json, json};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::constraint::{
    Cells, Checker, ConstraintChecker as _, Inbox, Means, Message, PreCheck, Pulse,
};
use crate::testing::TokioClock;
use crate::webhook::tests::stage::{Post, post};

pub(super) const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// What the scheduler knows and was told.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) jobs: BTreeMap<String, (JobState, Vec<PastRun>)>,
    /// It refuses what it is asked to do.
    pub(super) refuses: Option<String>,
    /// It takes questions and answers none.
    pub(super) hangs: bool,
    /// After so many messages it takes none any more.
    pub(super) leaves_after: Option<u32>,
    pub(super) heard: Vec<String>,
    /// As those that count have named themselves.
    pub(super) actions: Vec<ActionId>,
    /// What was being looked at for long.
    pub(super) slow: Vec<String>,
}

#[derive(Debug, Default)]
pub(super) struct FakeCells(pub(super) Mutex<Vec<CellState>>, pub(super) Mutex<Option<String>>);

#[async_trait]
impl Cells for FakeCells {
    async fn states(&self) -> Result<Vec<CellState>, String> {
        match self.1.lock().unwrap().clone() {
            Some(why) => Err(why),
            None => Ok(self.0.lock().unwrap().clone()),
        }
    }
}

pub(super) struct Stage {
    pub(super) post: Post,
    pub(super) told: Arc<Mutex<Told>>,
    pub(super) cells: Arc<FakeCells>,
    pub(super) checker: Checker,
    pub(super) pulse: Pulse,
    pub(super) scheduler: JoinSet<()>,
}

async fn scheduler(mut inbox: mpsc::Receiver<Message>, told: Arc<Mutex<Told>>) {
    let mut held = Vec::new();
    while let Some(message) = inbox.recv().await {
        let mut told = told.lock().unwrap();
        if let Some(left) = &mut told.leaves_after {
            let Some(fewer) = left.checked_sub(1) else { return };
            *left = fewer;
        }
        if told.hangs {
            held.push(message);
            continue;
        }
        let refusal = told.refuses.clone();
        let done = || refusal.clone().map_or(Ok(()), Err);
        match message {
            Message::JobState { job, reply, .. } => {
                drop(reply.send(told.jobs.get(job.as_str()).map(|(state, _)| state.clone())));
            }
            Message::JobHistory { job, reply, .. } => {
                drop(reply.send(told.jobs.get(job.as_str()).map(|(_, history)| history.clone())));
            }
            Message::Trigger { run_id, of, parameters, reply } => {
                told.heard.push(format!("trigger {run_id} of {of} {parameters:?}"));
                drop(reply.send(done()));
            }
            Message::CancelRuns { job, which, except, kind, why, reply } => {
                told.heard.push(format!("cancel {which:?} of {job} but {except} {kind:?}: {why}"));
                drop(reply.send(done().map(|()| 2)));
            }
            Message::SkipNext { job, action, count, reply, .. } => {
                told.heard.push(format!("skip {count} of {job}"));
                told.actions.push(action);
                drop(reply.send(done()));
            }
            Message::SetMetric { action, metric, figure, reply, .. } => {
                told.heard.push(format!("{:?} {metric} {}", figure.kind, figure.value));
                told.actions.push(action);
                drop(reply.send(done()));
            }
            Message::Acting { action, constraint, .. } => {
                told.heard.push(format!("acting: {action} of {constraint}"));
            }
            Message::Checking { constraints, .. } => told.slow.push(constraints.join(", ")),
        }
    }
}

pub(super) fn stage() -> Stage {
    let post = post(Pace::default());
    let told = Arc::new(Mutex::new(Told::default()));
    let (sender, inbox) = mpsc::channel(8);
    let mut running = JoinSet::new();
    running.spawn(scheduler(inbox, Arc::clone(&told)));
    let cells = Arc::new(FakeCells::default());
    let means = Means {
        inbox: Inbox::new(sender),
        webhooks: post.handler.clone(),
        cells: Arc::clone(&cells) as _,
        clock: Arc::new(TokioClock::new()),
    };
    Stage {
        post,
        told,
        cells,
        checker: Checker::new(means),
        pulse: Pulse::default(),
        scheduler: running,
    }
}

pub(super) fn run(constraints: Json) -> About {
    let mut all = json!({ "job_id": "report" });
    all["constraints"] = constraints;
    let definition: JobDefinition = serde_json::from_value(all).unwrap();
    About {
        definition: Arc::new(definition),
        run_id: RunId::scheduled(&"report".into(), Timestamp(1_700_000_000_000)),
        attempt: 0,
        scheduled_at: Timestamp(1_700_000_000_000),
        due_at: Timestamp(1_700_000_000_000),
        trigger: Trigger::Schedule,
        parameters: BTreeMap::new(),
        work: None,
    }
}

/// The same run when its work has ended, after so many seconds.
pub(super) fn ended(constraints: Json, took: i64) -> About {
    let started_at = Timestamp(1_700_000_000_000);
    let ended_at = Timestamp(started_at.0 + took * 1000);
    About {
        work: Some(Work { started_at, ended_at, exit_code: Some(0), failure: None }),
        ..run(constraints)
    }
}

pub(super) fn past(state: RunState) -> PastRun {
    let completed_at = Timestamp(1_699_999_990_000);
    PastRun {
        run_id: RunId::scheduled(&"report".into(), completed_at),
        state,
        skipped: false,
        completed_at,
    }
}

impl Stage {
    pub(super) async fn look(&self, run: About) -> PreCheck {
        self.checker.check_pre_execution(Arc::new(run), &self.pulse).await.unwrap()
    }

    pub(super) async fn check(&self, constraints: Json) -> Checked {
        self.look(run(constraints)).await.checked
    }

    /// Checks and takes the actions.
    pub(super) async fn act(&self, constraints: Json) -> ActionsDone {
        let found = self.look(run(constraints)).await;
        self.checker.act(found.todo, &self.pulse).await.unwrap()
    }

    pub(super) async fn after(&self, constraints: Json, took: i64) -> ActionsDone {
        let run = Arc::new(ended(constraints, took));
        self.checker.check_post_execution(run, &self.pulse).await.unwrap()
    }

    pub(super) fn knows(&self, job: &str, state: JobState, history: Vec<PastRun>) {
        self.told.lock().unwrap().jobs.insert(job.to_owned(), (state, history));
    }

    /// What the scheduler was asked to do, besides being told of actions.
    pub(super) fn heard(&self) -> Vec<String> {
        let told = self.told.lock().unwrap();
        told.heard.iter().filter(|it| !it.starts_with("acting")).cloned().collect()
    }
}

/// What was noted of the only constraint.
pub(super) fn note(checked: &Checked) -> (&'static str, String) {
    if let Noted::ConstraintError { message, .. } = &checked.notes[0] {
        return ("error", message.clone());
    }
    let Noted::Constraint { met, message, .. } = &checked.notes[0] else { panic!("{checked:?}") };
    (if *met { "met" } else { "violated" }, message.clone())
}
