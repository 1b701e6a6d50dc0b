//! One container that this agent knows.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use nix::sys::signal::Signal;
use tokio::sync::OnceCell;
use tokio::time::{sleep, timeout};

use super::home::Home;
use super::pidfd::Pidfd;
use super::sweep::{Left, Sweeper};
use super::{blocking, exit_file};
use crate::containers::{Error, Exit};

/// How often a shim is looked for that an earlier agent has just started.
const LOOK: Duration = Duration::from_millis(5);
/// How long a shim may take to end all of its container before it is ended itself.
const PATIENCE: Duration = Duration::from_secs(15);

#[derive(Debug)]
pub(super) struct Container {
    pub(super) guid: String,
    pub(super) home: Home,
    shim: OnceLock<Pidfd>,
    exit: OnceCell<Exit>,
    sweeper: Arc<Sweeper>,
}

impl Container {
    pub(super) fn new(guid: String, home: Home, sweeper: Arc<Sweeper>) -> Self {
        Self { guid, home, shim: OnceLock::new(), exit: OnceCell::new(), sweeper }
    }

    pub(super) fn with_shim(self, shim: Option<Pidfd>) -> Self {
        Self { shim: shim.map_or_else(OnceLock::new, OnceLock::from), ..self }
    }

    pub(super) fn with_exit(self, exit: Exit) -> Self {
        Self { exit: OnceCell::new_with(Some(exit)), ..self }
    }

    pub(super) async fn ended(&self) -> Result<Exit, Error> {
        // One waits for the shim, all others for that one.
        self.exit.get_or_try_init(|| self.wait()).await.cloned()
    }

    pub(super) async fn signal(&self, signal: Signal) -> Result<(), Error> {
        if self.exit.initialized() {
            return Ok(());
        }
        let Some(shim) = self.shim().await? else { return Ok(()) };
        let failed = |source| Error::Io {
            what: format!("cannot send {signal} to the shim of container `{}`", self.guid),
            source,
        };
        shim.signal(signal).map_err(failed)?;
        // One that somebody has stopped could not heed it.
        shim.signal(Signal::SIGCONT).map_err(failed)
    }

    /// Ends all of it, now.
    pub(super) async fn kill(&self) -> Result<(), Error> {
        self.signal(Signal::SIGUSR1).await?;
        if timeout(PATIENCE, self.ended()).await.is_err() {
            self.signal(Signal::SIGKILL).await?;
            self.ended().await?;
        }
        Ok(())
    }

    async fn wait(&self) -> Result<Exit, Error> {
        if let Some(shim) = self.shim().await? {
            let failed = |source| Error::Io {
                what: format!("cannot wait for the shim of container `{}`", self.guid),
                source,
            };
            shim.ended().await.map_err(failed)?;
        }
        let (guid, home) = (self.guid.clone(), self.home.clone());
        let sweeper = Arc::clone(&self.sweeper);
        blocking(move || settle(&guid, &home, &sweeper)).await
    }

    /// None if there is none any more. A shim that an earlier agent has only just started has not
    /// said its number yet: that is waited for.
    async fn shim(&self) -> Result<Option<&Pidfd>, Error> {
        loop {
            if let Some(shim) = self.shim.get() {
                return Ok(Some(shim));
            }
            let home = self.home.clone();
            match blocking(move || find_shim(&home)).await? {
                Search::Found(shim) => return Ok(Some(self.shim.get_or_init(|| shim))),
                Search::Gone => return Ok(None),
                Search::NotYet => sleep(LOOK).await,
            }
        }
    }
}

/// What became of a shim.
#[derive(Debug)]
pub(super) enum Search {
    Found(Pidfd),
    Gone,
    NotYet,
}

/// The lock tells whether it lives; its number only counts if it lived after we looked.
pub(super) fn find_shim(home: &Home) -> Result<Search, Error> {
    let found = home.shim()?.and_then(|pid| Pidfd::open(pid).ok());
    if !home.is_locked()? {
        if let Some(shim) = found {
            shim.bury();
        }
        return Ok(Search::Gone);
    }
    Ok(found.map_or(Search::NotYet, Search::Found))
}

/// How a container ended whose shim is gone. If that was killed, what is left is ended here.
fn settle(guid: &str, home: &Home, sweeper: &Sweeper) -> Result<Exit, Error> {
    if let Some(header) = home.header()?
        && let Some(exit) = home.exit(&header)?
    {
        return Ok(exit);
    }
    sweeper.sweep([Left::of(guid, home)?]);
    Ok(exit_file::write_killed(home.dir()))
}
