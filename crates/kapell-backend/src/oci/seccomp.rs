//! Which system calls a container may make.
//!
//! A list of what is allowed. What is known to be dangerous fails as if it were not permitted, and
//! what is not known at all as if this kernel did not have it, so that programs use what came before.

use serde_json::{Value, json};

/// Allowed with any arguments.
const ALLOWED: &str = include_str!("seccomp.txt");
/// Known and refused. The C library tries `clone3` first and is content without it.
const REFUSED: &[&str] = &[
    "acct",
    "add_key",
    "adjtimex",
    "bpf",
    "chroot",
    "clock_adjtime",
    "clock_settime",
    "delete_module",
    "fanotify_init",
    "fanotify_mark",
    "finit_module",
    "fsconfig",
    "fsmount",
    "fsopen",
    "fspick",
    "init_module",
    "io_uring_enter",
    "io_uring_register",
    "io_uring_setup",
    "ioperm",
    "iopl",
    "kcmp",
    "kexec_file_load",
    "kexec_load",
    "keyctl",
    "mount",
    "mount_setattr",
    "move_mount",
    "name_to_handle_at",
    "open_by_handle_at",
    "open_tree",
    "perf_event_open",
    "pidfd_getfd",
    "pivot_root",
    "process_vm_readv",
    "process_vm_writev",
    "ptrace",
    "quotactl",
    "reboot",
    "request_key",
    "setns",
    "settimeofday",
    "swapoff",
    "swapon",
    "syslog",
    "umount2",
    "unshare",
    "userfaultfd",
];
/// All flags of `clone` that make a namespace.
const NAMESPACES: u64 = 0x7e02_0080;
/// Local, Internet, Internet 6, and the one that tells of network interfaces.
const FAMILIES: [i32; 4] = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
/// Linux as it is; the last asks which it is.
const PERSONALITIES: [u64; 2] = [0, 0xffff_ffff];

/// The profile as `config.json` has it.
pub(super) fn profile() -> Value {
    let names: Vec<&str> = ALLOWED.split_ascii_whitespace().collect();
    let mut rules = vec![
        json!({ "names": names, "action": "SCMP_ACT_ALLOW" }),
        json!({ "names": REFUSED, "action": "SCMP_ACT_ERRNO", "errnoRet": libc::EPERM }),
        json!({ "names": ["clone"], "action": "SCMP_ACT_ALLOW", "args": [
            { "index": 0, "value": NAMESPACES, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ" }] }),
    ];
    let one_of = |call: &str, value: u64| {
        json!({ "names": [call], "action": "SCMP_ACT_ALLOW", "args": [
            { "index": 0, "value": value, "op": "SCMP_CMP_EQ" }] })
    };
    let families = FAMILIES.map(|family| u64::try_from(family).unwrap_or(0));
    rules.extend(families.map(|family| one_of("socket", family)));
    rules.extend(PERSONALITIES.map(|personality| one_of("personality", personality)));
    json!({
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": libc::ENOSYS,
        "architectures": [architecture()],
        "syscalls": rules,
    })
}

fn architecture() -> &'static str {
    if cfg!(target_arch = "aarch64") { "SCMP_ARCH_AARCH64" } else { "SCMP_ARCH_X86_64" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_call_is_both_allowed_and_refused() {
        let allowed: Vec<&str> = ALLOWED.split_ascii_whitespace().collect();
        for call in REFUSED.iter().chain(&["clone", "clone3", "socket", "personality"]) {
            assert!(!allowed.contains(call), "{call}");
        }
        assert!(allowed.is_sorted(), "so that a second one would be seen");
        assert!(REFUSED.is_sorted());
    }

    #[test]
    fn namespaces_are_made_by_nobody() {
        let made = libc::CLONE_NEWUSER
            | libc::CLONE_NEWNS
            | libc::CLONE_NEWNET
            | libc::CLONE_NEWPID
            | libc::CLONE_NEWIPC
            | libc::CLONE_NEWUTS
            | libc::CLONE_NEWCGROUP
            | 0x80;
        assert_eq!(u64::try_from(made).unwrap(), NAMESPACES, "0x80 is that of time");
        let text = profile().to_string();
        assert!(text.contains("SCMP_CMP_MASKED_EQ") && text.contains("\"unshare\""));
    }
}
