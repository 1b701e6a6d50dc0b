//! Those who lead containers, as the agent sees them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kapell_core::board::InstanceGuid;
use kapell_core::rep::container::RunResult;
use tokio::sync::mpsc;
use tokio::task::Id;
use tokio_util::sync::CancellationToken;

use super::actor::Actor;
use super::job::Done;
use super::lead::{self, Lead, News, Teller};
use super::tag::Tag;

type From = (InstanceGuid, News);

/// See the module.
#[derive(Debug)]
pub(super) struct Leaders {
    /// Of what an earlier agent has left, until they begin.
    found: Vec<Lead>,
    to: mpsc::UnboundedSender<From>,
    news: mpsc::UnboundedReceiver<From>,
    /// By what each is told to stop, and which job it is.
    reins: BTreeMap<InstanceGuid, (CancellationToken, Id)>,
    /// Those of containers in which nothing runs yet.
    starting: BTreeSet<InstanceGuid>,
}

impl Leaders {
    pub(super) fn new(found: Vec<Lead>) -> Self {
        let (to, news) = mpsc::unbounded_channel();
        Self { found, to, news, reins: BTreeMap::new(), starting: BTreeSet::new() }
    }

    pub(super) async fn next(&mut self) -> Option<From> {
        self.news.recv().await
    }

    pub(super) fn stop(&self, guid: &InstanceGuid) {
        if let Some((stop, _)) = self.reins.get(guid) {
            stop.cancel();
        }
    }

    pub(super) fn ended(&mut self, guid: &InstanceGuid) {
        self.starting.remove(guid);
        self.reins.remove(guid);
    }

    /// Whose leader it was.
    pub(super) fn broke_down(&mut self, job: Id) -> Option<InstanceGuid> {
        let guid =
            self.reins.iter().find(|(_, (_, id))| *id == job).map(|(guid, _)| guid.clone())?;
        self.ended(&guid);
        Some(guid)
    }

    /// Whether something runs in each container that there is.
    pub(super) fn have_begun(&self) -> bool {
        self.starting.is_empty()
    }
}

impl Actor {
    /// Goes on with whatever an earlier agent has left.
    pub(super) fn lead_found(&mut self) {
        for lead in std::mem::take(&mut self.leaders.found) {
            let guid = lead.tag().instance_guid.clone();
            let (stop, teller) = self.reins(&guid);
            self.spawn_leader(guid, stop.clone(), lead.run(stop, teller));
        }
    }

    pub(super) fn lead(&mut self, tag: Arc<Tag>) {
        let guid = tag.instance_guid.clone();
        self.leaders.starting.insert(guid.clone());
        let tools = Arc::clone(&self.shared.tools);
        let (stop, teller) = self.reins(&guid);
        self.spawn_leader(guid, stop.clone(), lead::from_start(tools, tag, stop, teller));
    }

    /// What a leader is told by, and what it tells by.
    fn reins(&self, guid: &InstanceGuid) -> (CancellationToken, Teller) {
        let teller = Teller { guid: guid.clone(), to: self.leaders.to.clone() };
        (CancellationToken::new(), teller)
    }

    fn spawn_leader(
        &mut self,
        guid: InstanceGuid,
        stop: CancellationToken,
        leader: impl Future<Output = RunResult> + Send + 'static,
    ) {
        let of = guid.clone();
        let job = self.jobs.spawn(async move { Done::Ended(of, leader.await) });
        self.leaders.reins.insert(guid, (stop, job.id()));
    }

    /// What a container told comes before what came of it.
    pub(super) fn hear_all(&mut self) {
        while let Ok((guid, news)) = self.leaders.news.try_recv() {
            self.hear(&guid, news);
        }
    }

    pub(super) fn hear(&mut self, guid: &InstanceGuid, news: News) {
        if news != News::Created {
            self.leaders.starting.remove(guid);
        }
        self.shared.rep().heard(guid, news);
    }
}
