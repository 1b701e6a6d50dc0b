//! Which host this is, over its restarts and those of its machine.

use std::fs;
use std::path::Path;

use arcstr::ArcStr;
use kapell_core::seams::Ids;

/// A host by the id in its data directory, and its machine by when that was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Host {
    id: String,
    /// Its id and the start of its machine, as it stands in the records of runs: in very many of them at once.
    place: ArcStr,
}

/// How the place of a launch is to this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Where {
    Here,
    /// Here, before the machine was started anew: what was not on disk then is lost.
    BeforeBoot,
    /// Why nothing is known of it.
    Elsewhere(String),
}

impl Host {
    /// Reads the id, or draws one.
    pub(super) fn of(dir: &Path, ids: &dyn Ids) -> Result<Self, String> {
        let path = dir.join("host-id");
        let failed = |verb: &str, error| format!("cannot {verb} `{}`: {error}", path.display());
        let known =
            fs::read_to_string(&path).map(|text| text.trim().to_owned()).unwrap_or_default();
        let is_whole = known.len() == 32 && known.bytes().all(|byte| byte.is_ascii_hexdigit());
        let id = if is_whole {
            known
        } else {
            let id = format!("{:016x}{:016x}", ids.draw(), ids.draw());
            let draft = dir.join("host-id.draft");
            fs::write(&draft, format!("{id}\n")).map_err(|error| failed("write", error))?;
            fs::rename(&draft, &path).map_err(|error| failed("write", error))?;
            id
        };
        let boot = Path::new("/proc/sys/kernel/random/boot_id");
        let boot = fs::read_to_string(boot)
            .map_err(|error| format!("cannot read `{}`: {error}", boot.display()))?;
        let place = arcstr::format!("{id}@{}", boot.trim());
        Ok(Self { id, place })
    }

    pub(super) fn place(&self) -> ArcStr {
        self.place.clone()
    }

    pub(super) fn locate(&self, place: &str) -> Where {
        if place == self.place {
            return Where::Here;
        }
        let Some((id, _)) = place.split_once('@') else {
            return Where::Elsewhere("nobody noted where it was launched".to_owned());
        };
        if id != self.id {
            return Where::Elsewhere(format!(
                "it was launched on host {id}, whose files are not here"
            ));
        }
        Where::BeforeBoot
    }
}
