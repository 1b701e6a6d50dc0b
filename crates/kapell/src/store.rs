//! `kapell store`: back up, restore and copy; and how commands open a store.

use std::fs::OpenOptions;
use std::future::Future;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use kapell_core::seams::Ids as _;
use kapell_node::system::{SystemClock, SystemIds};
use kapell_node::transfer::{self, Leave, Moved, Seams};
use kapell_store::file::Holder;
use kapell_store::{Error, How, Location, Store};

use crate::cli::StoreCommand;
use crate::say;

/// No store is waited for longer than this.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(5);

/// What to do about a damaged store.
pub(crate) const RESTORE: &str = "; nothing was changed: move the directory away, and put a backup \
     in its place by `kapell store restore BACKUP STORE`";

/// Who we are to those who find a store held by us.
pub(crate) fn holder(command: &str) -> Holder {
    Holder {
        pid: std::process::id(),
        address: None,
        command: command.to_owned(),
        since_ms: jiff::Timestamp::now().as_millisecond(),
    }
}

pub(crate) async fn open(
    location: &Location,
    command: &str,
    create: bool,
) -> anyhow::Result<Arc<dyn Store>> {
    let how = How { create, timeout: TIMEOUT, clock: Arc::new(SystemClock) };
    match location.open(&holder(command), &how).await {
        Err(error @ Error::Damaged { .. }) => bail!("{error}{RESTORE}"),
        opened => Ok(opened?),
    }
}

/// Runs a command that talks to a store.
pub(crate) fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("cannot start")?.block_on(work)
}

pub(crate) fn run(command: StoreCommand) -> anyhow::Result<u8> {
    let seams = Seams { clock: Arc::new(SystemClock), ids: Arc::new(SystemIds) };
    let (moved, verb) = match command {
        StoreCommand::Backup { from, to } => {
            let from: Location = from.parse()?;
            (block_on(backup(&from, &to))?, "backed up")
        }
        StoreCommand::Restore { from, to, replace } => {
            let to: Location = to.parse()?;
            is_lasting(&to)?;
            let moved = block_on(async {
                // A file that is no backup is refused before a store is made for it.
                transfer::check(&from)?;
                let leave = leave(&to, replace);
                let to = open(&to, "kapell store restore", true).await?;
                Ok(transfer::restore(&from, &to, leave, &seams).await?)
            });
            (moved?, "restored")
        }
        StoreCommand::Copy { from, to, replace } => {
            let (from, to): (Location, Location) = (from.parse()?, to.parse()?);
            let moved = block_on(async {
                let leave = leave(&to, replace);
                let from = open(&from, "kapell store copy", false).await?;
                is_lasting(&to)?;
                let to = open(&to, "kapell store copy", true).await?;
                Ok(transfer::copy(&*from, &to, leave, &seams).await?)
            });
            (moved?, "copied")
        }
    };
    let Moved { records, seats } = moved;
    say(&format!("{verb} {records} records of {seats} seats\n"));
    Ok(0)
}

/// A target that is there when the command has ended.
fn is_lasting(to: &Location) -> anyhow::Result<()> {
    if *to == Location::Mem {
        bail!("`mem:` ends with this command, and what was put there with it");
    }
    Ok(())
}

fn leave(to: &Location, replace: bool) -> Leave {
    Leave { replace, alone: matches!(to, Location::File(_)) }
}

async fn backup(from: &Location, to: &Path) -> anyhow::Result<Moved> {
    if to.exists() {
        bail!("`{}` is there already: name another file", to.display());
    }
    let store = open(from, "kapell store backup", false).await?;
    let mut unfinished = to.as_os_str().to_owned();
    unfinished.push(format!(".{:016x}.unfinished", SystemIds.draw()));
    let unfinished = Path::new(&unfinished);
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(unfinished);
    let file = file.with_context(|| format!("cannot write `{}`", unfinished.display()))?;
    let moved = transfer::backup(&*store, file).await;
    let named = moved.map_err(anyhow::Error::from).and_then(|moved| {
        // Not a rename: what someone has put there meanwhile stays.
        std::fs::hard_link(unfinished, to)
            .with_context(|| format!("cannot write `{}`", to.display()))?;
        Ok(moved)
    });
    let _left = std::fs::remove_file(unfinished);
    named
}
