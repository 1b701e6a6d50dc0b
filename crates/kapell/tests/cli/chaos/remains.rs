//! What a fleet has on this machine besides what its processes are: nothing of it may be left.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::census::running;
use crate::platform::fleet::Fleet;

/// Where agents with containers of their own network agree on numbers.
const CLAIMS: &str = "/run/kapell/realms";
const REALMS: u8 = 16;

/// Others on this machine have theirs, so all is found by what only this fleet has.
pub(super) struct Remains {
    /// Of the cells.
    dirs: Vec<PathBuf>,
    /// Numbers that agents of the fleet have had.
    realms: BTreeSet<u8>,
    /// Control groups that agents of the fleet have had, in each hierarchy.
    groups: BTreeSet<String>,
}

impl Remains {
    pub(super) fn new(fleet: &Fleet) -> Self {
        let dirs = fleet.cells.iter().map(|cell| cell.bench.dir().to_owned()).collect();
        Self { dirs, realms: BTreeSet::new(), groups: BTreeSet::new() }
    }

    /// Takes down what the fleet has by now.
    pub(super) fn note(&mut self, fleet: &Fleet) {
        let ours: Vec<u8> = (0..REALMS).filter(|number| self.is_ours(*number)).collect();
        self.realms.extend(ours);
        for process in fleet.work() {
            let groups = fs::read_to_string(format!("/proc/{}/cgroup", process.pid));
            let groups = groups.unwrap_or_default();
            let below = |line: &str| {
                let (_, rest) = line.split_once(":/kapell/")?;
                Some(rest.split('/').next()?.to_owned())
            };
            self.groups.extend(groups.lines().filter_map(below));
        }
    }

    pub(super) fn has_seen(&self) -> (usize, usize) {
        (self.realms.len(), self.groups.len())
    }

    /// All that is left of it, each in words.
    pub(super) fn left(&self) -> Vec<String> {
        let mut left = self.of_networks();
        left.extend(self.mounts());
        left.extend(self.control_groups().iter().map(|dir| format!("group {}", dir.display())));
        left.extend(self.containers());
        for dir in &self.dirs {
            let name = dir.display().to_string();
            left.extend(running(|line| line.contains(&name)).iter().map(|it| format!("{it:?}")));
        }
        left
    }

    /// Their directories, in which `runc` has its state, too.
    pub(super) fn containers(&self) -> Vec<String> {
        let places = ["cell/containers", "cell/oci/containers"];
        let places = self.dirs.iter().flat_map(|dir| places.map(|place| dir.join(place)));
        let all: Vec<PathBuf> =
            places.flat_map(|place| entries(&place).collect::<Vec<_>>()).collect();
        all.iter().map(|dir| dir.display().to_string()).collect()
    }

    fn of_networks(&self) -> Vec<String> {
        let mut left = Vec::new();
        let tables = output("nft", &["list", "tables"]);
        let links: Vec<PathBuf> = entries(Path::new("/sys/class/net")).collect();
        for number in &self.realms {
            if self.is_ours(*number) {
                left.push(format!("claim {CLAIMS}/{number}"));
            } else if claim(*number).is_some() {
                // Another has the number by now, and whatever bears it.
                continue;
            }
            let table = format!("table inet kapell{number}");
            left.extend(tables.lines().filter(|line| *line == table).map(str::to_owned));
            let wires = format!("kap{number}-");
            let names = links.iter().filter_map(|link| link.file_name()?.to_str());
            let ours = names.filter(|name| name.starts_with(&wires));
            left.extend(ours.map(|name| format!("wire {name}")));
        }
        left
    }

    /// In whatever namespace: one that is held by nothing but a mount is among them.
    fn mounts(&self) -> Vec<String> {
        let mut left = Vec::new();
        let mut seen = BTreeSet::new();
        let is_ours =
            |line: &str| self.dirs.iter().any(|dir| line.contains(&*dir.display().to_string()));
        for process in entries(Path::new("/proc")) {
            let Ok(namespace) = fs::read_link(process.join("ns/mnt")) else { continue };
            if seen.insert(namespace) {
                let mounts = fs::read_to_string(process.join("mountinfo")).unwrap_or_default();
                let ours = mounts.lines().filter(|line| is_ours(line));
                left.extend(ours.map(|line| format!("{}: mount {line}", process.display())));
            }
        }
        left
    }

    fn control_groups(&self) -> Vec<PathBuf> {
        let roots = entries(Path::new("/sys/fs/cgroup")).chain(["/sys/fs/cgroup".into()]);
        let all =
            roots.flat_map(|root| self.groups.iter().map(move |it| root.join("kapell").join(it)));
        all.filter(|dir| dir.is_dir()).collect()
    }

    fn is_ours(&self, number: u8) -> bool {
        claim(number).is_some_and(|owner| self.dirs.iter().any(|dir| owner.starts_with(dir)))
    }

    /// After a failure: nobody else would.
    pub(super) fn clear(&self) {
        for group in self.control_groups() {
            for below in entries(&group).filter(|it| it.is_dir()) {
                let _best_effort = fs::remove_dir(below);
            }
            let _best_effort = fs::remove_dir(group);
        }
        for number in self.realms.iter().filter(|number| self.is_ours(**number)) {
            output("nft", &["delete", "table", "inet", &format!("kapell{number}")]);
            let _best_effort = fs::remove_file(Path::new(CLAIMS).join(number.to_string()));
        }
    }
}

fn claim(number: u8) -> Option<PathBuf> {
    fs::read_to_string(Path::new(CLAIMS).join(number.to_string())).ok().map(PathBuf::from)
}

fn entries(dir: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// Nothing if there is no such tool: then it has made nothing either.
fn output(tool: &str, arguments: &[&str]) -> String {
    let ran = Command::new(tool).args(arguments).output();
    ran.map_or(String::new(), |ran| String::from_utf8_lossy(&ran.stdout).into_owned())
}
