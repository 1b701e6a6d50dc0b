//! A leader in this process: a board on the embedded store, and a scheduler beside it.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use kapell_core::board::Request;
use kapell_core::job::JobRequest;
use kapell_core::seat::Epoch;
use kapell_node::scheduler::{
    Parts, Scheduler, SchedulerService, SchedulerSlot, Settings, Supplies,
};
use kapell_node::system::SystemClock;
use kapell_sim::bench::show::{Cells, Show, embedded};

/// Requests that wait for an answer at once.
const AT_ONCE: usize = 2_000;

#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) show: Show,
    pub(crate) scheduler: Scheduler,
}

impl Stage {
    pub(crate) async fn open(
        dir: &Path,
        supplies: Arc<dyn Supplies>,
        settings: Settings,
    ) -> anyhow::Result<Self> {
        let store = embedded(dir)?;
        let mut show = Show::open(store, Epoch(1), Arc::<Cells>::default()).await?;
        let slot = SchedulerSlot::default();
        let service = SchedulerService::new(Parts {
            settings,
            clock: Arc::new(SystemClock),
            board: show.slot.clone(),
            supplies,
            slot: slot.clone(),
        });
        show.add(&service).await?;
        let scheduler = slot.get().context("it is shown")?;
        Ok(Self { show, scheduler })
    }

    /// Asks the board for all of these, many at once, and waits until all are on disk.
    pub(crate) async fn ask_all(
        &self,
        requests: impl IntoIterator<Item = JobRequest>,
    ) -> anyhow::Result<()> {
        let mut requests = requests.into_iter();
        let mut asked = FuturesUnordered::new();
        loop {
            while asked.len() < AT_ONCE
                && let Some(request) = requests.next()
            {
                asked.push(self.show.board.ask(Request::Job(request)));
            }
            let Some(answer) = asked.next().await else { return Ok(()) };
            answer?;
        }
    }

    /// The value of one of the scheduler's figures, all labels together, as it was when they were last made.
    pub(crate) fn figure(&self, name: &str) -> f64 {
        let stats = self.scheduler.stats();
        stats.figures().iter().filter(|it| it.name == name).map(|it| it.value).sum()
    }

    pub(crate) async fn close(self) -> anyhow::Result<()> {
        self.show.close().await
    }
}
