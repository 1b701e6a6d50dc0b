//! Programs that tests and benchmarks need, installed by Debian package name.

use std::io;
use std::process::Command;

use crate::command;

/// A program and the package that brings it.
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

/// Everything that a test may start besides what every Debian has.
pub(crate) const FOR_TESTS: &[Tool] =
    &[MAKE, NINJA, tool("python3", "python3"), tool("bash", "bash")];

/// Tries to install what is missing; whoever needs a tool that is still missing reports a skip.
pub(crate) fn provide(tools: &[Tool]) {
    let missing: Vec<&Tool> =
        tools.iter().filter(|tool| command::find(tool.program).is_none()).collect();
    if missing.is_empty() {
        return;
    }
    let packages: Vec<&str> = missing.iter().map(|tool| tool.package).collect();
    let packages_text = packages.join(" ");
    if command::find("apt-get").is_none() {
        eprintln!("note: no apt-get here to install {packages_text}");
        return;
    }
    eprintln!("installing {packages_text}");
    // A package list may be as old as the image: without an update the versions it names are gone.
    if apt(&["update", "-q"]) {
        let mut words = vec!["install", "-q", "-y", "--no-install-recommends"];
        words.extend(&packages);
        apt(&words);
    }
    for tool in missing {
        if command::find(tool.program).is_none() {
            eprintln!("note: `{}` (package {}) could not be installed", tool.program, tool.package);
        }
    }
}

fn apt(words: &[&str]) -> bool {
    let mut apt = Command::new("apt-get");
    // Our own stdout may be read by a program.
    apt.args(words).env("DEBIAN_FRONTEND", "noninteractive").stdout(io::stderr());
    command::succeeds(&mut apt).unwrap_or(false)
}
