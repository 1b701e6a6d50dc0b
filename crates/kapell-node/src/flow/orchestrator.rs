//! The way in: a workflow, how to run it, and who is to be told.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kapell_backend::executor::Executor;
use kapell_backend::local::Local;
use kapell_core::flow::{Cause, Event, Fate, Flow, Past, Selection, Settings, State, fates};
use kapell_core::journal::{Header, VERSION};
use kapell_core::seams::{Clock, Ids, RunId};
use kapell_core::workflow::{Bound, Loaded, Workflow};
use kapell_store::frames::FrameLog;
use tokio::sync::mpsc;

use super::actor::{Actor, Parts};
use super::capture::Sink;
use super::cells::Cells;
use super::context::{Context, Scripts};
use super::history::{History, whole_path};
use super::journal::{Given, RunJournal};
use super::kubernetes::{Clusters, Jobs};
use super::logger::{ExecutionLogger, NoOpLogger};
use super::places::{self, Places};
use super::report::Report;
use crate::system::{SystemClock, SystemIds};

/// How many steps run at once if nobody says.
const DEFAULT_WORKERS: u32 = 5;
const DEFAULT_GRACE: Duration = Duration::from_secs(10);
const DEFAULT_OUTPUT_LIMIT: u64 = 64 << 20;

/// Runs one workflow once.
pub struct Orchestrator {
    loaded: Loaded,
    workers: Option<u32>,
    grace: Duration,
    output_limit: u64,
    params: Bound,
    selection: Selection,
    past: Option<Past>,
    logger: Box<dyn ExecutionLogger>,
    local: Local,
    executor: Option<Arc<dyn Executor>>,
    cells: Option<Cells>,
    clusters: Option<Clusters>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
    journal: Option<(RunJournal, PathBuf, u64)>,
    inbox: (mpsc::Sender<Event>, mpsc::Receiver<Event>),
}

impl fmt::Debug for Orchestrator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Orchestrator")
            .field("workflow", &self.loaded.workflow.name)
            .finish_non_exhaustive()
    }
}

/// Asks a run to end, from anywhere.
#[derive(Debug, Clone)]
pub struct Stopper(mpsc::Sender<Event>);

impl Stopper {
    /// Asks the steps to end; `signal` becomes part of the exit code.
    pub fn stop(&self, signal: i32) {
        // A full inbox already holds such a wish, and a closed one belongs to a run that is over.
        let _asked = self.0.try_send(Event::Stop(Cause::Signal(signal)));
    }

    /// Ends the steps at once.
    pub fn kill(&self) {
        let _asked = self.0.try_send(Event::Kill);
    }
}

impl Orchestrator {
    /// Prepares a run with five workers, no logger, and the defaults of the file's parameters.
    pub fn new(loaded: Loaded) -> Self {
        let params = loaded.workflow.params.bind(&[], &[]).unwrap_or_default();
        Self {
            loaded,
            workers: None,
            grace: DEFAULT_GRACE,
            output_limit: DEFAULT_OUTPUT_LIMIT,
            params,
            selection: Selection::default(),
            past: None,
            logger: Box::new(NoOpLogger),
            local: Local::default(),
            executor: None,
            cells: None,
            clusters: None,
            clock: Arc::new(SystemClock),
            ids: Arc::new(SystemIds),
            journal: None,
            inbox: mpsc::channel(16),
        }
    }

    /// How many steps run at once. Goes before what the file says.
    #[must_use]
    pub fn workers(mut self, workers: u32) -> Self {
        self.workers = Some(workers);
        self
    }

    /// Who is told what happens.
    #[must_use]
    pub fn logger(mut self, logger: Box<dyn ExecutionLogger>) -> Self {
        self.logger = logger;
        self
    }

    /// How long processes may take to end after they were asked to.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// How much of one command's output is kept on disk.
    #[must_use]
    pub fn output_limit(mut self, bytes: u64) -> Self {
        self.output_limit = bytes;
        self
    }

    /// Values for the parameters that the file declares: see [`kapell_core::workflow::Params::bind`].
    #[must_use]
    pub fn params(mut self, params: Bound) -> Self {
        self.params = params;
        self
    }

    /// What to run, and what an earlier run already did.
    #[must_use]
    pub fn select(mut self, selection: Selection, past: Option<Past>) -> Self {
        self.selection = selection;
        self.past = past;
        self
    }

    /// This process starts nothing but steps and has a supervisor, so all its children are ours.
    #[must_use]
    pub fn owning_all_children(mut self) -> Self {
        self.local = Local::owning_all_children();
        self
    }

    /// Runs commands elsewhere than as local processes.
    #[must_use]
    pub fn executor(mut self, executor: Arc<dyn Executor>) -> Self {
        self.executor = Some(executor);
        self
    }

    /// Where steps run that do so on cells. Which those are, the file and the selection say.
    #[must_use]
    pub fn cells(mut self, cells: Cells) -> Self {
        self.cells = Some(cells);
        self
    }

    /// Where steps run that do so on Kubernetes.
    #[must_use]
    pub fn clusters(mut self, clusters: Clusters) -> Self {
        self.clusters = Some(clusters);
        self
    }

    /// Another clock and other chance than the system's.
    #[must_use]
    pub fn seams(mut self, clock: Arc<dyn Clock>, ids: Arc<dyn Ids>) -> Self {
        self.clock = clock;
        self.ids = ids;
        self
    }

