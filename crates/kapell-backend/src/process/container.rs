//! One container that this agent knows.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::about_file::About;
use super::exec::Running;
use super::home::Home;
use super::program::Program;
use super::shim;
use crate::containers::{Error, Found, FoundProcess};

#[derive(Debug)]
pub(crate) struct Container {
    pub(crate) guid: String,
    pub(crate) home: Home,
    pub(crate) about: About,
    inside: Mutex<Inside>,
}

/// What is in it. Whoever starts or ends something in it holds it meanwhile.
#[derive(Debug, Default)]
pub(crate) struct Inside {
    pub(crate) programs: BTreeMap<String, Arc<Program>>,
    /// What runs beside them, by a number each.
    pub(crate) execs: BTreeMap<u64, Running>,
    /// This agent has seen to its control groups.
    pub(crate) has_groups: bool,
    /// It is being deleted: nothing is started any more.
    pub(crate) closed: bool,
}

impl Container {
    pub(crate) fn new(guid: String, home: Home, about: About) -> Self {
        Self { guid, home, about, inside: Mutex::default() }
    }

    pub(crate) fn with_groups(self) -> Self {
        self.inside().has_groups = true;
        self
    }

    pub(crate) fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, program: Program) -> Arc<Program> {
        let program = Arc::new(program);
        self.inside().programs.insert(program.name.clone(), Arc::clone(&program));
        program
    }

    pub(crate) fn find(&self, process: &str) -> Result<Arc<Program>, Error> {
        let found = self.inside().programs.get(process).cloned();
        found.ok_or_else(|| Error::Unknown(format!("{}/{process}", self.guid)))
    }

    /// Whatever runs; nothing more is started.
    pub(crate) fn close(&self) -> Vec<Arc<Program>> {
        let mut inside = self.inside();
        inside.closed = true;
        inside.programs.values().cloned().collect()
    }

    /// What runs beside them, told to end.
    pub(crate) fn end_execs(&self) -> Vec<Running> {
        let execs = std::mem::take(&mut self.inside().execs);
        execs.into_values().inspect(Running::end).collect()
    }

    pub(crate) fn found(&self) -> Found {
        let process = |program: &Arc<Program>| FoundProcess {
            name: program.name.clone(),
            exit: program.exit(),
        };
        let processes = self.inside().programs.values().map(process).collect();
        Found { guid: self.guid.clone(), tag: self.about.tag.clone(), processes }
    }

    /// Ends what its shims have not ended, now that they are gone. Blocks.
    pub(crate) fn end_rest(&self, shim: &Path) -> Result<(), Error> {
        match self.about.user {
            // The shim of a sole process has done it.
            Some((uid, _)) if self.about.own_user && !self.about.sole => shim::end_user(shim, uid),
            Some(_) | None => Ok(()),
        }
    }
}
