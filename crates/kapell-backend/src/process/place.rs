//! A directory with containers.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::sys::signal::Signal;

use super::about_file::{self, About};
use super::container::{Container, Inside};
use super::groups::{Groups, Membership};
use super::hidden::{Document, Hidden};
use super::home::Home;
use super::program::{Broom, Program, Search, find_shim};
use super::runner::Seat;
use super::spec_file::{Header, Order};
use super::sweep::Left;
use super::{exit_file, shim, trouble};
use crate::containers::{Enforced, Error, Found, Output, Process, Spec};
use crate::spawn::allowed_descriptors;

/// So often a directory for logs is made again that is removed meanwhile.
const LOG_TRIES: usize = 100;

#[derive(Debug)]
pub(crate) struct Place {
    containers: PathBuf,
    shim: PathBuf,
    boot: String,
    /// How many descriptors a program may have, if we allow ourselves more.
    descriptors: Option<u64>,
    known: Mutex<BTreeMap<String, Arc<Container>>>,
    broom: Broom,
}

/// How a program is started, if not by the shim itself.
#[derive(Debug)]
pub(crate) struct Launch {
    /// Ends when it has written the number of the program to `pid_file`.
    pub(crate) launcher: String,
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) pid_file: PathBuf,
    /// All of the container ends with it.
    pub(crate) whole: bool,
    /// A control group that is for it alone.
    pub(crate) group: Option<PathBuf>,
    /// What the launcher finds at [`hidden::DOCUMENT`].
    pub(crate) document: Option<Document>,
}

/// A process whose shim was started.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) program: Arc<Program>,
    pub(crate) header: Header,
    pub(crate) status: OwnedFd,
    /// The directories for its logs that were not there before, innermost first.
    pub(crate) new_logs: Vec<PathBuf>,
}

impl Place {
    pub(crate) fn open(dir: &Path, containers: PathBuf, programs: &Path) -> Result<Self, Error> {
        let boot = Path::new("/proc/sys/kernel/random/boot_id");
        Ok(Self {
            containers,
            shim: shim::install(programs)?,
            boot: fs::read_to_string(boot).map_err(trouble::io("read", boot))?.trim().to_owned(),
            descriptors: allowed_descriptors().map(|limit| limit.rlim_cur),
            known: Mutex::default(),
            broom: Broom { groups: Arc::new(Groups::open(dir)), ..Broom::default() },
        })
    }

    pub(crate) fn shim(&self) -> &Path {
        &self.shim
    }

    /// What a runner beside the containers is made of.
    pub(crate) fn seat(&self) -> Seat {
        Seat {
            dir: self.containers.with_file_name("runner"),
            shim: self.shim.clone(),
            boot: self.boot.clone(),
            descriptors: self.descriptors,
        }
    }

    pub(crate) fn groups(&self) -> &Groups {
        &self.broom.groups
    }

    pub(crate) fn enforced(&self) -> Enforced {
        self.broom.groups.enforced()
    }

