//! What runs on this machine, and what it uses.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Between two looks at what still runs.
pub const PAUSE: Duration = Duration::from_millis(20);

/// The shims of all platforms and parts below a directory.
pub fn shims(dir: &Path) -> anyhow::Result<Vec<i32>> {
    let dir = dir.to_str().context("a directory with a name")?;
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let mut words = command.split(|byte| *byte == 0);
        let is_shim = words.next() == Some(b"kapell-shim");
        if is_shim && words.next().is_some_and(|home| home.starts_with(dir.as_bytes())) {
            found.push(pid);
        }
    }
    Ok(found)
}

/// Kills what is left of shims, whose programs die with them. Returns how many there were.
pub fn end_shims(dir: &Path) -> anyhow::Result<usize> {
    let left = shims(dir)?;
    for pid in &left {
        // It may have ended meanwhile.
        let _gone = kill(Pid::from_raw(*pid), Signal::SIGKILL);
    }
    let begun = Instant::now();
    while !left.is_empty() && !shims(dir)?.is_empty() {
        anyhow::ensure!(begun.elapsed() < Duration::from_secs(10), "shims do not end");
        std::thread::sleep(PAUSE);
    }
    Ok(left.len())
}

/// What a process holds, in MB.
#[derive(Debug, Clone, Copy, Default)]
pub struct Memory {
    pub resident: f64,
    /// What it shares with others is counted as a share of it.
    pub proportional: f64,
}

pub fn memory(pid: i32) -> anyhow::Result<Memory> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    let field = |name: &str| -> anyhow::Result<f64> {
        let line = text.lines().find(|line| line.starts_with(name)).context("a field")?;
        let kb: f64 = line.split_whitespace().nth(1).context("a number")?.parse()?;
        Ok(kb * 1024.0 / 1e6)
    };
    Ok(Memory { resident: field("Rss:")?, proportional: field("Pss:")? })
}

/// The processor time that a process has used, of all threads that it ever had.
pub fn processor_time(pid: i32) -> anyhow::Result<Duration> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, rest) = text.rsplit_once(") ").context("its name")?;
    let mut fields = rest.split(' ').skip(11);
    let mut ticks = || -> anyhow::Result<u64> { Ok(fields.next().context("a field")?.parse()?) };
    // Hundredths of a second, whatever the kernel counts in.
    Ok(Duration::from_millis((ticks()? + ticks()?) * 10))
}

/// The most that a process has ever held, in MB.
pub fn most_memory(pid: i32) -> anyhow::Result<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = text.lines().find(|line| line.starts_with("VmHWM:")).context("a field")?;
    let kb: f64 = line.split_whitespace().nth(1).context("a number")?.parse()?;
    Ok(kb * 1024.0 / 1e6)
}

/// The processes that a process has started and not yet waited for.
pub fn children(pid: i32) -> anyhow::Result<Vec<i32>> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
    Ok(text.split_whitespace().map(str::parse).collect::<Result<_, _>>()?)
}
