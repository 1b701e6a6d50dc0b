//! What a cluster has outside of its directory, and how that goes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::super::process;
use super::names::Names;
use crate::command;
use crate::error::{Result, failed};

/// How long processes may take to be gone, and groups to be empty.
const PATIENCE: Duration = Duration::from_secs(10);
/// Programs of a cluster, where they name its directory on their command line.
const PROGRAMS: [&str; 7] = [
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
    "containerd",
    "containerd-shim-runc-v2",
];

/// Something that is left.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Leftover {
    Process(u32),
    Mount(PathBuf),
    Table(String),
    Link(String),
    Group(PathBuf),
}

/// Takes back all that there is; an error names what does not go.
pub(super) fn clear(dir: &Path, names: &Names) -> Result<()> {
    let mut left = find(dir, names)?;
    // What is alive holds the rest.
    for is_next in [is_process as fn(&Leftover) -> bool, |_| true] {
        process::poll(PATIENCE, || {
            for each in left.iter().filter(|each| is_next(each)) {
                // What went wrong shows when it is still there.
                let _ = remove(each);
            }
            left = find(dir, names).unwrap_or_default();
            !left.iter().any(is_next)
        });
    }
    left = find(dir, names)?;
    if left.is_empty() {
        return Ok(());
    }
    let left: Vec<String> = left.iter().map(|each| format!("{each:?}")).collect();
    Err(failed(format!("still there of the cluster at {}: {}", dir.display(), left.join(", "))))
}

fn is_process(left: &Leftover) -> bool {
    matches!(left, Leftover::Process(_))
}

/// In the order in which it can go.
fn find(dir: &Path, names: &Names) -> Result<Vec<Leftover>> {
    let mounts = fs::read_to_string("/proc/mounts")?;
    let mut found: Vec<Leftover> =
        processes(dir, names)?.into_iter().map(Leftover::Process).collect();
    found.extend(mounts_below(&mounts, dir).into_iter().map(Leftover::Mount));
    found.extend(tables(names).map(Leftover::Table));
    found.extend(links(names)?.into_iter().map(Leftover::Link));
    for root in hierarchies(&mounts) {
        groups(&root.join(&names.group), &mut found);
    }
    Ok(found)
}

fn remove(left: &Leftover) -> Result<()> {
    match left {
        Leftover::Process(pid) => Ok(process::kill(*pid, libc::SIGKILL)?),
        Leftover::Mount(path) => quiet(Command::new("umount").arg("--lazy").arg(path)),
        Leftover::Table(name) => quiet(Command::new("nft").args(["delete", "table", "ip", name])),
        Leftover::Link(name) => quiet(Command::new("ip").args(["link", "delete", name])),
        Leftover::Group(path) => Ok(fs::remove_dir(path)?),
    }
}

fn quiet(command: &mut Command) -> Result<()> {
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command::succeeds(command).map(drop)
}

fn processes(dir: &Path, names: &Names) -> Result<Vec<u32>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let entry = entry?;
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // One that has ended meanwhile has nothing to read.
        let read = |name: &str| fs::read(entry.path().join(name)).unwrap_or_default();
        let line = read("cmdline");
        let is_alive = !line.is_empty();
        let (line, groups) = (String::from_utf8_lossy(&line), read("cgroup"));
        if is_alive && is_of_cluster(&line, &String::from_utf8_lossy(&groups), dir, names) {
            found.push(pid);
        }
    }
    Ok(found)
}

/// Whether a process is the cluster's, by its command line and its control groups.
///
/// Naming the directory is not enough: those who use the cluster do that too.
fn is_of_cluster(line: &str, groups: &str, dir: &Path, names: &Names) -> bool {
    let (dir, start) = (dir.to_string_lossy(), dir.join("start"));
    let mut words = line.split('\0');
    let program = Path::new(words.next().unwrap_or_default()).file_name().unwrap_or_default();
    let is_known = PROGRAMS.iter().any(|name| program == *name) && line.contains(&*dir);
    let is_script = words.any(|word| Path::new(word).starts_with(&start));
    let mut places = groups.lines().filter_map(|line| line.splitn(3, ':').nth(2));
    let group = Path::new("/").join(&names.group);
    is_known || is_script || places.any(|place| Path::new(place).starts_with(&group))
}

/// In the order in which they can be taken off.
fn mounts_below(mounts: &str, dir: &Path) -> Vec<PathBuf> {
    let places = mounts.lines().filter_map(|line| line.split(' ').nth(1)).map(PathBuf::from);
    let mut found: Vec<PathBuf> = places.filter(|place| place.starts_with(dir)).collect();
    found.reverse();
    found
}

/// Where control groups are: one place with version 2, a place a controller with version 1.
pub(super) fn hierarchies(mounts: &str) -> Vec<PathBuf> {
    let places = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        let place = words.next()?;
        matches!(words.next()?, "cgroup" | "cgroup2").then(|| PathBuf::from(place))
    });
    places.collect()
}