    /// Keeps a journal of the run. `digest` tells whether the file has changed since.
    pub fn journal_in(
        &mut self,
        history: &History,
        file: &Path,
        digest: u64,
    ) -> Result<(), super::HistoryError> {
        let journal = history.create(file, self.clock.wall(), self.ids.draw())?;
        self.journal = Some((journal, file.to_owned(), digest));
        Ok(())
    }

    pub fn run_id(&self) -> Option<&RunId> {
        self.journal.as_ref().map(|(journal, ..)| journal.id())
    }

    pub fn workflow(&self) -> &Workflow {
        &self.loaded.workflow
    }

    pub fn stopper(&self) -> Stopper {
        Stopper(self.inbox.0.clone())
    }

    /// What every step's fate would be, without running anything.
    pub fn fates(&self) -> Vec<Fate> {
        fates(&self.loaded.workflow, &self.selection, self.past.as_ref())
    }

    /// Runs the workflow to its end.
    pub async fn run(mut self) -> Report {
        let fates = self.fates();
        let mut journal = self.begin_journal(&fates);
        let Loaded { workflow, quoted, .. } = self.loaded;
        let workflow = Arc::new(workflow);
        let settings = Settings {
            workers: self.workers.or(workflow.workers).unwrap_or(DEFAULT_WORKERS),
            grace: self.grace,
            seed: self.ids.draw(),
        };
        let begun = self.clock.now();
        let logger = Arc::new(Mutex::new(self.logger));
        let frames =
            journal.as_ref().map(|journal| FrameLog::new(History::output_of(&journal.dir)));
        let sink = Arc::new(Sink {
            workflow: Arc::clone(&workflow),
            logger: Arc::clone(&logger),
            clock: Arc::clone(&self.clock),
            begun,
            frames: Mutex::new(frames),
            limit: self.output_limit,
            problem: Mutex::new(None),
        });
        let scripts = match &journal {
            Some(journal) => Scripts::Run(journal.dir.clone()),
            None => {
                let unique = format!("kapell-{}-{:x}", std::process::id(), self.ids.draw());
                Scripts::alone(std::env::temp_dir().join(unique))
            }
        };
        let mut context = Context::new(&workflow, self.params, scripts);
        let (mut found, mut stale) = (BTreeMap::new(), Vec::new());
        if let Some(past) = &self.past {
            (found, stale) = places::found(&workflow, &fates, past);
            learn(&mut context, &workflow, &fates, past);
            if let Some(journal) = &mut journal {
                keep(journal, self.clock.wall(), &workflow, &fates, past);
                for (step, placed) in &found {
                    let name = &workflow.step(*step).name;
                    journal.placed(self.clock.wall(), name, 0, placed.clone());
                }
            }
        }
        let executor = self.executor.unwrap_or_else(|| Arc::new(self.local.clone()));
        let (cells, on_cells) = (self.cells, self.selection.on_cells);
        let jobs = self.clusters.map(|clusters| {
            let drawn = || format!("run-{:016x}", self.ids.draw());
            let run = journal.as_ref().map_or_else(drawn, |journal| journal.id().to_string());
            Jobs::new(clusters, run, self.grace, &places::jobs(found.values().chain(&stale)))
        });
        let places = Places { executor, cells, jobs, on_cells, ids: self.ids, found };
        let chores = places.abandon(stale);
        let flow = Flow::new(workflow, &fates, settings);
        let (clock, inbox) = (self.clock, self.inbox.1);
        let parts =
            Parts { flow, quoted, context, places, chores, clock, journal, logger, sink, inbox };
        let actor = Actor::new(parts);
        tokio::select! {
            biased;
            report = actor.run(&self.local) => report,
            () = self.local.reap_now_and_then() => unreachable!("reaping has no end"),
        }
    }

    fn begin_journal(&mut self, fates: &[Fate]) -> Option<RunJournal> {
        let (mut journal, file, digest) = self.journal.take()?;
        let taken_over = |fate: &&Fate| matches!(fate, Fate::Counts(State::Kept) | Fate::GoesOn);
        let kept = fates.iter().filter(taken_over).count();
        let resumes = self.past.as_ref().and_then(|past| RunId::parse(&past.run));
        journal.begin(Header {
            v: VERSION,
            id: journal.id().clone(),
            file: whole_path(&file).display().to_string(),
            workflow: self.loaded.workflow.name.clone(),
            started: self.clock.wall(),
            pid: std::process::id(),
            steps: self.loaded.workflow.len(),
            params: self.params.clone(),
            digest: format!("{digest:016x}"),
            resumes,
            kept: u32::try_from(kept).unwrap_or(u32::MAX),
        });
        Some(journal)
    }
}

/// What steps gave that are not run again. The others give it anew, or not at all.
fn learn(context: &mut Context, workflow: &Workflow, fates: &[Fate], past: &Past) {
    for (ix, step) in workflow.proper_steps() {
        let counts = matches!(fates[ix.index()], Fate::Counts(_));
        if let (true, Some(before)) = (counts, past.steps.get(&*step.name)) {
            context.learn(&step.name, &before.outputs, before.stdout.as_deref());
        }
    }
}

/// Writes down what was kept, so that this journal alone is enough to resume from.
fn keep(
    journal: &mut RunJournal,
    at: kapell_core::seams::Timestamp,
    workflow: &Workflow,
    fates: &[Fate],
    past: &Past,
) {
    for (ix, step) in workflow.proper_steps() {
        let kept = matches!(fates[ix.index()], Fate::Counts(State::Kept));
        if let (true, Some(before)) = (kept, past.steps.get(&*step.name)) {
            let given = Given { outputs: before.outputs.clone(), stdout: before.stdout.clone() };
            journal.kept(at, &step.name, given);
        }
    }
}
