use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use super::sys::{self, Ended};
use crate::error::Result;

const EVERY: Duration = Duration::from_millis(3);

/// The most memory that a program held.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Peak {
    /// Sum over its own processes of the most that each held.
    pub(crate) own_kb: u32,
    /// Of the largest process alone.
    pub(crate) largest_kb: u32,
}

/// Looks at a process and those of its children that are the same program.
#[derive(Debug)]
pub(crate) struct Watch {
    pid: u32,
    looks: u32,
    seen: BTreeMap<u32, Seen>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Seen {
    looks: u32,
    peak_kb: u32,
}

impl Watch {
    pub(crate) const fn new(pid: u32) -> Self {
        Self { pid, looks: 0, seen: BTreeMap::new() }
    }

    pub(crate) fn until_end(mut self, pid: libc::pid_t) -> Result<(Ended, Peak)> {
        loop {
            self.look();
            if let Some(ended) = sys::wait(pid, false)? {
                return Ok((ended, self.peak(ended.max_rss_kb)));
            }
            thread::sleep(EVERY);
        }
    }

    fn look(&mut self) {
        self.looks += 1;
        let name = name_of(self.pid);
        let mut pids = children_of(self.pid);
        pids.retain(|pid| name_of(*pid) == name);
        pids.push(self.pid);
        for pid in pids {
            if let Some(peak_kb) = peak_kb_of(pid) {
                let seen = self.seen.entry(pid).or_default();
                seen.looks += 1;
                seen.peak_kb = seen.peak_kb.max(peak_kb);
            }
        }
    }

    fn peak(&self, reported_kb: u32) -> Peak {
        // A step between `vfork` and `exec` looks like a copy of its parent, memory and all:
        // only a process that is there for much of the time is one of the program's own.
        let lasting = self.seen.values().filter(|seen| seen.looks * 4 >= self.looks);
        let peaks: Vec<u32> = lasting.map(|seen| seen.peak_kb).collect();
        // For the same reason the kernel's figure is never below what the harness itself held.
        let harness_kb = peak_kb_of(std::process::id()).unwrap_or(0);
        let seen_kb = peaks.iter().copied().max().unwrap_or(0);
        let is_its_own = reported_kb > harness_kb;
        Peak {
            own_kb: peaks.iter().sum(),
            largest_kb: if is_its_own { reported_kb } else { seen_kb },
        }
    }
}

/// The program's file: a process may call itself what it likes.
fn name_of(pid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/exe")).ok()
}

fn children_of(pid: u32) -> Vec<u32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let lists = threads
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let lists: Vec<String> = lists.collect();
    lists
        .iter()
        .flat_map(|list| list.split_whitespace())
        .filter_map(|pid| pid.parse().ok())
        .collect()
}

fn peak_kb_of(pid: u32) -> Option<u32> {
    peak_in(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?)
}

fn peak_in(status: &str) -> Option<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_high_water_mark() {
        assert_eq!(peak_in("Name:\tx\nVmHWM:\t    1234 kB\nVmRSS:\t 1 kB\n"), Some(1234));
        assert_eq!(peak_in("Name:\tx\n"), None);
        assert!(peak_kb_of(std::process::id()).is_some_and(|kb| kb > 100));
    }

    #[test]
    fn counts_only_processes_that_last() {
        let seen = |looks, peak_kb| Seen { looks, peak_kb };
        let seen = BTreeMap::from([(1, seen(100, 1000)), (2, seen(98, 500)), (3, seen(2, 1000))]);
        let peak = Watch { pid: 1, looks: 100, seen }.peak(1);
        assert_eq!((peak.own_kb, peak.largest_kb), (1500, 1000));
    }
}
