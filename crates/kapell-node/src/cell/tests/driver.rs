//! Containers that exist only in memory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use async_trait::async_trait;
use kapell_backend::containers::{
    Containers, Enforced, Error, Exit, Found, FoundProcess, Output, Process, Spec,
};
use tokio::sync::{Semaphore, watch};

use crate::cell::self_test;
use crate::cell::tag::Tag;

/// What goes wrong.
#[derive(Debug, Default)]
pub(super) struct Faults {
    /// Said instead of making a container.
    pub(super) create: Option<String>,
    /// Said instead of running.
    pub(super) run: Option<String>,
    /// Said instead of how it ended.
    pub(super) ended: Option<String>,
    /// Stops are taken and not heeded.
    pub(super) deaf: bool,
    /// So many stops fail.
    pub(super) stop: u32,
    /// So many deletes fail.
    pub(super) delete: u32,
    /// Containers whose only program has this path wait at the gate before they are made.
    pub(super) gated: Option<String>,
    /// Programs of this path wait at the gate before they run.
    pub(super) gated_runs: Option<String>,
    /// Self-tests cannot make a container.
    pub(super) self_test: bool,
    /// It cannot tidy up.
    pub(super) tidy: bool,
}

#[derive(Debug)]
pub(super) struct FakeContainers {
    dir: PathBuf,
    there: Mutex<BTreeMap<String, Fake>>,
    /// All that was ever made, in order.
    created: Mutex<Vec<Spec>>,
    /// All that was ever run, in order.
    ran: Mutex<Vec<(String, Process)>>,
    pub(super) faults: Mutex<Faults>,
    /// Whether containers with a root have a network of their own.
    pub(super) own_network: Mutex<bool>,
    /// How often it was told to tidy up.
    pub(super) tidied: Mutex<u32>,
    pub(super) gate: Semaphore,
    pub(super) most_at_once: Mutex<(usize, usize)>,
    /// How many self-tests there were.
    pub(super) self_tests: Mutex<u32>,
}

#[derive(Debug)]
struct Fake {
    tag: Vec<u8>,
    logs: PathBuf,
    processes: BTreeMap<String, watch::Sender<Option<Exit>>>,
}

impl FakeContainers {
    pub(super) fn new(dir: PathBuf) -> Self {
        Self {
            dir,
            there: Mutex::default(),
            created: Mutex::default(),
            ran: Mutex::default(),
            faults: Mutex::default(),
            own_network: Mutex::default(),
            tidied: Mutex::default(),
            gate: Semaphore::new(0),
            most_at_once: Mutex::default(),
            self_tests: Mutex::default(),
        }
    }

