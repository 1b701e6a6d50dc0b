//! A machine with containers that outlive the agent, and the driver through which agents use them.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use kapell_backend::containers::{
    self, Containers, Enforced, Error, Exit, Found, FoundProcess, Spec,
};
use kapell_core::board::{CellId, InstanceGuid, LrpKey, ProcessGuid, TaskGuid};
use tokio::sync::watch;

use super::fact::{Process, Unit};
use crate::parts::chance::Chance;

/// What programs are told to do by their first argument.
pub(super) const SERVE: &str = "serve";
pub(super) const CRASH: &str = "crash";
pub(super) const WORK: &str = "work";
pub(super) const SHORT: &str = "short";
pub(super) const HANG: &str = "hang";

/// What programs write where a task is to leave its result.
pub(super) const RESULT: &str = "result";

/// What a cell makes to see whether it can: nobody is told of it.
const SELF_TEST: &str = "self-test-";

/// All that runs on a machine, and what became of it.
#[derive(Debug)]
pub(super) struct Machine {
    cell: CellId,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    chance: Chance,
    containers: BTreeMap<String, Container>,
    news: Vec<News>,
    /// Programs do not crash any more.
    calm: bool,
}

#[derive(Debug)]
struct Container {
    tag: Vec<u8>,
    /// None until it is run.
    program: Option<Program>,
}

/// What runs in a container: there is never more than one.
#[derive(Debug)]
struct Program {
    name: String,
    process: Process,
    exit: watch::Sender<Option<Exit>>,
    grace: Duration,
    stopping: bool,
}

impl Container {
    fn program(&self, name: &str) -> Option<&Program> {
        self.program.as_ref().filter(|program| program.name == name)
    }
}

/// What the simulator is to know.
#[derive(Debug)]
pub(super) enum News {
    Began(Process),
    Over(Process),
    /// It is going to end by then, unless it ends sooner.
    EndsIn {
        guid: String,
        wait: Duration,
        exit: Exit,
    },
}

impl Machine {
    pub(super) const fn new(cell: CellId, chance: Chance) -> Self {
        let inner = Inner { chance, containers: BTreeMap::new(), news: Vec::new(), calm: false };
        Self { cell, inner: Mutex::new(inner) }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn take_news(&self) -> Vec<News> {
        std::mem::take(&mut self.inner().news)
    }

    pub(super) fn calm_down(&self) {
        self.inner().calm = true;
    }

    /// A program ends by itself, or its time to stop is over.
    pub(super) fn end(&self, guid: &str, exit: Exit) {
        let mut inner = self.inner();
        let crash = exit.code.is_some_and(|code| code != 0);
        let Some(program) = inner.containers.get(guid).and_then(|it| it.program.as_ref()) else {
            return;
        };
        let serves = matches!(program.process.unit, Unit::Lrp(_));
        if program.exit.borrow().is_some() || (inner.calm && serves && crash) {
            return;
        }
        program.exit.send_replace(Some(exit));
        let process = program.process.clone();
        inner.news.push(News::Over(process));
    }

    /// The power fails. What had ended may be found again.
    pub(super) fn crash(&self, finds_ended: bool) {
        let mut inner = self.inner();
        for (guid, container) in std::mem::take(&mut inner.containers) {
            let Some(program) = &container.program else { continue };
            if program.exit.borrow().is_none() {
                inner.news.push(News::Over(program.process.clone()));
            } else if finds_ended {
                inner.containers.insert(guid, container);
            }
        }
    }

    fn create(&self, spec: Spec) -> Result<(), Error> {
        let mut inner = self.inner();
        if inner.containers.contains_key(&spec.guid) {
            let source = io::Error::from(io::ErrorKind::AlreadyExists);
            return Err(Error::Io { what: format!("`{}` is there already", spec.guid), source });
        }
        inner.containers.insert(spec.guid, Container { tag: spec.tag, program: None });
        Ok(())
    }

    fn begin(&self, guid: &str, asked: containers::Process) -> Result<(), Error> {
        let mut inner = self.inner();
        let container = inner.containers.get(guid).ok_or_else(|| unknown(guid))?;
        if container.program.is_some() {
            let source = io::Error::from(io::ErrorKind::AlreadyExists);
            return Err(Error::Io { what: format!("`{guid}` runs already"), source });
        }
        let process = process(&self.cell, guid, &container.tag, &asked);
        let told = asked.args.first().map_or(SERVE, String::as_str);
        let is_test = guid.starts_with(SELF_TEST);
        if told == CRASH && !inner.calm && inner.chance.permille(60) {
            return Err(Error::Unstartable("there is no such program".to_owned()));
        }
        if !is_test {
            if let Some((wait, code)) = fate(told, &mut inner) {
                let exit = Exit { code: Some(code), ..Exit::default() };
                inner.news.push(News::EndsIn { guid: guid.to_owned(), wait, exit });
            }
            inner.news.push(News::Began(process.clone()));
        }
        let exit = is_test.then(|| Exit { code: Some(0), ..Exit::default() });
        let (name, grace) = (asked.name, asked.stop_grace);
        let exit = watch::Sender::new(exit);
        let program = Program { name, process, exit, grace, stopping: false };
        let container = inner.containers.get_mut(guid).ok_or_else(|| unknown(guid))?;
        container.program = Some(program);
        Ok(())
    }

    fn stop(&self, guid: &str) -> Result<(), Error> {
        let mut inner = self.inner();
        let program = inner.containers.get_mut(guid).and_then(|it| it.program.as_mut());
        let program = program.ok_or_else(|| unknown(guid))?;
        if program.exit.borrow().is_some() || std::mem::replace(&mut program.stopping, true) {
            return Ok(());
        }
        let grace = program.grace;
        let stubborn = inner.chance.permille(100);
        let wait =
            if stubborn { grace } else { inner.chance.between(Duration::from_millis(1), grace) };
        let signal = if stubborn { 9 } else { 15 };
        let exit = Exit { signal: Some(signal), stopped: true, ..Exit::default() };
        inner.news.push(News::EndsIn { guid: guid.to_owned(), wait, exit });
        Ok(())
    }

    fn delete(&self, guid: &str) -> Result<(), Error> {
        let mut inner = self.inner();
        let container = inner.containers.remove(guid).ok_or_else(|| unknown(guid))?;
        if let Some(program) = container.program.filter(|it| it.exit.borrow().is_none()) {
            inner.news.push(News::Over(program.process));
        }
        Ok(())
    }

    fn draw(&self, least: Duration, most: Duration) -> Duration {
        self.inner().chance.between(least, most)
    }
}

/// When a program ends by itself, and with what.
fn fate(told: &str, inner: &mut Inner) -> Option<(Duration, i32)> {
    let ms = Duration::from_millis;
    match told {
        CRASH if !inner.calm => Some((inner.chance.between(ms(50), ms(8000)), 1)),
        WORK => {
            let code = i32::from(inner.chance.permille(200));
            Some((inner.chance.between(ms(100), ms(9000)), code))
        }
        SHORT => {
            Some((inner.chance.between(ms(1), ms(800)), i32::from(inner.chance.permille(100))))
        }
        _ => None,
    }
}

fn unknown(guid: &str) -> Error {
    Error::Unknown(guid.to_owned())
}

/// What a container is for, as it is told itself.
fn process(cell: &CellId, guid: &str, tag: &[u8], asked: &containers::Process) -> Process {
    let told = |name: &str| {
        let found = asked.env.iter().find(|(is, _)| is == name);
        found.map(|(_, value)| value.clone())
    };
    let unit = match (told("KAPELL_TASK_GUID"), told("KAPELL_PROCESS_GUID")) {
        (Some(task), _) => Unit::Task(TaskGuid::new(task)),
        (None, guid) => Unit::Lrp(LrpKey {
            process_guid: ProcessGuid::new(guid.unwrap_or_default()),
            index: told("KAPELL_INSTANCE_INDEX").and_then(|it| it.parse().ok()).unwrap_or(0),
        }),
    };
    let tag: serde_json::Value = serde_json::from_slice(tag).unwrap_or_default();
    let number = |name: &str| tag[name].as_u64().and_then(|it| u32::try_from(it).ok()).unwrap_or(0);
    Process {
        cell: cell.clone(),
        unit,
        container: InstanceGuid::new(guid),
        memory_mb: number("memory_mb"),
        disk_mb: number("disk_mb"),
    }
}

fn found_process(program: &Program) -> FoundProcess {
    FoundProcess { name: program.name.clone(), exit: program.exit.borrow().clone() }
}

/// What an agent has of its machine.
#[derive(Debug, Clone)]
pub(super) struct Driver(pub(super) Arc<Machine>);

impl Driver {
    async fn takes(&self, least_ms: u64, most_ms: u64) {
        let (least, most) = (Duration::from_millis(least_ms), Duration::from_millis(most_ms));
        let wait = self.0.draw(least, most);
        tokio::time::sleep(wait).await;
    }
}

#[async_trait]
impl Containers for Driver {
    async fn recover(&self) -> Result<Vec<Found>, Error> {
        self.takes(1, 100).await;
        let inner = self.0.inner();
        let found = inner.containers.iter().map(|(guid, container)| Found {
            guid: guid.clone(),
            tag: container.tag.clone(),
            processes: container.program.iter().map(found_process).collect(),
        });
        Ok(found.collect())
    }

