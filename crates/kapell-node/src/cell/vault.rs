//! What the secrets are that containers of this cell refer to, in memory only.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use kapell_api::v1::Problem;
use kapell_core::board::secrets::{Holder, of_action};
use kapell_core::board::{Action, CellId, Run, SecretName};
use kapell_core::secret::Secret;

use super::LogOf as Key;
use super::settings::CellSettings;
use super::tag::Tag;
use crate::link::{BoardLink, LinkError, NOT_PLACED, SECRET_NOT_SET, SECRET_SEALED};

/// Secrets by name.
pub(super) type Values = BTreeMap<SecretName, Secret>;

/// For what a program is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum For {
    /// It gets what holds now.
    Work,
    /// A check goes on with what is known: it must not fail because a host is away.
    Check,
}

/// See the module.
pub(super) struct Vault {
    cell_id: CellId,
    board: Arc<dyn BoardLink>,
    /// What containers got last, for as long as they are there.
    known: Mutex<Vec<(Weak<Tag>, Arc<Values>)>>,
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vault").finish_non_exhaustive()
    }
}

impl Vault {
    pub(super) fn new(cell_id: CellId, board: Arc<dyn BoardLink>) -> Self {
        Self { cell_id, board, known: Mutex::default() }
    }

    fn known(&self) -> MutexGuard<'_, Vec<(Weak<Tag>, Arc<Values>)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known_of(&self, tag: &Arc<Tag>) -> Option<Arc<Values>> {
        let container = Arc::downgrade(tag);
        let known = self.known();
        known.iter().find(|(of, _)| of.ptr_eq(&container)).map(|(_, values)| Arc::clone(values))
    }

    /// What a program of a container needs. While no host answers it is asked again and again; the text of an error is
    /// why the program cannot be started.
    pub(super) async fn values(
        &self,
        tag: &Arc<Tag>,
        run: &Run,
        purpose: For,
        settings: &CellSettings,
    ) -> Result<Arc<Values>, String> {
        if tag.env.iter().chain(&run.env).all(|variable| variable.secret.is_none()) {
            return Ok(Arc::default());
        }
        match (purpose, self.known_of(tag)) {
            (For::Check, Some(values)) => Ok(values),
            (For::Check, None) | (For::Work, _) => self.ask(tag, settings).await,
        }
    }

    /// Sees to it that a check of a container finds what it needs, however long hosts are away: that is no time of the
    /// check's. After a restart of the agent nothing is known.
    pub(super) async fn learn(&self, tag: &Arc<Tag>, check: &Action, settings: &CellSettings) {
        let refers = tag.env.iter().any(|variable| variable.secret.is_some())
            || !of_action(check).is_empty();
        if refers && self.known_of(tag).is_none() {
            // What is refused is told by the check itself.
            drop(self.ask(tag, settings).await);
        }
    }

    async fn ask(&self, tag: &Arc<Tag>, settings: &CellSettings) -> Result<Arc<Values>, String> {
        let mut wait = settings.first_retry;
        let given = loop {
            match self.board.secrets(&self.cell_id, &holder(tag)).await {
                Ok(given) => break given,
                Err(LinkError::Refused(problem)) if is_final(&problem) => {
                    return Err(problem.message);
                }
                Err(error) => {
                    let container = &tag.instance_guid;
                    tracing::warn!(%container, %error, "no host gives the secrets of a container, will ask again");
                }
            }
            tokio::time::sleep(wait).await;
            wait = wait.saturating_mul(2).min(settings.present_every);
        };
        let values = given.into_iter().map(|it| (it.name, it.value)).collect::<Values>();
        let (values, container) = (Arc::new(values), Arc::downgrade(tag));
        let mut known = self.known();
        known.retain(|(of, _)| of.strong_count() > 0 && !of.ptr_eq(&container));
        known.push((container, Arc::clone(&values)));
        Ok(values)
    }
}

/// Whether asking again would be of no use.
fn is_final(problem: &Problem) -> bool {
    [SECRET_NOT_SET, SECRET_SEALED, NOT_PLACED, "not_found", "forbidden", "invalid"]
        .contains(&problem.code.as_str())
}

fn holder(tag: &Tag) -> Holder {
    let instance_guid = tag.instance_guid.clone();
    match &tag.key {
        Key::Lrp(key) => Holder::Lrp { key: key.clone(), instance_guid },
        Key::Task(guid) => Holder::Task { task_guid: guid.clone(), instance_guid },
    }
}
