//! What the board can be asked to do, and what it answers.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::actual::{ActualLrp, InstanceKey, LrpKey, NetInfo};
use super::desired::{DesiredLrp, DesiredUpdate};
use super::domain::Freshness;
use super::ids::{CellId, Domain, InstanceGuid, ProcessGuid, ReservationId, TaskGuid};
use super::task::{Task, TaskDefinition};
use crate::job::{Job, JobRequest, SchedulerNews};
use crate::run::Run;
use crate::seams::Timestamp;

/// How many records one request writes at most.
pub const MOST_RECORDS: usize = 16;

/// One request: decided on its own, written to one shard, answered after the commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    // What clients ask.
    SetDomain {
        domain: Domain,
        ttl: Option<Duration>,
    },
    Desire(Box<DesiredLrp>),
    UpdateDesired {
        process_guid: ProcessGuid,
        update: DesiredUpdate,
    },
    RemoveDesired {
        process_guid: ProcessGuid,
    },
    CreateTask {
        definition: Box<TaskDefinition>,
        instance_guid: InstanceGuid,
    },
    CancelTask {
        task_guid: TaskGuid,
    },
    /// COMPLETED → RESOLVING, by a client that deletes or by the board that calls back.
    ResolveTask {
        task_guid: TaskGuid,
    },
    /// RESOLVING → gone.
    DeleteTask {
        task_guid: TaskGuid,
    },

    // What the board asks itself, most of it in convergence. All is checked again here: what
    // was true when it was planned may not be any more, and then nothing happens.
    /// Creates UNCLAIMED instances that are missing in `from..`, at most `MOST_RECORDS`, and asks for starts.
    Unfold {
        process_guid: ProcessGuid,
        from: u32,
    },
    /// Forgets a deleted desired LRP once nothing of it is left, and that some were given up.
    Settle {
        process_guid: ProcessGuid,
    },
    /// Stops an instance that is not desired any more.
    Retire {
        key: LrpKey,
        why: Retirement,
    },
    /// CRASHED → UNCLAIMED once its wait is over.
    RestartCrashed {
        key: LrpKey,
    },
    /// Asks for the start of an UNCLAIMED instance once more.
    Reemit {
        key: LrpKey,
    },
    /// Its cell is gone: CLAIMED or RUNNING → UNCLAIMED, an evacuating twin is removed.
    Rescue {
        key: LrpKey,
        cell_id: CellId,
    },
    /// No cell could take it.
    FailPlacement {
        key: LrpKey,
        reason: String,
    },
    /// A task could not be placed: with `last`, it fails.
    FailTaskPlacement {
        task_guid: TaskGuid,
        reason: String,
        last: bool,
    },
    /// Asks for the start of a PENDING task once more, or gives it up.
    KickPendingTask {
        task_guid: TaskGuid,
    },
    /// Its cell is gone: RUNNING → COMPLETED and failed.
    FailLostTask {
        task_guid: TaskGuid,
        cell_id: CellId,
    },
    /// Has a COMPLETED task called back for, deletes an old one, demotes a stuck RESOLVING one.
    KickCompletedTask {
        task_guid: TaskGuid,
    },
    /// Removes an evacuating twin whose time is over.
    ExpireEvacuating {
        key: LrpKey,
    },

    // What is asked about jobs and runs, by clients and by the scheduler.
    Job(JobRequest),
    /// What the scheduler asks about the tasks that do the work of runs. Nobody else may make, cancel or delete one.
    RunTask(RunTask),

    // What cells report.
    Report {
        cell_id: CellId,
        report: Report,
    },
}

/// What becomes of a task of a run. The guid is [`crate::run::task_guid`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunTask {
    /// The same again changes nothing.
    Create { definition: Box<TaskDefinition>, instance_guid: InstanceGuid },
    /// One that is over stays as it is.
    Cancel { task_guid: TaskGuid },
    /// Its outcome is stored with its run: it goes, whether it was deleted before or not. Not while it runs.
    Delete { task_guid: TaskGuid },
}

