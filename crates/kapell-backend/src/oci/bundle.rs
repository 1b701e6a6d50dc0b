//! What `runc` is told of a container: `config.json`, as a function of what is wanted.

use std::path::Path;

use serde_json::{Value, json};

use super::seccomp;
use super::slot::{IDS, Ids};
use crate::containers::Limits;

/// What root may do in a container: to own and to pass on its files, to become its other users, to
/// signal them, and to listen where it likes. Nothing of it reaches beyond its user namespace.
pub(super) const CAPABILITIES: [&str; 8] = [
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_FOWNER",
    "CAP_FSETID",
    "CAP_KILL",
    "CAP_NET_BIND_SERVICE",
    "CAP_SETGID",
    "CAP_SETUID",
];
/// What tells of the machine rather than of the container.
const MASKED: [&str; 13] = [
    "/proc/acpi",
    "/proc/asound",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/sys/devices/virtual/powercap",
    "/sys/firmware",
    "/sys/kernel",
];
const READ_ONLY: [&str; 5] =
    ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];
/// Where the first process of a container is that has none of its own.
pub(super) const PAUSE: &str = "/dev/kapell-shim";
const PERIOD_US: u64 = 100_000;
/// The kernel takes no less.
const LEAST_QUOTA_US: u64 = 1_000;

/// A program, as it is seen from inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Program {
    /// The program itself is the first.
    pub(super) args: Vec<String>,
    /// As `NAME=value`.
    pub(super) env: Vec<String>,
    pub(super) dir: String,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) groups: Vec<u32>,
    pub(super) capabilities: &'static [&'static str],
}

/// A file of the machine that a container sees and cannot change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shown<'a> {
    pub(super) file: &'a Path,
    pub(super) at: &'a str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bundle<'a> {
    pub(super) program: &'a Program,
    pub(super) hostname: &'a str,
    /// Where its files are mounted when this is read.
    pub(super) root: &'a Path,
    /// Where its user namespace is found then.
    pub(super) user_namespace: &'a Path,
    pub(super) ids: Ids,
    pub(super) cgroup: &'a str,
    pub(super) limits: &'a Limits,
    /// It sees the network of the machine.
    pub(super) host_network: bool,
    pub(super) shown: &'a [Shown<'a>],
}

impl Bundle<'_> {
    pub(super) fn config(&self) -> Value {
        let ids = json!([{ "containerID": 0, "hostID": self.ids.base, "size": IDS }]);
        let namespaces =
            ["pid", "ipc", "uts", "mount", "cgroup"].map(|kind| json!({ "type": kind }));
        let user = json!({ "type": "user", "path": self.user_namespace });
        // The one that whoever starts it is in already. Those who come later are not.
        let network = json!({ "type": "network", "path": "/proc/self/ns/net" });
        let network = Some(network).filter(|_| !self.host_network);
        let namespaces: Vec<Value> = namespaces.into_iter().chain([user]).chain(network).collect();
        json!({
            "ociVersion": "1.0.2",
            "process": self.program.process(),
            "root": { "path": self.root, "readonly": false },
            "hostname": self.hostname,
            "mounts": self.mounts(),
            "linux": {
                "cgroupsPath": self.cgroup,
                "resources": resources(self.limits),
                "uidMappings": ids,
                "gidMappings": ids,
                "namespaces": namespaces,
                "seccomp": seccomp::profile(),
                "maskedPaths": MASKED,
                "readonlyPaths": READ_ONLY,
            },
        })
    }

    fn mounts(&self) -> Vec<Value> {
        let mount = |at: &str, kind: &str, options: &[&str]| json!({ "destination": at, "type": kind, "source": kind, "options": options });
        let mut mounts = vec![
            mount("/proc", "proc", &["nosuid", "noexec", "nodev"]),
            mount("/dev", "tmpfs", &["nosuid", "strictatime", "mode=755", "size=64k"]),
            mount(
                "/dev/pts",
                "devpts",
                &["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"],
            ),
            mount("/dev/shm", "tmpfs", &["nosuid", "noexec", "nodev", "mode=1777", "size=64m"]),
            // Whoever does not own a network namespace cannot mount what tells of it.
            if self.host_network {
                mount("/sys", "tmpfs", &["nosuid", "noexec", "nodev", "mode=755", "size=64k"])
            } else {
                mount("/sys", "sysfs", &["nosuid", "noexec", "nodev", "ro"])
            },
            // Programs size themselves by their limits.
            mount("/sys/fs/cgroup", "cgroup", &["nosuid", "noexec", "nodev", "relatime", "ro"]),
            mount("/tmp", "tmpfs", &["nosuid", "nodev", "mode=1777"]),
        ];
        mounts.extend(self.shown.iter().map(|Shown { file, at }| {
            let options = ["bind", "ro", "nosuid", "nodev"];
            json!({ "destination": at, "type": "bind", "source": file, "options": options })
        }));
        mounts
    }
}

impl Program {
    /// As `config.json` and `runc exec` have it.
    pub(super) fn process(&self) -> Value {
        let may = self.capabilities;
        json!({
            "terminal": false,
            "user": { "uid": self.uid, "gid": self.gid, "additionalGids": self.groups },
            "args": self.args,
            "env": self.env,
            "cwd": self.dir,
            "capabilities": { "bounding": may, "effective": may, "permitted": may },
            "noNewPrivileges": true,
        })
    }
}

fn resources(limits: &Limits) -> Value {
    let Limits { memory_mb, cpu_millis, pids } = limits;
    // No device but those that `runc` allows by itself: null, zero, full, random, urandom, tty, ptmx, pts.
    let mut resources = json!({ "devices": [{ "allow": false, "access": "rwm" }] });
    if let Some(mb) = memory_mb {
        let bytes = u64::from(*mb) << 20;
        resources["memory"] = json!({ "limit": bytes });
    }
    if let Some(millis) = cpu_millis {
        let quota = (u64::from(*millis) * PERIOD_US / 1000).max(LEAST_QUOTA_US);
        resources["cpu"] = json!({ "quota": quota, "period": PERIOD_US });
    }
    if let Some(pids) = pids {
        resources["pids"] = json!({ "limit": pids });
    }
    resources
}
