//! A cell: runs containers, and keeps the board's records of them true.

mod actor;
mod checkup;
mod deed;
mod entry;
mod evacuation;
mod examination;
mod executor;
mod job;
mod judge;
pub(crate) mod launch;
mod lead;
mod leaders;
pub(crate) mod logs;
mod movement;
mod notes;
mod oddity;
pub(crate) mod outcome;
mod overdue;
mod ports;
mod probes;
mod progress;
mod rep;
mod self_test;
mod settings;
mod slots;
mod start;
mod tag;
#[cfg(test)]
mod tests;
mod timers;
mod tools;
mod transfers;
mod vault;
mod walk;
mod wanted;

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kapell_api::v1::{Cancel, Problem, Stop, Work, WorkAnswer};
use kapell_backend::containers::{Containers, Error, Exec, Session};
use kapell_core::board::{CellId, CellPresence, CellState, LrpKey, TaskGuid};
use kapell_core::planted::Flaw;
use kapell_core::seams::Clock;
use kapell_core::seat::Epoch;
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, watch};

use self::evacuation::Mark;
pub use self::logs::ContainerLogs;
use self::logs::Logs;
use self::rep::{Read, Rep};
use self::tools::Tools;
use crate::link::BoardLink;

pub use self::oddity::INCONCEIVABLE;
pub use self::probes::{LocalProbes, Probes};
pub use self::settings::{CellSettings, OWN_USERS};
pub use self::start::{CellRunning, Parts};
pub use self::transfers::{HttpTransfers, Transfers};

/// A way to ask a cell. Cheap to clone. Whatever bears an older epoch than the highest seen is refused.
#[derive(Debug, Clone)]
pub struct Cell {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    id: CellId,
    settings: Arc<CellSettings>,
    clock: Arc<dyn Clock>,
    containers: Arc<dyn Containers>,
    tools: Arc<Tools>,
    board: Arc<dyn BoardLink>,
    logs: Logs,
    mark: Mark,
    /// What it says of itself while all is well.
    presence: CellPresence,
    rep: Mutex<Rep>,
    wake: Notify,
    evacuated: watch::Sender<bool>,
    /// Why the board does not take this cell.
    refused: watch::Sender<Option<Problem>>,
}

impl Shared {
    fn rep(&self) -> MutexGuard<'_, Rep> {
        self.rep.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a log is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogOf {
    Lrp(LrpKey),
    Task(TaskGuid),
}

impl fmt::Display for LogOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lrp(key) => write!(f, "{key}"),
            Self::Task(guid) => write!(f, "task/{guid}"),
        }
    }
}

/// How a cell ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    LeaveRunning,
    StopWork,
}

impl Cell {
    pub fn id(&self) -> &CellId {
        &self.shared.id
    }

    pub fn state(&self, epoch: Epoch) -> Result<CellState, Problem> {
        let rep = self.heed(epoch)?;
        let (lrps, tasks, starting) = rep.executor.held();
        let presence = &self.shared.presence;
        Ok(CellState {
            cell_id: self.shared.id.clone(),
            zone: presence.zone.clone(),
            total: rep.executor.capacity(),
            available: rep.executor.available(),
            rootfs_schemes: presence.rootfs_schemes.clone(),
            placement_tags: presence.placement_tags.clone(),
            optional_placement_tags: presence.optional_placement_tags.clone(),
            starting,
            lrps,
            tasks,
            evacuating: rep.evacuating || rep.end.is_some(),
            unhealthy: rep.unhealthy,
        })
    }

    /// Reserves what fits and says what does not.
    pub fn work(&self, epoch: Epoch, work: Work) -> Result<WorkAnswer, Problem> {
        let mut rep = self.obey(epoch)?;
        let refusal = rep.refusal();
        let mut answer = WorkAnswer::default();
        for lrp in work.lrps {
            let process_guid = lrp.desired.process_guid.clone();
            let key = LrpKey { process_guid, index: lrp.index };
            let reserved = match refusal {
                Some(refusal) => Err(refusal.to_owned()),
                None => rep.executor.reserve_lrp(lrp),
            };
            match reserved {
                Ok(guid) => rep.look_at(guid),
                Err(reason) => answer.refused_lrps.push((key, reason)),
            }
        }
        for task in work.tasks {
            let task_guid = task.definition.task_guid.clone();
            let reserved = match refusal {
                Some(refusal) => Err(refusal.to_owned()),
                None => rep.executor.reserve_task(task),
            };
            match reserved {
                Ok(guid) => rep.look_at(guid),
                Err(reason) => answer.refused_tasks.push((task_guid, reason)),
            }
        }
        drop(rep);
        self.shared.wake.notify_one();
        Ok(answer)
    }

