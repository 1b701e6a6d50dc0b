//! The least that a runner has to do for a step, as a program of its own to be measured:
//! start it in its own process group, drain both of its pipes, wait for it.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;

use super::mode::Mode;
use super::sys::{self, Spawned, Spawner};
use crate::error::{Error, Result, failed};

/// The hidden subcommand.
pub(crate) const FLOOR: &str = "floor";
const IN_FLIGHT: usize = 5;

/// Runs `floor plain|sh WAVES WIDTH`: a wave starts when the one before has ended.
pub(crate) fn floor(words: &[&str]) -> Result<()> {
    let usage = || Error::Usage("floor: plain|sh WAVES WIDTH".to_owned());
    let [mode, waves, width] = words else { return Err(usage()) };
    let mode = Mode::parse(mode).ok_or_else(usage)?;
    let waves: usize = waves.parse().map_err(|_| usage())?;
    let width: usize = width.parse().map_err(|_| usage())?;
    let plain: &[&CStr] = &[c"/bin/true"];
    let shell: &[&CStr] = &[c"/bin/sh", c"-c", c": && /bin/true"];
    let spawner = Spawner::new(match mode {
        Mode::Plain => plain,
        Mode::Shell => shell,
    })?;
    for _ in 0..waves {
        wave(&spawner, width)?;
    }
    Ok(())
}

fn wave(spawner: &Spawner, width: usize) -> Result<()> {
    let mut left = width;
    let mut running: Vec<Spawned> = Vec::with_capacity(IN_FLIGHT);
    let mut waiting = Vec::with_capacity(2 * IN_FLIGHT);
    while left > 0 || !running.is_empty() {
        while left > 0 && running.len() < IN_FLIGHT {
            running.push(spawner.start()?);
            left -= 1;
        }
        waiting.clear();
        for stream in running.iter().flat_map(|child| child.streams.iter().flatten()) {
            let fd = stream.as_raw_fd();
            waiting.push(libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
        }
        sys::poll(&mut waiting)?;
        let mut answers = waiting.iter();
        for child in &mut running {
            for stream in child.streams.iter_mut().filter(|stream| stream.is_some()) {
                if answers.next().is_some_and(|answer| answer.revents != 0) {
                    drain(stream)?;
                }
            }
        }
        let mut at = 0;
        while let Some(child) = running.get(at) {
            if child.streams.iter().any(Option::is_some) {
                at += 1;
                continue;
            }
            let ended = sys::wait(child.pid, true)?;
            if !ended.is_some_and(|ended| ended.status.success()) {
                return Err(failed("floor: a step failed"));
            }
            running.swap_remove(at);
        }
    }
    Ok(())
}

/// Reads what is there; closes the stream at its end.
fn drain(stream: &mut Option<File>) -> io::Result<()> {
    let mut buffer = [0; 4096];
    if let Some(file) = stream
        && file.read(&mut buffer)? == 0
    {
        *stream = None;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_waves_in_both_modes() {
        assert!(floor(&["plain", "2", "7"]).is_ok());
        assert!(floor(&["sh", "1", "3"]).is_ok());
        assert!(matches!(floor(&["plain", "x", "1"]), Err(Error::Usage(_))));
    }

    #[test]
    fn a_failing_step_is_an_error() {
        let spawner = Spawner::new(&[c"/bin/false"]).unwrap();
        assert!(wave(&spawner, 2).is_err());
    }
}
