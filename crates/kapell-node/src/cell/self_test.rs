//! Whether this cell can still make containers.

use std::path::PathBuf;
use std::sync::Arc;

use kapell_backend::containers::{
    Containers, Error, Limits, Output, Port, Process, Spec, Trial, User,
};
use kapell_core::causes::chain;
use kapell_core::seams::Moment;

use super::Shared;
use super::actor::Actor;
use super::job::Done;
use super::launch::PATH;
use super::outcome;
use super::rep::Rep;
use super::settings::CellSettings;

/// How the containers of a self-test are named: no instance is.
const PREFIX: &str = "self-test-";

/// Whether a container is one of a self-test.
pub(super) fn is_one(guid: &str) -> bool {
    guid.starts_with(PREFIX)
}

/// When a cell looks at itself next, and what came of it so far.
#[derive(Debug)]
pub(super) struct SelfTest {
    /// None while it is under way.
    due: Option<Moment>,
    failures: u32,
    count: u64,
}

impl SelfTest {
    pub(super) const fn new(now: Moment) -> Self {
        Self { due: Some(now), failures: 0, count: 0 }
    }

    pub(super) const fn due(&self) -> Option<Moment> {
        self.due
    }

    /// Says whether the cell may take work.
    fn came_to(
        &mut self,
        outcome: &Result<(), String>,
        now: Moment,
        settings: &CellSettings,
    ) -> bool {
        match outcome {
            Ok(()) => {
                self.failures = 0;
                self.due = Some(now.after(settings.self_test_every));
            }
            Err(reason) => {
                self.failures = self.failures.saturating_add(1);
                tracing::warn!(reason, in_a_row = self.failures, "the self-test failed");
                self.due = Some(now.after(settings.self_test_retry));
            }
        }
        self.failures < settings.self_test_failures.max(1)
    }
}

impl Actor {
    pub(super) fn test_if_due(&mut self, rep: &mut Rep, now: Moment) {
        if rep.end.is_some() || self.self_test.due.take_if(|due| *due <= now).is_none() {
            return;
        }
        let port = rep.executor.lend_port();
        let shared = Arc::clone(&self.shared);
        let mut tests = Vec::new();
        for trial in shared.containers.trials() {
            self.self_test.count += 1;
            // Of those that come after a restart, one may be left of before.
            let guid = format!("{PREFIX}{}-{}", shared.clock.wall().0, self.self_test.count);
            tests.push((guid, trial));
        }
        self.jobs.spawn(async move {
            let mut outcome = Ok(());
            for (guid, trial) in tests {
                let kind = trial.rootfs.as_ref().map_or("", |_| "a container with its own root: ");
                let went = go_through(&shared, &guid, port, trial).await;
                outcome = outcome.and(went.map_err(|reason| format!("{kind}{reason}")));
            }
            Done::SelfTested(port, outcome)
        });
    }

    pub(super) fn self_tested(
        &mut self,
        rep: &mut Rep,
        port: Option<u16>,
        outcome: &Result<(), String>,
    ) {
        rep.executor.take_back_port(port);
        let now = self.shared.clock.now();
        let well = self.self_test.came_to(outcome, now, &self.shared.settings);
        if well == rep.unhealthy {
            tracing::warn!(well, "whether this cell takes work has changed by its self-test");
        }
        rep.unhealthy = !well;
    }
}

async fn go_through(
    shared: &Shared,
    guid: &str,
    port: Option<u16>,
    trial: Trial,
) -> Result<(), String> {
    let limit = shared.settings.self_test_limit;
    let made = tokio::time::timeout(limit, make_one(shared, guid, port, trial)).await;
    let made = made.unwrap_or_else(|_| Err(format!("it took longer than {limit:?}")));
    let deleted = tokio::time::timeout(limit, delete(&*shared.containers, guid)).await;
    let deleted = deleted.unwrap_or_else(|_| Err("it cannot be deleted".to_owned()));
    made.and(deleted)
}

fn spec(guid: &str, port: Option<u16>, logs: PathBuf, trial: &Trial) -> Spec {
    Spec {
        guid: guid.to_owned(),
        tag: Vec::new(),
        rootfs: trial.rootfs.clone(),
        user: User::Same,
        limits: Limits::default(),
        ports: port.map(|port| Port { container: port, host: port }).into_iter().collect(),
        logs,
        log_bytes: 0,
        log_rate: None,
        sole: trial.sole,
    }
}

async fn make_one(
    shared: &Shared,
    guid: &str,
    port: Option<u16>,
    trial: Trial,
) -> Result<(), String> {
    let containers = &shared.containers;
    let failed = |error: Error| chain(&error);
    let spec = spec(guid, port, shared.logs.of_self_test(), &trial);
    containers.create(spec).await.map_err(failed)?;
    let process = Process {
        name: "0".to_owned(),
        path: trial.path,
        args: trial.args,
        env: vec![("PATH".to_owned(), PATH.to_owned())],
        secrets: Vec::new(),
        dir: None,
        user: None,
        stop_grace: shared.settings.stop_grace,
        output: Output::Dropped,
    };
    containers.run(guid, process).await.map_err(failed)?;
    let exit = containers.ended(guid, "0").await.map_err(failed)?;
    outcome::of_exit(&exit).failure.map_or(Ok(()), Err)
}

async fn delete(containers: &dyn Containers, guid: &str) -> Result<(), String> {
    match containers.delete(guid).await {
        // It was not made, and that was told.
        Ok(()) | Err(Error::Unknown(_)) => Ok(()),
        Err(error) => Err(chain(&error)),
    }
}