fn tables(names: &Names) -> Option<String> {
    let mut list = Command::new("nft");
    let list = list.args(["list", "tables"]).stderr(Stdio::null()).output().ok()?;
    let own = format!("table ip {}", names.table);
    let is_there = String::from_utf8_lossy(&list.stdout).lines().any(|line| line == own);
    is_there.then(|| names.table.clone())
}

/// The bridge, and before it what is plugged into it.
fn links(names: &Names) -> Result<Vec<String>> {
    let bridge = Path::new("/sys/class/net").join(&names.bridge);
    if !bridge.exists() {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(bridge.join("brif"))? {
        found.push(entry?.file_name().to_string_lossy().into_owned());
    }
    found.push(names.bridge.clone());
    Ok(found)
}

/// A group and all below it, those below first.
fn groups(group: &Path, found: &mut Vec<Leftover>) {
    let Ok(entries) = fs::read_dir(group) else { return };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            groups(&entry.path(), found);
        }
    }
    found.push(Leftover::Group(group.to_owned()));
}

/// An error if no group can be made here.
pub(super) fn require_groups() -> Result<()> {
    let probe = format!("kapell-kubernetes-probe-{}", std::process::id());
    for path in make_groups(&probe)? {
        fs::remove_dir(path)?;
    }
    Ok(())
}

/// Makes a group of that name wherever there are groups.
pub(super) fn make_groups(name: &str) -> Result<Vec<PathBuf>> {
    let roots = hierarchies(&fs::read_to_string("/proc/mounts")?);
    if roots.is_empty() {
        return Err(failed("no control groups are mounted here"));
    }
    let make = |root: PathBuf| {
        let path = root.join(name);
        fs::create_dir(&path)
            .map_err(|error| failed(format!("no control group {}: {error}", path.display())))?;
        Ok(path)
    };
    roots.into_iter().map(make).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    const DIR: &str = "/tmp/kapell-backends-kubernetes-7-0";

    fn names() -> Names {
        Names::of(Path::new(DIR))
    }

    #[test]
    fn processes_of_a_cluster_are_told_from_those_that_use_it() {
        let is_of = |line: &str, groups: &str| {
            is_of_cluster(&line.replace(' ', "\0"), groups, Path::new(DIR), &names())
        };
        assert!(is_of(&format!("/cache/kube-apiserver --audit-log-path={DIR}/audit.log"), ""));
        assert!(is_of(&format!("unshare --pid sh {DIR}/start/inside"), ""));
        assert!(is_of(&format!("containerd-shim-runc-v2 -address {DIR}/containerd.sock"), ""));
        assert!(is_of("sleep 5", "4:memory:/kapell-kubernetes-7-0/kubepods/pod1/c\n0::/\n"));
        assert!(is_of("sleep 5", "0::/kapell-kubernetes-7-0/kubepods/pod1/c\n"));
        assert!(!is_of(&format!("tail -f {DIR}/logs/etcd.log"), "0::/\n"));
        assert!(!is_of(&format!("kubectl --kubeconfig {DIR}/kubeconfig get pods"), "0::/\n"));
        assert!(!is_of("/cache/kube-apiserver --audit-log-path=/tmp/other", "0::/\n"));
        assert!(!is_of("sleep 5", "0::/kapell-kubernetes-7-01/kubepods\n"));
    }

    #[test]
    fn mounts_go_in_the_reverse_of_the_order_in_which_they_came() {
        let mounts = format!(
            "/dev/vda / ext4 rw 0 0\noverlay {DIR}/a overlay rw 0 0\ntmpfs {DIR}/a/b tmpfs rw 0 0\n\
             tmpfs {DIR}1/c tmpfs rw 0 0\n"
        );
        let found = mounts_below(&mounts, Path::new(DIR));
        assert_eq!(found, [format!("{DIR}/a/b"), format!("{DIR}/a")].map(PathBuf::from));
    }

    #[test]
    fn groups_are_where_either_version_mounts_them() {
        let mounts = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\ncgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n\
                      cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\nproc /proc proc rw 0 0\n";
        let want = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/unified"].map(PathBuf::from);
        assert_eq!(hierarchies(mounts), want);
    }

    #[test]
    fn groups_go_from_the_leaves_on() {
        let scratch = Scratch::new("groups").unwrap();
        let root = scratch.path().join("own");
        fs::create_dir_all(root.join("kubepods/pod")).unwrap();
        fs::write(root.join("tasks"), "").unwrap();
        let mut found = Vec::new();
        groups(&root, &mut found);
        let want = [root.join("kubepods/pod"), root.join("kubepods"), root.clone()];
        assert_eq!(found, want.map(Leftover::Group));
        groups(&scratch.path().join("none"), &mut found);
        assert_eq!(found.len(), 3);
    }

    #[test]
    fn a_cluster_that_never_was_leaves_nothing() {
        clear(Path::new(DIR), &names()).unwrap();
    }
}