    fn there(&self) -> MutexGuard<'_, BTreeMap<String, Fake>> {
        self.there.lock().unwrap()
    }

    pub(super) fn faults(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap()
    }

    pub(super) fn created(&self) -> Vec<Spec> {
        self.created.lock().unwrap().clone()
    }

    /// What was run for its own sake, monitors left out.
    pub(super) fn ran(&self) -> Vec<Process> {
        let ran = self.ran.lock().unwrap();
        let kept = ran.iter().filter(|(_, process)| process.output == Output::Kept);
        kept.map(|(_, process)| process.clone()).collect()
    }

    /// All that was run, with monitors.
    pub(super) fn all_ran(&self) -> Vec<Process> {
        self.ran.lock().unwrap().iter().map(|(_, process)| process.clone()).collect()
    }

    /// The names of all that was run in a container, in order.
    pub(super) fn names(&self, guid: &str) -> Vec<String> {
        let ran = self.ran.lock().unwrap();
        ran.iter().filter(|(of, _)| of == guid).map(|(_, process)| process.name.clone()).collect()
    }

    pub(super) fn paths(&self) -> Vec<String> {
        self.ran().into_iter().map(|process| process.path).collect()
    }

    pub(super) fn guids(&self) -> Vec<String> {
        self.there().keys().filter(|guid| !self_test::is_one(guid)).cloned().collect()
    }

    /// Containers in which something was run.
    pub(super) fn running(&self) -> Vec<String> {
        let there = self.there();
        let begun =
            there.iter().filter(|(guid, it)| !self_test::is_one(guid) && !it.processes.is_empty());
        begun.map(|(guid, _)| guid.clone()).collect()
    }

    pub(super) fn fail_with(&self, trouble: &str) {
        self.faults().run = Some(trouble.to_owned());
    }

    /// Ends what runs in a container.
    pub(super) fn end(&self, guid: &str, exit: &Exit) {
        for process in self.there()[guid].processes.values() {
            finish(process, exit);
        }
    }

    pub(super) fn end_one(&self, guid: &str, name: &str, code: i32) {
        let exit = Exit { code: Some(code), ..Exit::default() };
        finish(&self.there()[guid].processes[name], &exit);
    }

    pub(super) fn exit_with(&self, guid: &str, code: i32) {
        self.end(guid, &Exit { code: Some(code), ..Exit::default() });
    }

    /// Ends the last monitor of a container that has one under way.
    pub(super) fn monitored(&self, guid: &str, code: i32) -> bool {
        let exit = Exit { code: Some(code), last_words: "not yet".into(), ..Exit::default() };
        let there = self.there();
        let monitors = there[guid].processes.iter().filter(|(name, _)| name.starts_with('m'));
        let mut ended = false;
        for (_, process) in monitors {
            ended |= finish(process, &exit);
        }
        ended
    }
}

fn finish(process: &watch::Sender<Option<Exit>>, exit: &Exit) -> bool {
    process.send_if_modified(|ended| {
        let runs = ended.is_none();
        if runs {
            *ended = Some(exit.clone());
        }
        runs
    })
}

fn unknown(guid: &str) -> Error {
    Error::Unknown(guid.to_owned())
}

fn broken(what: &str) -> Error {
    Error::Io { what: what.to_owned(), source: std::io::Error::other("it is busy") }
}

#[async_trait]
impl Containers for FakeContainers {
    fn rootfs_schemes(&self) -> Vec<String> {
        vec!["dir".to_owned(), "oci".to_owned()]
    }

    fn enforced(&self) -> Enforced {
        Enforced::default()
    }

    fn has_own_network(&self, rootfs: Option<&str>) -> bool {
        rootfs.is_some() && *self.own_network.lock().unwrap()
    }

    async fn tidy(&self) -> Result<u64, Error> {
        *self.tidied.lock().unwrap() += 1;
        if self.faults().tidy { Err(broken("cannot tidy up")) } else { Ok(7) }
    }

    async fn recover(&self) -> Result<Vec<Found>, Error> {
        let found = self.there();
        let process = |(name, exit): (&String, &watch::Sender<Option<Exit>>)| FoundProcess {
            name: name.clone(),
            exit: exit.borrow().clone(),
        };
        let found = found.iter().map(|(guid, fake)| Found {
            guid: guid.clone(),
            tag: fake.tag.clone(),
            processes: fake.processes.iter().map(process).collect(),
        });
        Ok(found.collect())
    }

    async fn create(&self, spec: Spec) -> Result<(), Error> {
        let is_test = self_test::is_one(&spec.guid);
        if is_test {
            *self.self_tests.lock().unwrap() += 1;
            if self.faults().self_test {
                return Err(broken("cannot make it"));
            }
        } else {
            let mut at_once = self.most_at_once.lock().unwrap();
            at_once.0 += 1;
            at_once.1 = at_once.1.max(at_once.0);
        }
        let tag = Tag::decode(&spec.tag).ok();
        let path = tag.as_ref().and_then(|tag| tag.plain()).map(|run| run.path.clone());
        let gated = path.is_some() && self.faults().gated == path;
        if gated {
            self.gate.acquire().await.unwrap().forget();
        }
        if !is_test {
            self.most_at_once.lock().unwrap().0 -= 1;
            if let Some(trouble) = self.faults().create.clone() {
                return Err(Error::Unstartable(trouble));
            }
            self.created.lock().unwrap().push(spec.clone());
            std::fs::create_dir_all(self.dir(&spec.guid)).unwrap();
        }
        let fake = Fake { tag: spec.tag, logs: spec.logs, processes: BTreeMap::new() };
        assert!(self.there().insert(spec.guid, fake).is_none(), "made twice");
        Ok(())
    }

