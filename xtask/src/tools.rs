//! Programs that builds, tests and benchmarks need, installed by Debian package name.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Command;

use crate::command;
use crate::error::{Result, failed};

/// A program, or a file by its whole path, and the package that brings it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tool {
    pub(crate) program: &'static str,
    pub(crate) package: &'static str,
}

const fn tool(program: &'static str, package: &'static str) -> Tool {
    Tool { program, package }
}

pub(crate) const MAKE: Tool = tool("make", "make");
pub(crate) const NINJA: Tool = tool("ninja", "ninja-build");
pub(crate) const OPENSSL: Tool = tool("openssl", "openssl");
pub(crate) const ETCD: Tool = tool("etcd", "etcd-server");
/// A browser that a page can be looked at with, without a screen.
pub(crate) const CHROMIUM: Tool = tool("chromium-headless-shell", "chromium-headless-shell");
pub(crate) const BUSYBOX: Tool = tool("busybox", "busybox-static");
pub(crate) const RUNC: Tool = tool("runc", "runc");
pub(crate) const NFT: Tool = tool("nft", "nftables");
pub(crate) const IP: Tool = tool("ip", "iproute2");
pub(crate) const REGISTRY: Tool = tool("docker-registry", "docker-registry");
pub(crate) const ETCDCTL: Tool = tool("etcdctl", "etcd-client");

/// What a build script of a dependency starts, and the files that `protoc` reads: its package only recommends the one with those.
pub(crate) const FOR_BUILDS: &[Tool] = &[
    tool("protoc", "protobuf-compiler"),
    tool("/usr/include/google/protobuf/descriptor.proto", "libprotobuf-dev"),
];

/// What runs containers with a root of their own, and a program to put into one.
pub(crate) const FOR_CONTAINERS: &[Tool] = &[BUSYBOX, RUNC, NFT, IP];

/// Everything that a test may start besides what every Debian has.
pub(crate) const FOR_TESTS: &[Tool] = &[
    MAKE,
    NINJA,
    tool("python3", "python3"),
    tool("bash", "bash"),
    tool("faketime", "faketime"),
    BUSYBOX,
    RUNC,
    NFT,
    IP,
    CHROMIUM,
];

/// Tries to install what is missing; whoever needs a tool that is still missing reports a skip.
pub(crate) fn provide(tools: &[Tool]) {
    let missing = missing(tools);
    if missing.is_empty() {
        return;
    }
    let packages: Vec<&str> = missing.iter().map(|tool| tool.package).collect();
    if let Err(error) = install(&packages) {
        eprintln!("note: {error}");
    }
}

/// Installs what is missing; an error if something still is.
pub(crate) fn require(tools: &[Tool]) -> Result<()> {
    provide(tools);
    let show = |tool: &Tool| format!("{} (package {})", tool.program, tool.package);
    let missing: Vec<String> = missing(tools).iter().map(show).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let list = missing.join(", ");
    Err(failed(format!("missing, and could not be installed: {list}; install it by hand")))
}

fn missing(tools: &[Tool]) -> Vec<Tool> {
    tools.iter().filter(|tool| command::find(tool.program).is_none()).copied().collect()
}

/// Installs Debian packages. No service that they bring is started.
pub(crate) fn install(packages: &[&str]) -> Result<()> {
    let list = packages.join(" ");
    if command::find("apt-get").is_none() {
        return Err(failed(format!("no apt-get here: install by hand what {list} is elsewhere")));
    }
    eprintln!("installing {list}");
    let _policy = Policy::set(Path::new(POLICY));
    let mut words = vec!["install", "-q", "-y", "--no-install-recommends"];
    words.extend(packages);
    // A package list may be as old as the image: without an update the versions it names are gone.
    if apt(&["update", "-q"]) && apt(&words) {
        return Ok(());
    }
    Err(failed(format!("apt-get could not install {list}, see above")))
}

fn apt(words: &[&str]) -> bool {
    let mut apt = Command::new("apt-get");
    // Our own stdout may be read by a program; another apt-get may be at work.
    apt.args(["-o", "DPkg::Lock::Timeout=120"]).args(words);
    apt.env("DEBIAN_FRONTEND", "noninteractive").stdout(io::stderr());
    command::succeeds(&mut apt).unwrap_or(false)
}

const POLICY: &str = "/usr/sbin/policy-rc.d";

const FORBID: &str = "#!/bin/sh\n# Of `cargo xtask`, while it installs packages.\nexit 101\n";

/// Forbids packages to start services for as long as it lives. Someone else's policy stays.
#[derive(Debug)]
struct Policy<'a> {
    path: &'a Path,
}

impl<'a> Policy<'a> {
    fn set(path: &'a Path) -> Self {
        let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o755).open(path);
        // Without the right to do this we cannot install either, and apt-get tells so.
        let _ = file.and_then(|mut file| file.write_all(FORBID.as_bytes()));
        Self { path }
    }
}

impl Drop for Policy<'_> {
    fn drop(&mut self) {
        // By its text, so that one which we left when we were killed goes too.
        if fs::read_to_string(self.path).is_ok_and(|text| text == FORBID) {
            let _ = fs::remove_file(self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn a_policy_is_there_while_packages_install_and_never_replaces_another() {
        let scratch = Scratch::new("tools").unwrap();
        let path = scratch.path().join("policy-rc.d");
        for _ in 0..2 {
            let policy = Policy::set(&path);
            assert_eq!(fs::read_to_string(&path).unwrap(), FORBID);
            drop(policy);
            assert!(!path.exists());
        }
        fs::write(&path, "exit 0\n").unwrap();
        drop(Policy::set(&path));
        assert_eq!(fs::read_to_string(&path).unwrap(), "exit 0\n");
    }
}