    fn rootfs_schemes(&self) -> Vec<String> {
        Vec::new()
    }

    fn enforced(&self) -> Enforced {
        Enforced::default()
    }

    async fn create(&self, spec: Spec) -> Result<(), Error> {
        self.0.create(spec)
    }

    async fn run(&self, guid: &str, process: containers::Process) -> Result<(), Error> {
        if guid.starts_with(SELF_TEST) {
            return self.0.begin(guid, process);
        }
        self.takes(1, 400).await;
        self.0.begin(guid, process)?;
        self.takes(1, 400).await;
        Ok(())
    }

    async fn ended(&self, guid: &str, process: &str) -> Result<Exit, Error> {
        let exit = {
            let inner = self.0.inner();
            let program = inner.containers.get(guid).and_then(|it| it.program(process));
            program.map(|program| program.exit.subscribe())
        };
        let mut exit = exit.ok_or_else(|| unknown(guid))?;
        let exit = exit.wait_for(Option::is_some).await.map_err(|_| unknown(guid))?;
        exit.clone().ok_or_else(|| unknown(guid))
    }

    async fn stop(&self, guid: &str, _process: &str) -> Result<(), Error> {
        self.takes(1, 20).await;
        self.0.stop(guid)
    }

    async fn delete(&self, guid: &str) -> Result<(), Error> {
        if !guid.starts_with(SELF_TEST) {
            self.takes(1, 50).await;
        }
        self.0.delete(guid)
    }

    async fn read_own(&self, guid: &str, _file: &str, _limit: u64) -> Result<Vec<u8>, Error> {
        let inner = self.0.inner();
        inner.containers.get(guid).map(|_| RESULT.into()).ok_or_else(|| unknown(guid))
    }

    async fn put(&self, guid: &str, _from: &Path, _to: &str) -> Result<(), Error> {
        let inner = self.0.inner();
        inner.containers.get(guid).map(drop).ok_or_else(|| unknown(guid))
    }

    fn dir(&self, guid: &str) -> PathBuf {
        PathBuf::from("/machine").join(guid)
    }
}
