//! Leads one container from its creation to its end.

use std::path::Path;
use std::sync::Arc;

use kapell_backend::containers::FoundProcess;
use kapell_core::board::InstanceGuid;
use kapell_core::recipe::{self, Outcome, Phase};
use kapell_core::rep::container::RunResult;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

use super::checkup::{Checkup, Finding};
use super::deed;
use super::launch;
use super::notes::{History, Note};
use super::outcome;
use super::tag::Tag;
use super::tools::Tools;
use super::walk::{Part, Turn, Walk};

/// What a container tells on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum News {
    /// It is there, and nothing runs in it yet.
    Created,
    /// Something runs in it.
    Begun,
    /// Its action is under way, and it is well; and whether it is ready.
    Running {
        ready: Option<bool>,
    },
    Ready(bool),
    /// It is not well any more, and is being stopped.
    Unhealthy(String),
}

/// Where a container tells it.
#[derive(Debug, Clone)]
pub(super) struct Teller {
    pub(super) guid: InstanceGuid,
    pub(super) to: mpsc::UnboundedSender<(InstanceGuid, News)>,
}

impl Teller {
    fn tell(&self, news: News) {
        // Nobody listens any more when the agent ends.
        let _told = self.to.send((self.guid.clone(), news));
    }
}

/// A container that an earlier agent has left, or that was just made.
#[derive(Debug)]
pub(super) struct Lead {
    tools: Arc<Tools>,
    tag: Arc<Tag>,
    walk: Walk,
    checkup: Checkup,
    running: bool,
    checked: bool,
    unhealthy: Option<String>,
    /// Somebody other than its health wants it to end.
    stopped: bool,
}

/// Whether what happens is kept for the next agent: a driver remembers one program itself.
const fn part(tag: &Tag, checkup: &Checkup) -> Part {
    Part::Main { noted: tag.plain().is_none() || checkup.is_awaited() }
}

/// Makes a container and leads it; says what it came to.
pub(super) async fn from_start(
    tools: Arc<Tools>,
    tag: Arc<Tag>,
    stop: CancellationToken,
    teller: Teller,
) -> RunResult {
    let turn = tokio::select! {
        biased;
        () = stop.cancelled() => return RunResult::stopped(),
        turn = tools.pools.creates.acquire() => turn,
    };
    let created = create(&tools, &tag).await;
    drop(turn);
    if let Err(reason) = created {
        return if stop.is_cancelled() { RunResult::stopped() } else { RunResult::failed(reason) };
    }
    teller.tell(News::Created);
    if stop.is_cancelled() {
        return RunResult::stopped();
    }
    Lead::begin(tools, tag).run(stop, teller).await
}

async fn create(tools: &Arc<Tools>, tag: &Arc<Tag>) -> Result<(), String> {
    let sole = is_sole(tag);
    let (of, with) = (Arc::clone(tag), Arc::clone(tools));
    let make = move || launch::spec(&of, sole, &with.settings);
    let spec = if tag.plain().is_some_and(|run| run.user.is_some()) {
        // Looking up a user may take long.
        spawn_blocking(make).await.unwrap_or_else(|error| Err(error.to_string()))?
    } else {
        make()?
    };
    tools.containers.create(spec).await.map_err(|error| deed::unstarted(tag, &error))
}

/// Whether there will never be more than one program.
fn is_sole(tag: &Tag) -> bool {
    recipe::is_sole(tag.setup.as_ref(), &tag.action) && tag.monitor.is_none()
}

impl Lead {
    fn begin(tools: Arc<Tools>, tag: Arc<Tag>) -> Self {
        let checkup = Checkup::new(Arc::clone(&tools), Arc::clone(&tag));
        let part = part(&tag, &checkup);
        let walk = Walk::begin(Arc::clone(&tools), Arc::clone(&tag), part, tag.recipe());
        Self::new(tools, tag, walk, checkup)
    }

    fn new(tools: Arc<Tools>, tag: Arc<Tag>, walk: Walk, checkup: Checkup) -> Self {
        let stopped = walk.is_stopping();
        Self { tools, tag, walk, checkup, running: false, checked: false, unhealthy: None, stopped }
    }

    /// Goes on with what an earlier agent has left.
    pub(super) fn resume(
        tools: Arc<Tools>,
        tag: Arc<Tag>,
        history: Option<&History>,
        processes: Vec<FoundProcess>,
    ) -> Self {
        let was_healthy = history.is_some_and(|history| history.healthy);
        let count = processes.iter().filter_map(|found| monitor(&found.name)).max();
        let count = count.unwrap_or(0);
        let checkup = Checkup::resume(Arc::clone(&tools), Arc::clone(&tag), was_healthy, count);
        let part = part(&tag, &checkup);
        let of = (Arc::clone(&tools), Arc::clone(&tag));
        let walk = Walk::resume(of, part, history, processes);
        let mut lead = Self::new(tools, tag, walk, checkup);
        lead.unhealthy = history.and_then(|history| history.unhealthy.clone());
        lead.stopped = lead.walk.is_stopping() && lead.unhealthy.is_none();
        let goes = lead.walk.phase() == Phase::Action;
        let awaited = lead.checkup.is_awaited() && !was_healthy;
        lead.running = goes && !awaited && lead.walk.found_running();
        lead
    }

