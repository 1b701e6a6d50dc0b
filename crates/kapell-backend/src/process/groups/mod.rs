//! Control groups: what a container may use at most, and who belongs to it.
//!
//! The group of a container is `kapell/<agent>/<guid>` in each hierarchy that it needs: the first one always,
//! because whoever is in a group is found there, others if there is a limit to set.

mod hierarchy;
#[cfg(test)]
mod tests;

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use nix::unistd::geteuid;

use self::hierarchy::Hierarchy;
pub(crate) use self::hierarchy::mounted;
use super::trouble;
use crate::containers::{Enforced, Error, Limits};

/// The groups of an agent. Without any, containers have no limits.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    hierarchies: Vec<Hierarchy>,
    /// Tells its agent from others.
    name: String,
}

/// What a shim is told of the groups of its container.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Membership {
    /// The one that all of it is in.
    pub(crate) dir: Option<PathBuf>,
    /// Counts whom the kernel has ended for want of memory.
    pub(crate) oom: Option<PathBuf>,
    /// Who writes a zero to these is in.
    pub(crate) joins: Vec<PathBuf>,
}

impl Groups {
    /// Those for the agent with this directory, as far as this machine allows.
    pub(crate) fn open(agent: &Path) -> Self {
        if !geteuid().is_root() {
            return Self::default();
        }
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        Self::find(&mounts, &name(agent))
    }

    fn find(mounts: &str, name: &str) -> Self {
        let mut hierarchies: Vec<_> =
            mounts.lines().filter_map(|mount| Hierarchy::open(mount, name)).collect();
        // Where processes can be counted, they can be kept from being born.
        hierarchies.sort_by_key(|each| !each.controls.pids);
        Self { hierarchies, name: name.to_owned() }
    }

    /// Where the group of a container is, seen from the root of each hierarchy.
    pub(crate) fn path(&self, guid: &str) -> String {
        format!("/kapell/{}/{guid}", self.name)
    }

    pub(crate) fn enforced(&self) -> Enforced {
        let any = |is_so: fn(&Enforced) -> bool| {
            self.hierarchies.iter().any(|each| is_so(&each.controls))
        };
        Enforced {
            memory: any(|all| all.memory),
            cpu: any(|all| all.cpu),
            pids: any(|all| all.pids),
        }
    }

    /// Makes the groups of a container, or sets them up anew. Whatever fails leaves nothing behind.
    pub(crate) fn make(&self, guid: &str, limits: &Limits) -> Result<(), Error> {
        for hierarchy in self.needed(limits) {
            if let Err(error) = hierarchy.make(guid, limits) {
                let _cleared_next_time = self.remove(guid);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Makes a group for one process of a container, in that of the container: where all of it is.
    pub(crate) fn make_below(&self, guid: &str, process: &str) -> Result<Option<PathBuf>, Error> {
        let Some(first) = self.hierarchies.first() else { return Ok(None) };
        let dir = first.dir.join(guid).join(process);
        // One that an agent left that was killed: nothing is born in it any more.
        let _absent = fs::remove_dir(&dir);
        match fs::create_dir(&dir) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                Err(trouble::io("make the control group", &dir)(error))
            }
            Ok(()) | Err(_) => Ok(Some(dir)),
        }
    }

    /// What its processes are told of them.
    pub(crate) fn membership(&self, guid: &str, limits: &Limits) -> Membership {
        let oom = |each: &Hierarchy| each.oom_file(guid).filter(|_| limits.memory_mb.is_some());
        Membership {
            dir: self.hierarchies.first().map(|first| first.dir.join(guid)),
            oom: self.hierarchies.iter().find_map(oom),
            joins: self.needed(limits).map(|each| each.join_file(guid)).collect(),
        }
    }

    fn needed(&self, limits: &Limits) -> impl Iterator<Item = &Hierarchy> {
        let all = self.hierarchies.iter().enumerate();
        all.filter(|(at, each)| *at == 0 || each.limits_any(limits)).map(|(_, each)| each)
    }

    /// Kills all that is in the groups of a container. Blocks.
    pub(crate) fn kill(&self, guid: &str) -> Result<(), Error> {
        self.hierarchies.iter().try_for_each(|each| each.kill(guid))
    }

    /// Removes the groups of a container, and kills whatever is in them. Blocks.
    pub(crate) fn remove(&self, guid: &str) -> Result<(), Error> {
        self.hierarchies.iter().try_for_each(|each| each.remove(guid))
    }

    /// Removes the groups of containers that are not known. Blocks.
    pub(crate) fn remove_strays(&self, is_known: impl Fn(&str) -> bool) {
        for hierarchy in &self.hierarchies {
            for guid in hierarchy.guids().into_iter().filter(|guid| !is_known(guid)) {
                // What cannot be removed now is tried again by the next agent.
                let _left = hierarchy.remove(&guid);
            }
        }
    }
}

/// An agent's own, on this machine.
fn name(agent: &Path) -> String {
    let (dev, ino) = fs::metadata(agent).map_or((0, 0), |about| (about.dev(), about.ino()));
    let numbers = [dev.to_ne_bytes(), ino.to_ne_bytes()].concat();
    let bytes = agent.as_os_str().as_bytes().iter().chain(&numbers);
    // FNV-1a.
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}