    pub(crate) fn home(&self, guid: &str) -> Home {
        Home::new(self.containers.join(guid))
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Container>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn find(&self, guid: &str) -> Result<Arc<Container>, Error> {
        self.known().get(guid).cloned().ok_or_else(|| Error::Unknown(guid.to_owned()))
    }

    /// Blocks. Whoever asked for it may be gone meanwhile: the container is known nonetheless.
    pub(crate) fn create(&self, spec: &Spec) -> Result<(), Error> {
        let about = About::new(spec, &self.boot)?;
        let home = self.home(&spec.guid);
        home.make(&about)?;
        self.broom.groups.make(&spec.guid, &about.limits).inspect_err(|_| drop(home.remove()))?;
        let container = Container::new(spec.guid.clone(), home, about).with_groups();
        self.known().insert(spec.guid.clone(), Arc::new(container));
        Ok(())
    }

    /// Blocks. Whoever asked for it may be gone meanwhile: the process is known nonetheless.
    pub(crate) fn start(
        &self,
        of: &Container,
        process: &Process,
        launch: Option<&Launch>,
    ) -> Result<Started, Error> {
        let mut inside = of.inside();
        if inside.closed {
            return Err(Error::Unknown(of.guid.clone()));
        }
        if !inside.has_groups {
            self.broom.groups.make(&of.guid, &of.about.limits)?;
            inside.has_groups = true;
        }
        let logs = match process.output {
            Output::Kept => Some(of.about.logs.join(&process.name)),
            Output::Dropped => None,
        };
        let text = match launch {
            None => self.order(of, &inside, process, logs.as_deref())?,
            Some(launch) => {
                let program = (process.name.as_str(), process.stop_grace);
                self.launch_order(of, program, logs.as_deref(), launch)?
            }
        };
        let document = launch.and_then(|launch| launch.document.as_ref());
        let hidden = Hidden::new(&process.secrets, document)?;
        let home = of.home.run(&process.name);
        let lock = home.make(&text)?;
        let mut new_logs = Vec::new();
        let started = make_logs(logs.as_deref(), &mut new_logs)
            .and_then(|()| shim::spawn(&self.shim, home.dir(), lock, hidden.as_ref()));
        let started = started.inspect_err(|_| {
            remove_empty(&new_logs);
            let _cleared_next_time = home.remove();
        })?;
        let header = Header::parse(&text).ok_or_else(|| {
            trouble::io("read", &home.dir().join("spec"))(io::ErrorKind::InvalidData.into())
        })?;
        let program = Program::new(&of.guid, &process.name, home, self.broom.clone());
        let program = Arc::new(program.with_shim(started.shim));
        inside.programs.insert(process.name.clone(), Arc::clone(&program));
        Ok(Started { program, header, status: started.status, new_logs })
    }

    fn order(
        &self,
        of: &Container,
        inside: &Inside,
        process: &Process,
        logs: Option<&Path>,
    ) -> Result<Vec<u8>, Error> {
        let about = &of.about;
        let (user, own_user) = match &process.user {
            None => (about.user, about.own_user),
            Some(user) => {
                let other = about_file::other_user(user)?;
                (other, about_file::is_own(user, other))
            }
        };
        let whole = about.sole && inside.programs.is_empty();
        let order = Order {
            boot: &self.boot,
            guid: &of.guid,
            name: &process.name,
            program: &process.path,
            args: &process.args,
            env: &process.env,
            dir: process.dir.as_deref(),
            user,
            own_user: whole && own_user,
            whole,
            own_group: false,
            stop_grace: process.stop_grace,
            logs,
            log_bytes: about.log_bytes,
            log_rate: about.log_rate,
            descriptors: self.descriptors,
            pid_file: None,
            groups: &self.broom.groups.membership(&of.guid, &about.limits),
        };
        order.encode()
    }

    /// For a program with this name and grace time.
    pub(super) fn launch_order(
        &self,
        of: &Container,
        (name, stop_grace): (&str, Duration),
        logs: Option<&Path>,
        launch: &Launch,
    ) -> Result<Vec<u8>, Error> {
        let about = &of.about;
        let Membership { dir, oom, .. } = self.broom.groups.membership(&of.guid, &about.limits);
        let order = Order {
            boot: &self.boot,
            guid: &of.guid,
            name,
            program: &launch.launcher,
            args: &launch.args,
            env: &launch.env,
            dir: None,
            user: None,
            own_user: false,
            whole: launch.whole,
            own_group: launch.group.is_some(),
            stop_grace,
            logs,
            log_bytes: about.log_bytes,
            log_rate: about.log_rate,
            descriptors: self.descriptors,
            pid_file: Some(&launch.pid_file),
            // The launcher is not part of the container, and puts it where it belongs.
            groups: &Membership { dir: launch.group.clone().or(dir), oom, joins: Vec::new() },
        };
        order.encode()
    }

    /// Removes what is left of a container whose processes have ended. Blocks.
    pub(crate) fn forget(&self, container: &Container) -> Result<(), Error> {
        container.end_rest(&self.shim)?;
        self.broom.groups.remove(&container.guid)?;
        container.home.remove()?;
        self.known().remove(&container.guid);
        Ok(())
    }

    /// Blocks.
    pub(crate) fn recover(&self) -> Result<Vec<Found>, Error> {
        let failed = || trouble::io("read", &self.containers);
        let mut killed = Vec::new();
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.containers).map_err(failed())? {
            let entry = entry.map_err(failed())?;
            let Ok(guid) = entry.file_name().into_string() else { continue };
            match self.look(guid, Home::new(entry.path()), &mut killed)? {
                Look::Known(container) => found.push(container),
                // What cannot be removed now is tried again by the next agent.
                Look::Gone(home) => drop(home.remove()),
            }
        }
        self.end_killed(killed)?;
        let mut told = Vec::new();
        for container in found {
            told.push(container.found());
            self.known().insert(container.guid.clone(), container);
        }
        self.broom.groups.remove_strays(|guid| self.known().contains_key(guid));
        Ok(told)
    }

