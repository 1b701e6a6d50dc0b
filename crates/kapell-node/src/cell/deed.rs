//! Does one thing of a recipe, from its beginning to its end.

use std::convert::Infallible;
use std::future::pending;
use std::pin::pin;
use std::sync::Arc;

use kapell_backend::containers::{Error, Exit, Output, Process};
use kapell_core::board::{Download, Run, Upload};
use kapell_core::causes::chain;
use kapell_core::recipe::{Deed, Leaf, Outcome};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

use super::launch;
use super::movement;
use super::notes::Note;
use super::outcome;
use super::tag::Tag;
use super::tools::Tools;
use super::vault::{For, Values};

/// What is to be done.
#[derive(Debug, Clone)]
pub(super) enum Job {
    Run(Run),
    /// A program that runs already.
    Watch,
    Download(Download),
    Upload(Upload),
}

impl Job {
    pub(super) fn of(deed: Deed<'_>) -> Self {
        match deed {
            Deed::Run(run) => Self::Run(run.clone()),
            Deed::Download(download) => Self::Download(download.clone()),
            Deed::Upload(upload) => Self::Upload(upload.clone()),
        }
    }
}

/// How it ended; for a program that ended, also as its driver tells it.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) outcome: Outcome,
    pub(super) exit: Option<Exit>,
}

impl Ended {
    pub(super) fn exited(exit: Exit) -> Self {
        Self { outcome: outcome::of_exit(&exit), exit: Some(exit) }
    }

    pub(super) fn failed(reason: impl Into<String>) -> Self {
        Self { outcome: outcome::failed(reason), exit: None }
    }
}

/// One thing of a recipe.
#[derive(Debug)]
pub(super) struct Doing {
    pub(super) tools: Arc<Tools>,
    pub(super) tag: Arc<Tag>,
    pub(super) leaf: Leaf,
    /// Names it among all that its container ever did.
    pub(super) name: String,
    pub(super) output: Output,
    /// Whether it is noted before a program is started.
    pub(super) noted: bool,
    pub(super) stop: CancellationToken,
    /// Told when it has begun.
    pub(super) begun: mpsc::UnboundedSender<Leaf>,
}

const CALLED_OFF: &str = "it was stopped before it began";

impl Doing {
    pub(super) async fn until_its_end(self, job: Job) -> (Leaf, Ended) {
        let ended = match job {
            Job::Run(run) => match self.start(&run).await {
                Ok(()) => self.watch().await,
                Err(reason) => Ended::failed(reason),
            },
            Job::Watch => self.watch().await,
            Job::Download(download) => {
                let work = movement::download(&self.tools, &self.tag, &self.name, &download);
                self.transfer("the download", work).await
            }
            Job::Upload(upload) => {
                self.transfer("the upload", movement::upload(&self.tools, &self.tag, &upload)).await
            }
        };
        (self.leaf, ended)
    }

    fn has_begun(&self) {
        // Nobody waits any more when the container is given up.
        let _told = self.begun.send(self.leaf);
    }

    /// Starts a program, when it is its turn.
    async fn start(&self, run: &Run) -> Result<(), String> {
        // Before it takes a turn: no other program waits for a host that is away.
        let values = tokio::select! {
            biased;
            () = self.stop.cancelled() => return Err(CALLED_OFF.to_owned()),
            values = self.secrets(run) => values?,
        };
        let turn = tokio::select! {
            biased;
            () = self.stop.cancelled() => return Err(CALLED_OFF.to_owned()),
            turn = self.tools.pools.runs.acquire() => turn,
        };
        let process = self.process(run, values).await?;
        let guid = &self.tag.instance_guid;
        if self.noted {
            let noted = self.tools.notes.add(guid, &Note::Begins(self.leaf));
            noted.map_err(|error| format!("cannot note that a program begins: {error}"))?;
        }
        let started = self.tools.containers.run(guid.as_str(), process).await;
        drop(turn);
        started.map_err(|error| unstarted(&self.tag, &error))?;
        self.has_begun();
        Ok(())
    }

    async fn secrets(&self, run: &Run) -> Result<Arc<Values>, String> {
        let purpose = match self.output {
            Output::Kept => For::Work,
            Output::Dropped => For::Check,
        };
        self.tools.vault.values(&self.tag, run, purpose, &self.tools.settings).await
    }

    async fn process(&self, run: &Run, values: Arc<Values>) -> Result<Process, String> {
        let containers = &self.tools.containers;
        let inside = launch::Inside {
            dir: containers.dir(self.tag.instance_guid.as_str()),
            own_network: containers.has_own_network(self.tag.rootfs.as_deref()),
        };
        let (tools, tag, name, output) =
            (Arc::clone(&self.tools), Arc::clone(&self.tag), self.name.clone(), self.output);
        let asked = run.clone();
        let make = move || {
            let of = (&*tag, &tools.cell_id);
            launch::process(of, (&name, output), &asked, &inside, (&tools.settings, &values))
        };
        if !launch::has_other_user(&self.tag, run) {
            return make();
        }
        // Looking up a user may take long.
        spawn_blocking(make).await.unwrap_or_else(|error| Err(error.to_string()))
    }

    /// Waits for the end of a program, and stops it when it is to stop.
    async fn watch(&self) -> Ended {
        let guid = self.tag.instance_guid.as_str();
        let mut ended = pin!(self.tools.containers.ended(guid, &self.name));
        let mut stopping = pin!(self.stop_when_told());
        tokio::select! {
            biased;
            exit = &mut ended => match exit {
                Ok(exit) => Ended::exited(exit),
                Err(error) => Ended::failed(chain(&error)),
            },
            never = &mut stopping => match never {},
        }
    }

    async fn stop_when_told(&self) -> Infallible {
        self.stop.cancelled().await;
        let guid = self.tag.instance_guid.as_str();
        let mut wait = self.tools.settings.first_retry;
        loop {
            match self.tools.containers.stop(guid, &self.name).await {
                Ok(()) | Err(Error::Unknown(_)) => return pending().await,
                Err(error) => {
                    tracing::warn!(container = guid, %error, "cannot stop a program, will try again");
                }
            }
            tokio::time::sleep(wait).await;
            wait = wait.saturating_mul(2).min(self.tools.settings.poll_every);
        }
    }

    /// Moves a file, when it is its turn.
    async fn transfer(&self, what: &str, work: impl Future<Output = Result<(), String>>) -> Ended {
        self.has_begun();
        let limit = self.tools.settings.transfer_limit;
        let in_turn = async {
            // The semaphore is never closed.
            let _turn = self.tools.pools.transfers.acquire().await;
            tokio::time::timeout(limit, work).await
        };
        let moved = tokio::select! {
            biased;
            () = self.stop.cancelled() => Err(format!("{what} was stopped")),
            moved = in_turn => moved.unwrap_or_else(|_| Err(format!("{what} took longer than {limit:?}"))),
        };
        match moved {
            Ok(()) => Ended { outcome: Outcome::default(), exit: None },
            Err(reason) => Ended::failed(reason),
        }
    }
}

/// Why something was not started. What is wrong with the machine concerns those who run it, too.
pub(super) fn unstarted(tag: &Tag, error: &Error) -> String {
    let reason = chain(error);
    if matches!(error, Error::Io { .. }) {
        let container = &tag.instance_guid;
        tracing::warn!(%container, key = ?tag.key, reason, "this machine could not start a container");
    }
    outcome::cut(reason)
}
