//! What a constraint has to work with, and hands on to its actions.

use std::sync::Arc;

use kapell_core::constraint::{About, Seen, Step};
use kapell_core::seams::{Clock, Timestamp};
use ring::digest::{SHA256, digest};
use serde_json::Value as Json;

use super::cells::Cells;
use super::inbox::Inbox;
use crate::webhook::Handler;

/// Whom constraints and actions can turn to.
#[derive(Debug, Clone)]
pub struct Means {
    pub inbox: Inbox,
    pub webhooks: Handler,
    pub cells: Arc<dyn Cells>,
    pub clock: Arc<dyn Clock>,
}

/// One run, and whom its constraints and actions can turn to.
#[derive(Debug, Clone)]
pub struct Context {
    pub means: Means,
    pub run: Arc<About>,
    /// What was found out about the constraint whose action it is.
    pub seen: Option<Seen>,
    /// The place of the constraint, and that of the action in its list.
    pub step: Option<Step>,
}

impl Context {
    pub const fn new(means: Means, run: Arc<About>) -> Self {
        Self { means, run, seen: None, step: None }
    }

    /// The same for an action.
    #[must_use]
    pub fn for_action(&self, seen: Seen, step: Step) -> Self {
        Self { seen: Some(seen), step: Some(step), ..self.clone() }
    }

    /// The same for a check.
    #[must_use]
    pub fn for_check(&self, constraint: usize) -> Self {
        Self { step: Some(Step { constraint, action: usize::MAX }), ..self.clone() }
    }

    pub fn now(&self) -> Timestamp {
        self.means.clock.wall()
    }

    /// What templates are filled in with.
    pub fn scope(&self) -> Json {
        self.run.scope(self.seen.as_ref(), self.now())
    }

    /// Names what is done here for this attempt of this run: the same whenever it is done again, after a crash too.
    pub(super) fn mark(&self) -> u128 {
        let About { run_id, attempt, .. } = &*self.run;
        let step = self.step.map(|step| (step.constraint, step.action));
        let met = self.seen.as_ref().and_then(|seen| seen.met);
        let text = format!("{run_id} {attempt} {} {step:?} {met:?}", self.run.phase().name());
        let hash = digest(&SHA256, text.as_bytes());
        hash.as_ref()[..16].iter().fold(0, |mark, byte| mark << 8 | u128::from(*byte))
    }
}
