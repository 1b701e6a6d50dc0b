use std::path::PathBuf;
use std::sync::Arc;

use kapell_backend::containers::Containers;
use kapell_core::board::CellId;
use kapell_core::seams::Clock;
use tokio::sync::Semaphore;

use super::notes::Notes;
use super::probes::Probes;
use super::settings::CellSettings;
use super::transfers::Transfers;
use super::vault::Vault;

/// What a cell does its work with.
#[derive(Debug)]
pub(super) struct Tools {
    pub(super) cell_id: CellId,
    pub(super) settings: Arc<CellSettings>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) containers: Arc<dyn Containers>,
    pub(super) transfers: Arc<dyn Transfers>,
    pub(super) probes: Arc<dyn Probes>,
    pub(super) notes: Notes,
    pub(super) vault: Vault,
    /// Where downloads lie until they are whole.
    pub(super) downloads: Option<PathBuf>,
    pub(super) pools: Pools,
}

/// How much of a kind is done at once. Nothing of one kind ever waits for another kind.
#[derive(Debug)]
pub(super) struct Pools {
    pub(super) creates: Semaphore,
    pub(super) runs: Semaphore,
    pub(super) checks: Semaphore,
    pub(super) transfers: Semaphore,
}

impl Pools {
    pub(super) fn new(settings: &CellSettings) -> Self {
        let pool = |size: usize| Semaphore::new(size.clamp(1, Semaphore::MAX_PERMITS));
        Self {
            creates: pool(settings.starts),
            runs: pool(settings.runs),
            checks: pool(settings.checks),
            transfers: pool(settings.transfers),
        }
    }
}