    pub(super) const fn tag(&self) -> &Arc<Tag> {
        &self.tag
    }

    pub(super) const fn is_running(&self) -> bool {
        self.running
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.walk.phase(), Phase::Over(_))
    }

    /// Whether it is being stopped, and why, if it is not well.
    pub(super) fn is_stopping(&self) -> (bool, Option<&str>) {
        (self.walk.is_stopping(), self.unhealthy.as_deref())
    }

    /// Leads it until all is over; says what it came to.
    pub(super) async fn run(mut self, stop: CancellationToken, teller: Teller) -> RunResult {
        if self.running {
            teller.tell(News::Running { ready: self.checkup.is_ready() });
            self.checkup.begin_readiness();
        }
        if self.walk.is_stopping() {
            self.checkup.end();
        }
        loop {
            if self.walk.phase() == Phase::Action && !std::mem::replace(&mut self.checked, true) {
                self.checkup.begin_health();
            }
            tokio::select! {
                biased;
                () = stop.cancelled(), if !self.stopped => {
                    self.stopped = true;
                    self.end();
                }
                turn = self.walk.turn() => match turn {
                    Turn::Going => {}
                    Turn::Begun => self.has_begun(&teller),
                    Turn::Over(outcome) => return self.result(outcome).await,
                },
                finding = self.checkup.turn() => self.found(finding, &teller),
            }
        }
    }

    fn end(&mut self) {
        self.checkup.end();
        self.walk.stop();
    }

    fn has_begun(&mut self, teller: &Teller) {
        teller.tell(News::Begun);
        if self.walk.phase() == Phase::Action && !self.checkup.is_awaited() {
            self.runs(teller);
        }
    }

    fn runs(&mut self, teller: &Teller) {
        if !std::mem::replace(&mut self.running, true) && !self.walk.is_stopping() {
            teller.tell(News::Running { ready: self.checkup.is_ready() });
            self.checkup.begin_readiness();
        }
    }

    fn found(&mut self, finding: Finding, teller: &Teller) {
        match finding {
            Finding::Nothing => {}
            Finding::Healthy => {
                self.walk.note(&Note::Healthy);
                self.runs(teller);
            }
            Finding::Unhealthy(reason) => {
                let reason = outcome::cut(reason);
                self.walk.note(&Note::Unhealthy(reason.clone()));
                teller.tell(News::Unhealthy(reason.clone()));
                self.unhealthy = Some(reason);
                self.end();
            }
            Finding::Ready(ready) => teller.tell(News::Ready(ready)),
        }
    }

    /// What it came to. Only to be asked when all is over.
    pub(super) async fn over(self) -> RunResult {
        match self.walk.phase() {
            Phase::Over(outcome) => self.result(outcome).await,
            Phase::Setup | Phase::Action => RunResult::failed(ENDED),
        }
    }

    /// What the end of all means. An instance is never done: if nobody stopped it, it crashed.
    async fn result(self, outcome: Outcome) -> RunResult {
        let exit_code = outcome.exit_code;
        let last = self.walk.last();
        // An earlier agent may have stopped a program of which nothing is noted.
        let before = self.tag.plain().is_some() && last.is_some_and(|exit| exit.stopped);
        if let Some(reason) = self.unhealthy.filter(|_| !self.stopped) {
            return RunResult { exit_code, ..RunResult::failed(reason) };
        }
        if self.stopped || before {
            return RunResult { exit_code, ..RunResult::stopped() };
        }
        if let Some(reason) = outcome.failure {
            return RunResult { exit_code, ..RunResult::failed(outcome::cut(reason)) };
        }
        if !self.tag.is_task() {
            let reason = last.map_or_else(|| ENDED.to_owned(), outcome::reason);
            return RunResult { exit_code, ..RunResult::failed(reason) };
        }
        left_behind(&self.tools, &self.tag, RunResult { exit_code, ..RunResult::default() }).await
    }
}

const ENDED: &str = "Its action has ended";

/// Adds what a task has left in its result file.
async fn left_behind(tools: &Tools, tag: &Tag, result: RunResult) -> RunResult {
    let (guid, file) = (tag.instance_guid.as_str(), &tag.result_file);
    if file.is_empty() {
        return result;
    }
    let dir = tag.plain().and_then(|run| run.dir.as_deref()).unwrap_or_default();
    let path = Path::new(dir).join(file);
    match tools.containers.read_own(guid, &path.to_string_lossy(), outcome::LONGEST_RESULT).await {
        Ok(bytes) => RunResult { result: String::from_utf8_lossy(&bytes).into_owned(), ..result },
        Err(error) => {
            let why = std::error::Error::source(&error).map(ToString::to_string);
            let why = why.unwrap_or_else(|| error.to_string());
            let reason = outcome::cut(format!("cannot read the result file `{file}`: {why}"));
            RunResult { exit_code: result.exit_code, ..RunResult::failed(reason) }
        }
    }
}

/// The count of the monitor that a process belongs to.
fn monitor(name: &str) -> Option<u64> {
    name.strip_prefix('m')?.split_once('-')?.0.parse().ok()
}