impl RunTask {
    pub fn partition(&self) -> &str {
        match self {
            Self::Create { definition, .. } => definition.task_guid.as_str(),
            Self::Cancel { task_guid } | Self::Delete { task_guid } => task_guid.as_str(),
        }
    }
}

/// Why an instance is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Retirement {
    /// Somebody scaled down or deleted: at once, and its evacuating twin with it.
    Explicit,
    /// Convergence found it in a domain that is fresh until then, or for ever. It pays no attention
    /// to evacuating twins.
    Converged { fresh_until: Option<Timestamp> },
}

/// What a cell tells the board about its own work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "report", rename_all = "snake_case")]
pub enum Report {
    Claim {
        key: LrpKey,
        instance_guid: InstanceGuid,
        /// Of which desired LRP of that name its container is; older agents do not say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        incarnation: Option<u64>,
    },
    /// The instance runs. Creates the record where there is none.
    Running {
        key: LrpKey,
        instance_guid: InstanceGuid,
        domain: Domain,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        incarnation: Option<u64>,
        net: NetInfo,
        /// Whether it is to be sent work; of what older agents run, all is.
        #[serde(default = "yes")]
        ready: bool,
    },
    /// A RUNNING instance, or an evacuating twin, has become ready or is not any more.
    Ready { key: LrpKey, instance_guid: InstanceGuid, ready: bool },
    Crashed {
        key: LrpKey,
        instance_guid: InstanceGuid,
        domain: Domain,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        incarnation: Option<u64>,
        reason: String,
    },
    /// CLAIMED or RUNNING here → gone.
    Remove { key: LrpKey, instance_guid: InstanceGuid },
    /// Removes the evacuating twin if it is ours.
    RemoveEvacuating { key: LrpKey, instance_guid: InstanceGuid },
    /// Makes or takes over the evacuating twin, and sets our instance to UNCLAIMED.
    Evacuate {
        key: LrpKey,
        instance_guid: InstanceGuid,
        domain: Domain,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        incarnation: Option<u64>,
        net: NetInfo,
    },
    /// Sets an instance that is ours to UNCLAIMED: a container that never ran is given up.
    Unclaim { key: LrpKey, instance_guid: InstanceGuid },
    /// PENDING → RUNNING. Only after it is answered may the task's process be started. A cell that did not hear the answer may ask
    /// again in the name of the same reservation.
    StartTask {
        task_guid: TaskGuid,
        instance_guid: InstanceGuid,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reservation: Option<ReservationId>,
    },
    CompleteTask {
        task_guid: TaskGuid,
        instance_guid: InstanceGuid,
        failed: bool,
        #[serde(default)]
        failure_reason: String,
        #[serde(default)]
        result: String,
        #[serde(default)]
        exit_code: Option<i32>,
    },
}

const fn yes() -> bool {
    true
}

impl Report {
    /// The container it is about.
    pub fn instance(&self, cell_id: &CellId) -> InstanceKey {
        let instance_guid = match self {
            Self::Claim { instance_guid, .. }
            | Self::Running { instance_guid, .. }
            | Self::Ready { instance_guid, .. }
            | Self::Crashed { instance_guid, .. }
            | Self::Remove { instance_guid, .. }
            | Self::RemoveEvacuating { instance_guid, .. }
            | Self::Evacuate { instance_guid, .. }
            | Self::Unclaim { instance_guid, .. }
            | Self::StartTask { instance_guid, .. }
            | Self::CompleteTask { instance_guid, .. } => instance_guid.clone(),
        };
        InstanceKey { instance_guid, cell_id: cell_id.clone() }
    }

    pub fn partition(&self) -> &str {
        match self {
            Self::Claim { key, .. }
            | Self::Running { key, .. }
            | Self::Ready { key, .. }
            | Self::Crashed { key, .. }
            | Self::Remove { key, .. }
            | Self::RemoveEvacuating { key, .. }
            | Self::Evacuate { key, .. }
            | Self::Unclaim { key, .. } => key.process_guid.as_str(),
            Self::StartTask { task_guid, .. } | Self::CompleteTask { task_guid, .. } => {
                task_guid.as_str()
            }
        }
    }
}