    async fn run(&self, guid: &str, process: Process) -> Result<(), Error> {
        let gated = self.faults().gated_runs.as_ref() == Some(&process.path);
        if gated {
            self.gate.acquire().await.unwrap().forget();
        }
        let is_test = self_test::is_one(guid);
        if let Some(trouble) = self.faults().run.clone().filter(|_| !is_test) {
            return Err(Error::Unstartable(trouble));
        }
        let mut there = self.there();
        let fake = there.get_mut(guid).ok_or_else(|| unknown(guid))?;
        let exit = is_test.then(|| Exit { code: Some(0), ..Exit::default() });
        let before = fake.processes.insert(process.name.clone(), watch::Sender::new(exit));
        assert!(before.is_none(), "`{}` run twice", process.name);
        if !is_test {
            if process.output == Output::Kept {
                std::fs::create_dir_all(fake.logs.join(&process.name)).unwrap();
            }
            self.ran.lock().unwrap().push((guid.to_owned(), process));
        }
        Ok(())
    }

    async fn ended(&self, guid: &str, process: &str) -> Result<Exit, Error> {
        let found = self.there().get(guid).and_then(|it| {
            let process = it.processes.get(process);
            process.map(watch::Sender::subscribe)
        });
        let mut exit = found.ok_or_else(|| unknown(guid))?;
        let ended = exit.wait_for(Option::is_some).await.map_err(|_| unknown(guid))?.clone();
        if let Some(trouble) = self.faults().ended.clone() {
            return Err(broken(&trouble));
        }
        ended.ok_or_else(|| unknown(guid))
    }

    async fn stop(&self, guid: &str, process: &str) -> Result<(), Error> {
        {
            let mut faults = self.faults();
            if let Some(left) = faults.stop.checked_sub(1) {
                faults.stop = left;
                return Err(broken("cannot stop it"));
            }
            if faults.deaf {
                return Ok(());
            }
        }
        let there = self.there();
        let found = there.get(guid).and_then(|it| it.processes.get(process));
        let exit = Exit { signal: Some(15), stopped: true, ..Exit::default() };
        finish(found.ok_or_else(|| unknown(guid))?, &exit);
        Ok(())
    }

    async fn delete(&self, guid: &str) -> Result<(), Error> {
        let left = self.faults().delete.checked_sub(1);
        if let Some(left) = left {
            self.faults().delete = left;
            return Err(broken("cannot delete it"));
        }
        self.there().remove(guid).map(drop).ok_or_else(|| unknown(guid))
    }

    async fn read_own(&self, guid: &str, file: &str, limit: u64) -> Result<Vec<u8>, Error> {
        if !self.there().contains_key(guid) {
            return Err(unknown(guid));
        }
        let failed = |source| Error::Io { what: format!("cannot read `{file}`"), source };
        kapell_backend::own_file::read(&self.dir(guid), file, None, limit).map_err(failed)
    }

    async fn put(&self, guid: &str, from: &Path, to: &str) -> Result<(), Error> {
        if !self.there().contains_key(guid) {
            return Err(unknown(guid));
        }
        std::fs::copy(from, self.dir(guid).join(to)).unwrap();
        Ok(())
    }

    fn dir(&self, guid: &str) -> PathBuf {
        self.dir.join(guid).join("work")
    }
}
