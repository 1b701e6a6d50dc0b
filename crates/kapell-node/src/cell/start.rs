use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use kapell_backend::containers::{Containers, Error};
use kapell_core::board::{CellId, CellPresence, Resources};
use kapell_core::seams::{Clock, Ids};
use tokio::sync::{Notify, watch};

use super::actor::Actor;
use super::executor::Executor;
use super::job;
use super::logs::Logs;
use super::rep::Rep;
use super::settings::CellSettings;
use super::tag::Tag;
use super::{Cell, Shared};
use crate::link::BoardLink;

/// What a cell is made from.
#[derive(Debug)]
pub struct Parts {
    pub id: CellId,
    /// Tells its directory from all others, so that no other cell takes its id.
    pub home: String,
    /// Where it keeps logs. Without it nothing is kept, and there is nothing to tidy up.
    pub dir: Option<PathBuf>,
    pub settings: CellSettings,
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn Ids>,
    pub containers: Arc<dyn Containers>,
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
        let mut executor = Executor::new(
            (parts.id.clone(), parts.settings.clone()),
            (Arc::clone(&parts.clock), parts.ids),
            logs.clone(),
            parts.advertise_host,
            parts.capacity,
        );
        for container in found {
            match Tag::decode(&container.tag) {
                Ok(tag) => {
                    let result = match container.exit {
                        Some(exit) => {
                            Some(job::finish(&parts.containers, tag.clone(), &exit).await)
                        }
                        None => None,
                    };
                    executor.adopt(tag, result);
                }
                Err(error) => {
                    tracing::error!(container = container.guid, %error, "a container of unknown origin is left alone");
                }
            }
        }
        let presence = CellPresence {
            cell_id: parts.id.clone(),
            home: parts.home,
            url: parts.url,
            zone: parts.zone,
            capacity: parts.capacity,
            rootfs_schemes: Vec::new(),
            placement_tags: parts.placement_tags,
            optional_placement_tags: parts.optional_placement_tags,
            evacuating: false,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let shared = Arc::new(Shared {
            id: parts.id,
            settings: Arc::new(parts.settings),
            rep: Mutex::new(Rep::new(executor, Arc::clone(&parts.clock))),
            clock: parts.clock,
            containers: parts.containers,
            board: parts.board,
            logs,
            presence,
            wake: Notify::new(),
            evacuated: watch::Sender::new(false),
            refused: watch::Sender::new(None),
        });
        let actor = Actor::new(Arc::clone(&shared));
        Ok((Self { shared }, CellRunning { actor }))
    }
}
