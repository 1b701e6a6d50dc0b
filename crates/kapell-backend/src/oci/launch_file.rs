//! What the launcher of a shim reads. `kapell-shim/src/launch.rs` has the other side.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use super::slot::{IDS, Ids, Realm, Slot};
use crate::containers::Error;
use crate::process::texts::Texts;

const MAGIC: &str = "kapell-launch-1";

#[derive(Debug)]
pub(super) struct LaunchFile<'a> {
    pub(super) dir: &'a Path,
    pub(super) ids: Ids,
    pub(super) layers: &'a [PathBuf],
    /// None for the network of the machine.
    pub(super) wire: Option<(Realm, Slot)>,
    /// `runc` and what it is told.
    pub(super) command: &'a [String],
    pub(super) path: &'a str,
}

impl LaunchFile<'_> {
    pub(super) fn encode(&self) -> Result<Vec<u8>, Error> {
        let address = |address: Ipv4Addr| Some(u64::from(u32::from(address)));
        let mut texts = Texts::default();
        texts.push("", MAGIC)?;
        texts.push("the directory", self.dir)?;
        texts.number(Some(self.ids.base.into()));
        texts.number(Some(IDS.into()));
        texts.list("a layer", self.layers.iter())?;
        match self.wire {
            None => texts.push("", "host")?,
            Some((realm, slot)) => {
                texts.push("", "own")?;
                texts.push("", slot.wire(realm))?;
                texts.number(address(slot.address(realm)));
                texts.number(address(realm.gateway()));
            }
        }
        texts.list("the command", self.command.iter())?;
        texts.list("the command", [format!("PATH={}", self.path)].iter())?;
        texts.push("", "end")?;
        Ok(texts.0)
    }
}