    pub fn stop(&self, epoch: Epoch, stop: &Stop) -> Result<(), Problem> {
        let mut rep = self.obey(epoch)?;
        let key = rep.executor.get(&stop.instance_guid).map(|entry| entry.tag.key.clone());
        if key.is_none_or(|key| key == LogOf::Lrp(stop.key.clone())) {
            rep.stop(&stop.instance_guid);
        }
        drop(rep);
        self.shared.wake.notify_one();
        Ok(())
    }

    pub fn cancel(&self, epoch: Epoch, cancel: &Cancel) -> Result<(), Problem> {
        let mut rep = self.obey(epoch)?;
        let key = rep.executor.get(&cancel.instance_guid).map(|entry| entry.tag.key.clone());
        if key.is_none_or(|key| key == LogOf::Task(cancel.task_guid.clone())) {
            rep.cancel(&cancel.instance_guid, cancel.at_once);
        }
        drop(rep);
        self.shared.wake.notify_one();
        Ok(())
    }

    pub fn evacuate(&self, epoch: Epoch) -> Result<(), Problem> {
        drop(self.obey(epoch)?);
        self.begin_evacuation();
        Ok(())
    }

    /// Forgets that an earlier agent was evacuating the cell in this directory: the next one takes work again.
    pub fn stay(dir: &Path) {
        Mark::new(Some(dir)).clear();
    }

    /// Takes no more work, and ends once everything has moved elsewhere or time is over. An agent that is started
    /// again meanwhile goes on with it.
    pub fn begin_evacuation(&self) {
        let mut rep = self.shared.rep();
        if !rep.evacuating {
            rep.evacuating = true;
            let (clock, time) = (&self.shared.clock, self.shared.settings.evacuation);
            // While nobody can come to the end of it, who would remove the mark.
            self.shared.mark.set(clock.wall().after(time));
            rep.evacuate_by = Some(clock.now().after(time));
            rep.look_at_all();
            rep.ask(Read::Now);
        }
        drop(rep);
        self.shared.wake.notify_one();
    }

    /// Waits until an evacuation is over and the board was told so.
    pub async fn evacuated(&self) {
        let mut over = self.shared.evacuated.subscribe();
        // The sender lives for as long as this handle.
        drop(over.wait_for(|over| *over).await);
    }

    /// Waits until the board says that this cell may not be there, and why. It has then ended, and its
    /// work is left as it was.
    pub async fn refused(&self) -> Problem {
        let mut refused = self.shared.refused.subscribe();
        loop {
            if let Some(problem) = refused.borrow_and_update().clone() {
                return problem;
            }
            // The sender lives for as long as this handle.
            drop(refused.changed().await);
        }
    }

    /// Ends the cell: its [`CellRunning::run`] returns. With `stop_work`, all containers are told to
    /// stop and that is reported; without it they run on and the next agent finds them.
    pub fn shutdown(&self, stop_work: bool) {
        let end = if stop_work { End::StopWork } else { End::LeaveRunning };
        self.shared.rep().end.get_or_insert(end);
        self.shared.wake.notify_one();
    }

    /// Where it lies what containers of this one have written, the oldest container first, and of each the program
    /// that began first; none if nothing is kept. Each directory holds segments named by growing numbers.
    pub fn logs(&self, of: &LogOf) -> Vec<ContainerLogs> {
        self.shared.logs.all_of(of)
    }

    /// Runs a program in the container of this one that is there now.
    pub async fn exec(&self, of: &LogOf, exec: Exec) -> Result<Session, Error> {
        let guid = self.shared.rep().executor.live(of);
        let guid = guid.ok_or_else(|| Error::Unknown(of.to_string()))?;
        self.shared.containers.exec(guid.as_str(), exec).await
    }

    /// Whether a container of this one is there now, so that more may be written.
    pub fn is_live(&self, of: &LogOf) -> bool {
        self.shared.rep().executor.is_live(of)
    }

    /// Does what a leader says only once a board has taken this agent: it may have known a later leader before
    /// it was restarted.
    fn obey(&self, epoch: Epoch) -> Result<MutexGuard<'_, Rep>, Problem> {
        let rep = self.heed(epoch)?;
        if rep.welcome {
            return Ok(rep);
        }
        let message = "this cell was just started and no leader has welcomed it yet".to_owned();
        Err(Problem { code: "not_welcome_yet".to_owned(), message, details: ().into() })
    }

    /// Refuses what a leader says who is not the last one heard of.
    fn heed(&self, epoch: Epoch) -> Result<MutexGuard<'_, Rep>, Problem> {
        let mut rep = self.shared.rep();
        if epoch < rep.epoch && !self.shared.settings.planted.has(Flaw::OldEpochHeeded) {
            let message =
                format!("epoch {} is over: this cell has heard of epoch {}", epoch.0, rep.epoch.0);
            let details = serde_json::json!({ "epoch": epoch, "highest": rep.epoch });
            return Err(Problem { code: "older_epoch".to_owned(), message, details });
        }
        rep.epoch = epoch;
        Ok(rep)
    }
}
