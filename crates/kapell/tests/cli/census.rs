//! Which processes there are, found by a mark in their environment.

use std::fs;

/// The variable that marks every process of a test.
pub(crate) const MARK: &str = "MARK_OF_THE_TEST";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) parent: i32,
    /// As `/proc` tells it: `R`, `S`, …, and `Z` for a zombie.
    pub(crate) state: char,
    pub(crate) name: String,
}

impl Process {
    pub(crate) fn is_dead(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }
}

/// Living processes with this mark, in no order.
pub(crate) fn marked(mark: &str) -> Vec<Process> {
    with(MARK, mark)
}

/// Living processes with this variable in their environment.
pub(crate) fn with(name: &str, value: &str) -> Vec<Process> {
    let entry = format!("{name}={value}");
    let has_mark = |process: &Process| {
        let environment = fs::read(format!("/proc/{}/environ", process.pid)).unwrap_or_default();
        environment.split(|&byte| byte == 0).any(|variable| variable == entry.as_bytes())
    };
    all().into_iter().filter(|process| !process.is_dead() && has_mark(process)).collect()
}

/// Living processes by what they were started with, words apart by spaces.
pub(crate) fn running(is_meant: impl Fn(&str) -> bool) -> Vec<Process> {
    let fits = |process: &Process| {
        let words = fs::read(format!("/proc/{}/cmdline", process.pid)).unwrap_or_default();
        is_meant(&String::from_utf8_lossy(&words).replace('\0', " "))
    };
    all().into_iter().filter(|process| !process.is_dead() && fits(process)).collect()
}

/// Processes with this parent, the dead ones not yet waited for included.
pub(crate) fn children(parent: i32) -> Vec<Process> {
    all().into_iter().filter(|process| process.parent == parent).collect()
}

fn all() -> Vec<Process> {
    let entries = fs::read_dir("/proc").expect("a Linux machine");
    entries
        .flatten()
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            read(pid)
        })
        .collect()
}

/// Whether nothing of a process goes on. Its parent may not have asked yet how it ended. While one of its threads has not gone,
/// what it listened on is still taken.
pub(crate) fn has_ended(pid: i32) -> bool {
    let threads = || fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
    read(pid).is_none_or(|process| process.is_dead() && threads() <= 1)
}

fn read(pid: i32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (head, rest) = stat.rsplit_once(')')?;
    let (_, name) = head.split_once('(')?;
    let mut words = rest.split_ascii_whitespace();
    let state = words.next()?.chars().next()?;
    let parent = words.next()?.parse().ok()?;
    Some(Process { pid, parent, state, name: name.to_owned() })
}

/// The most memory that a process ever had of its own, in kB: without what of its program file is in memory, which a program
/// that is not optimized has more of than of anything else.
pub(crate) fn peak_memory_kb(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process is there");
    let field = |name: &str| -> u64 {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a field");
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    };
    field("VmHWM:").saturating_sub(field("RssFile:"))
}
