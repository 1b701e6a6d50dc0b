//! Which runs there are, for hosts that clear up: as the board here knows, or as the leader tells.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use kapell_api::v1::KnownRun;
use kapell_core::run::RunId;
use kapell_node::scheduler::janitor::KnownRuns;

use super::Face;
use super::desk::{Desk, look};
use super::v1::{Peer, Upstream};

/// So much an answer may be long.
const MOST_BYTES: usize = 1 << 20;

pub(super) struct Known {
    pub(super) face: Arc<dyn Face>,
    pub(super) upstream: Upstream,
}

impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Known")
    }
}

/// Those of these that a board has.
pub(super) fn of_board(desk: &dyn Desk, run_ids: &[RunId]) -> Vec<KnownRun> {
    let known = |run_id: &RunId| {
        let active = look(desk, run_id.job(), |records| {
            records.runs.get(run_id).map(|run| !run.state.is_final())
        });
        Some(KnownRun { run_id: run_id.clone(), active: active.flatten()? })
    };
    run_ids.iter().filter_map(known).collect()
}

#[async_trait]
impl KnownRuns for Known {
    async fn known(&self, of: &[RunId]) -> Result<BTreeMap<RunId, bool>, String> {
        let leader = self.face.leader().ok_or("nobody leads right now")?;
        let found = if leader.here {
            let desk = self.face.board().ok_or("the board is not loaded yet")?;
            let found = of_board(&*desk, of);
            // What a leader that was deposed meanwhile does not know counts for nothing.
            if !self.face.leader().is_some_and(|leader| leader.here) {
                return Err("this host leads no more".to_owned());
            }
            found
        } else {
            let ids: Vec<&str> = of.iter().map(RunId::as_str).collect();
            let path = format!("/v1/hosts/known-runs?run_ids={}", ids.join(","));
            let peer = Peer::Host(&leader.record.address);
            let answer = self.upstream.fetch(peer, &path, MOST_BYTES).await;
            let answer = answer.map_err(|problem| problem.text())?;
            serde_json::from_slice::<Vec<KnownRun>>(&answer).map_err(|error| error.to_string())?
        };
        Ok(found.into_iter().map(|it| (it.run_id, it.active)).collect())
    }
}