    /// What has become of a container of an earlier agent.
    fn look(&self, guid: String, home: Home, killed: &mut Vec<Killed>) -> Result<Look, Error> {
        let Some(about) = home.about()? else {
            self.end_unknown(&guid, &home)?;
            return Ok(Look::Gone(home));
        };
        let is_of_this_boot = about.boot == self.boot;
        let container = Arc::new(Container::new(guid, home, about));
        let (mut programs, mut is_lost) = (Vec::new(), false);
        for name in container.home.processes()? {
            let run = container.home.run(&name);
            let program = Program::new(&container.guid, &name, run, self.broom.clone());
            match self.look_at(program)? {
                State::Known(program) => programs.push(program),
                State::Killed(program) => {
                    killed.push(Killed { container: Arc::clone(&container), program });
                }
                // What cannot be removed now is tried again by the next agent.
                State::NeverRan(program) => drop(program.home.remove()),
                State::Lost => is_lost = true,
            }
        }
        let is_empty = container.home.processes()?.is_empty();
        let runs = programs.iter().any(|program| program.exit().is_none());
        if (is_lost && !runs) || (is_empty && !is_of_this_boot) {
            return Ok(Look::Gone(container.home.clone()));
        }
        for program in programs {
            container.add(program);
        }
        Ok(Look::Known(container))
    }

    fn look_at(&self, program: Program) -> Result<State, Error> {
        let home = &program.home;
        let search = find_shim(home)?;
        let header = home.header()?;
        match (search, header) {
            (Search::Found(shim), _) => Ok(State::Known(program.with_shim(Some(shim)))),
            (Search::NotYet, _) => Ok(State::Known(program)),
            // A shim that wrote nothing has started nothing, and never will.
            (Search::Gone, Some(header)) if home.shim()?.is_some() => match home.exit(&header)? {
                Some(exit) => Ok(State::Known(program.with_exit(exit))),
                None if header.boot == self.boot => Ok(State::Killed(program)),
                // It ended with the machine, and its numbers are others' now.
                None => Ok(State::Lost),
            },
            (Search::Gone, _) => Ok(State::NeverRan(program)),
        }
    }

    /// Ends what processes have left whose shims were killed.
    fn end_killed(&self, killed: Vec<Killed>) -> Result<(), Error> {
        let mut left = Vec::new();
        for Killed { container, program } in &killed {
            if program.home.header()?.is_some_and(|header| header.whole) {
                self.broom.groups.kill(&container.guid)?;
            }
            left.push(Left::of(&container.guid, &program.name, &program.home)?);
        }
        self.broom.sweeper.sweep(left);
        for Killed { container, program } in killed {
            let exit = exit_file::write_killed(program.home.dir());
            container.add(program.with_exit(exit));
        }
        Ok(())
    }

    /// Ends what runs in a container of which nothing is known any more.
    fn end_unknown(&self, guid: &str, home: &Home) -> Result<(), Error> {
        let mut left = Vec::new();
        for name in home.processes()? {
            let run = home.run(&name);
            if let Search::Found(shim) = find_shim(&run)? {
                let _gone = shim.signal(Signal::SIGKILL);
                left.push(Left::of(guid, &name, &run)?);
            }
        }
        self.broom.sweeper.sweep(left);
        Ok(())
    }
}

#[derive(Debug)]
enum Look {
    Known(Arc<Container>),
    /// It was never done, or ran when the machine was started anew.
    Gone(Home),
}

#[derive(Debug)]
enum State {
    Known(Program),
    /// Its shim was killed.
    Killed(Program),
    NeverRan(Program),
    /// It ran when the machine was started anew.
    Lost,
}

#[derive(Debug)]
struct Killed {
    container: Arc<Container>,
    program: Program,
}

/// Tells which were not there.
pub(super) fn make_logs(logs: Option<&Path>, new: &mut Vec<PathBuf>) -> Result<(), Error> {
    let Some(logs) = logs else { return Ok(()) };
    let both = logs.parent().into_iter().fold(vec![logs], |mut both, outer| {
        both.push(outer);
        both
    });
    new.extend(both.into_iter().filter(|dir| !dir.is_dir()).map(Path::to_owned));
    // Which work there is concerns its owners only.
    let make = || DirBuilder::new().recursive(true).mode(0o700).create(logs);
    let mut done = make();
    // Who removes old logs may remove an outer one before there is anything in it.
    for _ in 0..LOG_TRIES {
        if !done.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            break;
        }
        done = make();
    }
    done.map_err(trouble::io("make", logs))
}

/// Those in which nothing stands.
pub(crate) fn remove_empty(dirs: &[PathBuf]) {
    for dir in dirs {
        let _kept = fs::remove_dir(dir);
    }
}
