//! One process of a container, with its shim.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use nix::sys::signal::Signal;
use tokio::sync::OnceCell;
use tokio::time::{sleep, timeout};

use super::groups::Groups;
use super::pidfd::Pidfd;
use super::run_home::RunHome;
use super::sweep::{Left, Sweeper};
use super::{blocking, exit_file};
use crate::containers::{Error, Exit};

/// How often a shim is looked for that an earlier agent has just started.
const LOOK: Duration = Duration::from_millis(5);
/// How long a shim may take to end all of its container before it is ended itself.
const PATIENCE: Duration = Duration::from_secs(15);

#[derive(Debug)]
pub(crate) struct Program {
    /// Of its container.
    guid: String,
    pub(crate) name: String,
    pub(crate) home: RunHome,
    shim: OnceLock<Pidfd>,
    exit: OnceCell<Exit>,
    broom: Broom,
}

/// What ends what is left behind a shim that was killed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Broom {
    pub(crate) sweeper: Arc<Sweeper>,
    pub(crate) groups: Arc<Groups>,
}

impl Program {
    pub(crate) fn new(guid: &str, name: &str, home: RunHome, broom: Broom) -> Self {
        let (shim, exit) = (OnceLock::new(), OnceCell::new());
        Self { guid: guid.to_owned(), name: name.to_owned(), home, shim, exit, broom }
    }

    pub(crate) fn with_shim(self, shim: Option<Pidfd>) -> Self {
        Self { shim: shim.map_or_else(OnceLock::new, OnceLock::from), ..self }
    }

    pub(crate) fn with_exit(self, exit: Exit) -> Self {
        Self { exit: OnceCell::new_with(Some(exit)), ..self }
    }

    /// None while it runs, as far as is known.
    pub(crate) fn exit(&self) -> Option<Exit> {
        self.exit.get().cloned()
    }

    pub(crate) async fn ended(&self) -> Result<Exit, Error> {
        // One waits for the shim, all others for that one.
        self.exit.get_or_try_init(|| self.wait()).await.cloned()
    }

    pub(crate) async fn signal(&self, signal: Signal) -> Result<(), Error> {
        if self.exit.initialized() {
            return Ok(());
        }
        let Some(shim) = self.shim().await? else { return Ok(()) };
        let failed = |source| Error::Io {
            what: format!(
                "cannot send {signal} to the shim of process `{}` of container `{}`",
                self.name, self.guid
            ),
            source,
        };
        shim.signal(signal).map_err(failed)?;
        // One that somebody has stopped could not heed it.
        shim.signal(Signal::SIGCONT).map_err(failed)
    }

    /// Ends all of it, now.
    pub(crate) async fn kill(&self) -> Result<(), Error> {
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
                what: format!(
                    "cannot wait for the shim of process `{}` of container `{}`",
                    self.name, self.guid
                ),
                source,
            };
            shim.ended().await.map_err(failed)?;
        }
        let (guid, name) = (self.guid.clone(), self.name.clone());
        let (home, broom) = (self.home.clone(), self.broom.clone());
        blocking(move || settle(&guid, &name, &home, &broom)).await
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
pub(crate) enum Search {
    Found(Pidfd),
    Gone,
    NotYet,
}

/// The lock tells whether it lives; its number only counts if it lived after we looked.
pub(crate) fn find_shim(home: &RunHome) -> Result<Search, Error> {
    let found = home.shim()?.and_then(|pid| Pidfd::open(pid).ok());
    if !home.is_locked()? {
        if let Some(shim) = found {
            shim.bury();
        }
        return Ok(Search::Gone);
    }
    Ok(found.map_or(Search::NotYet, Search::Found))
}

/// How a process ended whose shim is gone. If that was killed, what is left is ended here.
fn settle(guid: &str, name: &str, home: &RunHome, broom: &Broom) -> Result<Exit, Error> {
    let header = home.header()?;
    if let Some(header) = &header
        && let Some(exit) = home.exit(header)?
    {
        return Ok(exit);
    }
    if header.is_some_and(|header| header.whole) {
        broom.groups.kill(guid)?;
    }
    broom.sweeper.sweep([Left::of(guid, name, home)?]);
    Ok(exit_file::write_killed(home.dir()))
}
