use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use kapell_backend::containers::{Containers, Error, Found};
use kapell_core::board::{CellId, CellPresence, Resources};
use kapell_core::seams::{Clock, Ids};
use tokio::sync::{Notify, watch};

use super::actor::Actor;
use super::evacuation::Mark;
use super::executor::{Executor, Stand};
use super::lead::Lead;
use super::logs::Logs;
use super::notes::Notes;
use super::probes::Probes;
use super::rep::Rep;
use super::self_test;
use super::settings::CellSettings;
use super::tag::Tag;
use super::tools::{Pools, Tools};
use super::transfers::Transfers;
use super::vault::Vault;
use super::{Cell, Shared};
use crate::link::BoardLink;

/// What a cell is made from.
#[derive(Debug)]
pub struct Parts {
    pub id: CellId,
    /// Tells its directory from all others, so that no other cell takes its id.
    pub home: String,
    /// Where it keeps logs and what is to outlast the agent. Without it nothing is kept, and there is nothing to
    /// tidy up.
    pub dir: Option<PathBuf>,
    pub settings: CellSettings,
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn Ids>,
    pub containers: Arc<dyn Containers>,
    pub transfers: Arc<dyn Transfers>,
    pub probes: Arc<dyn Probes>,
    pub board: Arc<dyn BoardLink>,
    pub capacity: Resources,
    pub zone: String,
    /// Where the leader reaches it.
    pub url: String,
    /// Where others reach what its instances listen on.
    pub advertise_host: String,
    pub placement_tags: Vec<String>,
    pub optional_placement_tags: Vec<String>,
}

/// A cell that does nothing until it is run.
#[derive(Debug)]
#[must_use = "a cell does nothing until it is run"]
pub struct CellRunning {
    actor: Actor,
}

impl CellRunning {
    /// Works until [`Cell::shutdown`].
    pub async fn run(self) {
        self.actor.run().await;
    }
}

impl Cell {
    /// Finds what an earlier agent has left. The board hears of this cell only once it is run.
    pub async fn start(parts: Parts) -> Result<(Self, CellRunning), Error> {
        let found = parts.containers.recover().await?;
        let logs = Logs::new(parts.dir.as_deref());
        let schemes = parts.containers.rootfs_schemes();
        let settings = Arc::new(parts.settings);
        let tools = Arc::new(Tools {
            cell_id: parts.id.clone(),
            pools: Pools::new(&settings),
            settings: Arc::clone(&settings),
            clock: Arc::clone(&parts.clock),
            containers: Arc::clone(&parts.containers),
            transfers: parts.transfers,
            probes: parts.probes,
            notes: Notes::new(parts.dir.as_deref()),
            vault: Vault::new(parts.id.clone(), Arc::clone(&parts.board)),
            downloads: parts.dir.as_deref().map(|dir| dir.join("downloads")),
        });
        let executor = Executor::new(
            (parts.id.clone(), (*settings).clone()),
            (Arc::clone(&parts.clock), parts.ids),
            logs.clone(),
            parts.advertise_host,
            (parts.capacity, schemes.clone()),
        );
        let mut rep = Rep::new(executor, Arc::clone(&parts.clock));
        let leads = take_over(found, &tools, &mut rep).await;
        let mark = Mark::new(parts.dir.as_deref());
        rep.evacuate_by = mark.found(&*parts.clock, settings.evacuation);
        rep.evacuating = rep.evacuate_by.is_some();
        let presence = CellPresence {
            cell_id: parts.id.clone(),
            home: parts.home,
            url: parts.url,
            zone: parts.zone,
            capacity: parts.capacity,
            rootfs_schemes: schemes,
            placement_tags: parts.placement_tags,
            optional_placement_tags: parts.optional_placement_tags,
            evacuating: false,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let shared = Arc::new(Shared {
            id: parts.id,
            settings,
            rep: Mutex::new(rep),
            clock: parts.clock,
            containers: parts.containers,
            tools,
            board: parts.board,
            logs,
            mark,
            presence,
            wake: Notify::new(),
            evacuated: watch::Sender::new(false),
            refused: watch::Sender::new(None),
        });
        let actor = Actor::new(Arc::clone(&shared), leads);
        Ok((Self { shared }, CellRunning { actor }))
    }
}

/// Takes in what an earlier agent has left; gives what of it is still to be led.
async fn take_over(found: Vec<Found>, tools: &Arc<Tools>, rep: &mut Rep) -> Vec<Lead> {
    tidy_downloads(tools);
    let mut leads = Vec::new();
    for container in found {
        if self_test::is_one(&container.guid) {
            let deleted = tools.containers.delete(&container.guid).await;
            if let Err(error) = deleted {
                tracing::warn!(container = container.guid, %error, "cannot delete what a self-test has left");
            }
            continue;
        }
        let tag = match Tag::decode(&container.tag) {
            Ok(tag) => Arc::new(tag),
            Err(error) => {
                tracing::error!(container = container.guid, %error, "a container of unknown origin is left alone");
                continue;
            }
        };
        let guid = tag.instance_guid.clone();
        let history = tools.notes.of(&guid).unwrap_or_else(|error| {
            tracing::error!(container = %guid, %error, "cannot read what has happened to a container");
            None
        });
        let of = (Arc::clone(tools), Arc::clone(&tag));
        let lead = Lead::resume(of.0, of.1, history.as_ref(), container.processes);
        if lead.is_over() {
            let result = lead.over().await;
            rep.executor.adopt(tag, Stand::Completed(result));
            continue;
        }
        let stand = if lead.is_running() { Stand::Running } else { Stand::Starting };
        rep.executor.adopt(tag, stand);
        rep.found_stopping(&guid, lead.is_stopping());
        leads.push(lead);
    }
    tools.notes.keep_only(&rep.executor.guids());
    leads
}

/// What was not whole when an earlier agent ended is of no use.
fn tidy_downloads(tools: &Tools) {
    let Some(dir) = &tools.downloads else { return };
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(dir = %dir.display(), %error, "cannot remove old downloads");
        }
        Ok(()) | Err(_) => {}
    }
}
