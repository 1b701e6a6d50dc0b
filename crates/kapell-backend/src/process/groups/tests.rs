//! Trees of directories that stand for those of a kernel.

use std::fs;
use std::path::Path;

use super::*;

const LIMITS: Limits = Limits { memory_mb: Some(64), cpu_millis: Some(1500), pids: Some(40) };

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A line of `mountinfo`.
fn mount(dir: &Path, kind: &str, options: &str) -> String {
    let dir = dir.display().to_string().replace(' ', "\\040");
    format!("35 25 0:30 / {dir} rw,nosuid shared:9 - {kind} {kind} rw,{options}\n")
}

#[test]
fn version_two_has_one_group_for_all() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("a tree");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("cgroup.controllers"), "cpuset cpu io memory pids\n").unwrap();
    let groups = Groups::find(&mount(&root, "cgroup2", "nsdelegate"), "agent");
    assert_eq!(groups.enforced(), Enforced { memory: true, cpu: true, pids: true });
    groups.make("one", &LIMITS).unwrap();
    for level in [&root, &root.join("kapell"), &root.join("kapell/agent")] {
        assert_eq!(read(&level.join("cgroup.subtree_control")), "+memory +cpu +pids");
    }
    let group = root.join("kapell/agent/one");
    assert_eq!(read(&group.join("memory.max")), (64 << 20).to_string());
    assert_eq!(read(&group.join("memory.swap.max")), "0");
    assert_eq!(read(&group.join("cpu.max")), "150000 100000");
    assert_eq!(read(&group.join("pids.max")), "40");
    let want = Membership {
        dir: Some(group.clone()),
        oom: Some(group.join("memory.events")),
        joins: vec![group.join("cgroup.procs")],
    };
    assert_eq!(groups.membership("one", &LIMITS), want);
    let free = groups.membership("two", &Limits::default());
    assert_eq!((free.joins.len(), free.oom), (1, None));
}

#[test]
fn version_two_gives_what_is_enabled() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("cgroup.controllers"), "memory hugetlb\n").unwrap();
    let groups = Groups::find(&mount(dir.path(), "cgroup2", ""), "agent");
    assert_eq!(groups.enforced(), Enforced { memory: true, ..Enforced::default() });
    groups.make("one", &LIMITS).unwrap();
    assert!(!dir.path().join("kapell/agent/one/pids.max").exists());
    fs::write(dir.path().join("cgroup.controllers"), "hugetlb\n").unwrap();
    let groups = Groups::find(&mount(dir.path(), "cgroup2", ""), "agent");
    assert_eq!(groups.enforced(), Enforced::default());
    groups.make("one", &LIMITS).unwrap();
    assert_eq!(groups.membership("one", &LIMITS), Membership::default());
}

#[test]
fn version_one_has_a_group_where_there_is_a_limit() {
    let dir = tempfile::tempdir().unwrap();
    let mut mounts = String::new();
    for (name, options) in
        [("memory", "memory"), ("cpu", "cpu,cpuacct"), ("pids", "pids"), ("io", "blkio")]
    {
        let root = dir.path().join(name);
        fs::create_dir(&root).unwrap();
        mounts += &mount(&root, "cgroup", options);
    }
    let groups = Groups::find(&mounts, "agent");
    assert_eq!(groups.enforced(), Enforced { memory: true, cpu: true, pids: true });
    assert!(!dir.path().join("io/kapell").exists());
    groups.make("one", &Limits { pids: None, ..LIMITS }).unwrap();
    let at = |name: &str| dir.path().join(name).join("kapell/agent/one");
    let bytes = (64 << 20).to_string();
    assert_eq!(read(&at("memory").join("memory.limit_in_bytes")), bytes);
    assert_eq!(read(&at("memory").join("memory.memsw.limit_in_bytes")), bytes);
    assert_eq!(read(&at("cpu").join("cpu.cfs_quota_us")), "150000");
    assert!(at("pids").exists() && !at("pids").join("pids.max").exists());
    let membership = groups.membership("one", &LIMITS);
    assert_eq!(membership.dir, Some(at("pids")), "where births can be prevented");
    assert_eq!(membership.oom, Some(at("memory").join("memory.oom_control")));
    let mut joins = membership.joins;
    joins.sort();
    assert_eq!(joins, ["cpu", "memory", "pids"].map(|name| at(name).join("tasks")));
    groups.make("free", &Limits::default()).unwrap();
    assert!(!dir.path().join("memory/kapell/agent/free").exists());
    assert_eq!(groups.membership("free", &Limits::default()).joins.len(), 1);
}

#[test]
fn what_may_not_be_changed_is_not_enforced() {
    // Whoever they belong to, these can have no directories.
    let mounts = mount(Path::new("/proc"), "cgroup", "memory,pids");
    assert_eq!(Groups::find(&mounts, "agent").enforced(), Enforced::default());
    assert_eq!(Groups::find("nonsense\n", "agent").enforced(), Enforced::default());
}

#[test]
fn agents_differ_by_their_directory() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    assert_eq!(name(one.path()), name(one.path()));
    assert_ne!(name(one.path()), name(other.path()));
}
