use std::cell::Cell;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use super::files::{Files, WORKFLOW};
use super::memory::{Peak, Watch};
use super::sys;
use crate::error::{Result, failed};
use crate::scratch::Scratch;

/// Everyone who runs a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Runner {
    Floor,
    Kapell,
    Make,
    Ninja,
}

impl Runner {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Floor => "floor",
            Self::Kapell => "kapell",
            Self::Make => "make",
            Self::Ninja => "ninja",
        }
    }
}

/// What one run of a program cost. The harness is another process, so nothing of it is in here.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Usage {
    /// Seconds of user and system time, of the program and all that it waited for.
    pub(crate) cpu: f64,
    pub(crate) wall: f64,
}

/// Where the programs are, and a place to run them.
#[derive(Debug)]
pub(crate) struct Lab {
    pub(crate) scratch: Scratch,
    pub(crate) kapell: PathBuf,
    pub(crate) floor: PathBuf,
    pub(crate) make: Option<PathBuf>,
    pub(crate) ninja: Option<PathBuf>,
    pub(crate) runs: Cell<u32>,
}

/// The same for everyone: cargo's `LD_LIBRARY_PATH` and the like make starting a program dearer.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const JOBS: &str = "5";

impl Lab {
    pub(crate) fn has(&self, runner: Runner) -> bool {
        match runner {
            Runner::Floor | Runner::Kapell => true,
            Runner::Make => self.make.is_some(),
            Runner::Ninja => self.ninja.is_some(),
        }
    }

    pub(crate) fn run(&self, runner: Runner, files: &Files) -> Result<Usage> {
        let mut command = match runner {
            Runner::Floor => {
                let mut command = Command::new(&self.floor);
                let (waves, width) = (files.shape.waves.to_string(), files.shape.width.to_string());
                command.args([super::FLOOR, files.mode.name(), &waves, &width]);
                command
            }
            Runner::Kapell => self.process(),
            Runner::Make => {
                let mut command = Command::new(self.make.as_deref().unwrap_or(Path::new("make")));
                command.args(["-s", "-j", JOBS]);
                command
            }
            Runner::Ninja => {
                // Its log of earlier runs would grow from round to round.
                let _ = fs::remove_file(files.dir.join(".ninja_log"));
                let mut command = Command::new(self.ninja.as_deref().unwrap_or(Path::new("ninja")));
                command.args(["--quiet", "-j", JOBS]);
                command
            }
        };
        self.measure(&mut command, &files.dir)
    }

    pub(crate) fn validate(&self, dir: &Path) -> Result<Usage> {
        let mut command = Command::new(&self.kapell);
        command.args(["workflow", "validate", WORKFLOW]);
        self.measure(&mut command, dir)
    }

    /// A run of its own, so that looking at the process disturbs no other figure.
    pub(crate) fn peak(&self, files: &Files) -> Result<Peak> {
        let mut peak = Peak::default();
        self.with_place(&mut self.process(), &files.dir, |command| {
            let child = command.spawn()?;
            let pid = libc::pid_t::try_from(child.id()).unwrap_or_default();
            let (ended, found) = Watch::new(child.id()).until_end(pid)?;
            peak = found;
            Ok(ended)
        })?;
        Ok(peak)
    }

    fn process(&self) -> Command {
        let mut command = Command::new(&self.kapell);
        command.args(["process", "--logger", "none", "--workers", JOBS, WORKFLOW]);
        command
    }

    fn measure(&self, command: &mut Command, dir: &Path) -> Result<Usage> {
        let mut wall = 0.0;
        let ended = self.with_place(command, dir, |command| {
            let start = Instant::now();
            let child = command.spawn()?;
            let pid = libc::pid_t::try_from(child.id()).unwrap_or_default();
            let ended = sys::wait(pid, true)?.ok_or_else(|| failed("wait4 gave no answer"))?;
            wall = start.elapsed().as_secs_f64();
            Ok(ended)
        })?;
        Ok(Usage { cpu: ended.cpu.as_secs_f64(), wall })
    }

    /// Runs in `dir` with an empty state directory; a failure shows what the program said.
    fn with_place(
        &self,
        command: &mut Command,
        dir: &Path,
        work: impl FnOnce(&mut Command) -> Result<sys::Ended>,
    ) -> Result<sys::Ended> {
        self.runs.set(self.runs.get() + 1);
        let state = self.scratch.path().join(format!("state-{}", self.runs.get()));
        fs::create_dir(&state)?;
        let errors = self.scratch.path().join("stderr");
        command
            .current_dir(dir)
            .env_clear()
            .env("PATH", PATH)
            .env("HOME", self.scratch.path())
            .env("KAPELL_STATE_DIR", &state)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&errors)?);
        let name = crate::command::show(command);
        let ended = work(command);
        let _ = fs::remove_dir_all(&state);
        let ended = ended?;
        if ended.status.success() {
            return Ok(ended);
        }
        let said = fs::read(&errors).unwrap_or_default();
        let said = String::from_utf8_lossy(&said[..said.len().min(2000)]).into_owned();
        Err(failed(format!("{name}: {}\n{said}", ended.status)))
    }
}