impl Request {
    /// The name whose hash says which shard it is for.
    pub fn partition(&self) -> &str {
        match self {
            Self::SetDomain { domain, .. } => domain.as_str(),
            Self::Desire(lrp) => lrp.process_guid.as_str(),
            Self::UpdateDesired { process_guid, .. }
            | Self::RemoveDesired { process_guid }
            | Self::Unfold { process_guid, .. }
            | Self::Settle { process_guid } => process_guid.as_str(),
            Self::CreateTask { definition, .. } => definition.task_guid.as_str(),
            Self::CancelTask { task_guid }
            | Self::ResolveTask { task_guid }
            | Self::DeleteTask { task_guid }
            | Self::FailTaskPlacement { task_guid, .. }
            | Self::KickPendingTask { task_guid }
            | Self::FailLostTask { task_guid, .. }
            | Self::KickCompletedTask { task_guid } => task_guid.as_str(),
            Self::Retire { key, .. }
            | Self::RestartCrashed { key }
            | Self::Reemit { key }
            | Self::Rescue { key, .. }
            | Self::FailPlacement { key, .. }
            | Self::ExpireEvacuating { key } => key.process_guid.as_str(),
            Self::Job(request) => request.job_id(),
            Self::RunTask(request) => request.partition(),
            Self::Report { report, .. } => report.partition(),
        }
    }
}

/// What was decided: the changes are in the draft.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    pub reply: Reply,
    pub effects: Vec<Effect>,
}

/// What a request is answered with once it is committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// Nothing was to be done, or it was done and there is nothing to show.
    Done,
    Domain(Freshness),
    /// `created`: it was not there before.
    Desired {
        lrp: Box<DesiredLrp>,
        created: bool,
    },
    Task {
        task: Box<Task>,
        created: bool,
    },
    /// What stands there after a report of a cell.
    Instance(Option<Box<ActualLrp>>),
    Job {
        job: Box<Job>,
        created: bool,
    },
    Run {
        run: Arc<Run>,
        created: bool,
    },
}

impl Reply {
    /// The run that it shows, if it shows one.
    pub fn into_run(self) -> Option<Arc<Run>> {
        match self {
            Self::Run { run, .. } => Some(run),
            Self::Done
            | Self::Domain(_)
            | Self::Desired { .. }
            | Self::Task { .. }
            | Self::Instance(_)
            | Self::Job { .. } => None,
        }
    }
}

/// What happens after the commit, and only then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// To the auctioneer.
    Start {
        key: LrpKey,
    },
    StartTask {
        task_guid: TaskGuid,
    },
    /// To the cell.
    Stop {
        key: LrpKey,
        instance: InstanceKey,
    },
    CancelTask {
        task_guid: TaskGuid,
        instance: InstanceKey,
    },
    /// Ask the board itself to go on.
    Next(Request),
    /// Resolve a COMPLETED task when its turn comes, call back and then delete.
    CallBack {
        task: Box<Task>,
    },
    /// It was deleted for its age, and whoever wanted to know was not told.
    Untold {
        task: Box<Task>,
    },
    /// To the scheduler.
    Scheduler(SchedulerNews),
}

/// Why a request changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "refusal", rename_all = "snake_case")]
pub enum Refusal {
    /// All problems at once.
    #[error("{}", problems.join("; "))]
    Invalid { problems: Vec<String> },
    #[error("there is no {what} `{name}`")]
    NotFound { what: String, name: String },
    /// It is there already, and different.
    #[error("{text}")]
    Exists { text: String, fields: Vec<String> },
    /// It stands at another version.
    #[error("it stands at version {stands}, not {asked}: read it again")]
    Version { stands: u64, asked: u64 },
    /// Its state does not allow that.
    #[error("{text}")]
    State { text: String },
}
