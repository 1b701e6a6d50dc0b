//! From the work of a run to the process that does it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use kapell_backend::containers::{Limits, Output, Process, Spec, User};
use kapell_core::board::{SecretName, Variable};
use kapell_core::expand::{self, Values};
use kapell_core::job::{Command, Length, Payload};
use kapell_core::run::task_guid;
use kapell_core::secret::not_set;
use tokio::task::spawn_blocking;

use super::mark::{Kind, Mark};
use crate::cell::launch::{Environment, PATH, look_up};
use crate::scheduler::backend::{Attempt, Secrets, Work};
use crate::scheduler::logs::RunLogs;
use crate::scheduler::workflow;

/// The only process of a container.
pub(super) const MAIN: &str = "main";
const GRACE: Duration = Duration::from_secs(10);

/// A container and what is to run in it.
#[derive(Debug)]
pub(super) struct Order {
    pub(super) spec: Spec,
    pub(super) process: Process,
    pub(super) kind: Kind,
    /// The runner for many can do it: no other user, and nothing to hide from its files.
    pub(super) by_runner: bool,
}

/// The name of the container of an attempt.
pub(super) fn guid(attempt: &Attempt) -> String {
    task_guid(&attempt.run_id, attempt.number).as_str().to_owned()
}

/// Makes ready what the driver needs. `dir` is where the program runs unless it says otherwise.
pub(super) async fn of(
    work: &Work,
    dir: PathBuf,
    (logs, log_bytes): (&RunLogs, u64),
    program: &str,
    secrets: &dyn Secrets,
) -> Result<Order, String> {
    let payload = work.definition.payload();
    let (kind, user) = match payload {
        Some(Payload::Command(command)) => (Kind::Command, command.user.as_deref()),
        Some(Payload::Workflow(_)) => (Kind::Workflow, None),
        Some(Payload::Task(_)) => return Err("a task runs on cells, not on a host".to_owned()),
        Some(Payload::Kubernetes(_)) => {
            return Err("it runs on a Kubernetes cluster, not on a host".to_owned());
        }
        None => return Err("the job does not say what to run".to_owned()),
    };
    let mut env = Environment::default();
    if let Some(Payload::Command(command)) = payload {
        variables(work, command, secrets, &mut env).await?;
    }
    for (name, value) in &work.parameters {
        env.set(name.as_str(), value.as_str());
    }
    env.set_default("PATH", PATH.to_owned());
    let user = self::user(user)?;
    let by_runner = kind == Kind::Command && user == User::Same && env.secrets.is_empty();
    if !by_runner {
        env.set_default("HOME", dir.to_string_lossy().into_owned());
    }
    about(work, &mut env);
    let process = Process {
        name: MAIN.to_owned(),
        path: String::new(),
        args: Vec::new(),
        env: env.variables,
        secrets: env.secrets,
        dir: None,
        user: None,
        stop_grace: GRACE,
        output: Output::Kept,
    };
    let process = match payload {
        Some(Payload::Command(command)) => of_command(command, &work.parameters, process)?,
        Some(Payload::Workflow(_)) => {
            let (work, logs, program) = (work.clone(), logs.clone(), program.to_owned());
            let written =
                spawn_blocking(move || workflow::process(&work, &logs, &program, process));
            written.await.map_err(|error| error.to_string())??
        }
        Some(Payload::Task(_) | Payload::Kubernetes(_)) | None => process,
    };
    let spec = Spec {
        guid: guid(&work.attempt),
        tag: Mark::of(&work.attempt, kind).encode()?,
        rootfs: None,
        user,
        limits: Limits::default(),
        ports: Vec::new(),
        logs: logs.output_of(&work.attempt),
        log_bytes,
        log_rate: None,
        sole: true,
    };
    Ok(Order { spec, process, kind, by_runner })
}

fn of_command(
    command: &Command,
    parameters: &BTreeMap<String, String>,
    process: Process,
) -> Result<Process, String> {
    let (path, args) = match &command.args {
        None => ("/bin/sh".to_owned(), vec!["-c".to_owned(), command.command.clone()]),
        Some(args) => {
            let values = Parameters(parameters);
            let given = |arg: &String| {
                let value = expand::substitute(arg, &values);
                value.map(Cow::into_owned).map_err(|error| error.to_string())
            };
            (command.command.clone(), args.iter().map(given).collect::<Result<_, _>>()?)
        }
    };
    let dir = command.dir.as_ref().map(PathBuf::from);
    let stop_grace = command.stop_grace.map_or(GRACE, Length::get);
    Ok(Process { path, args, dir, stop_grace, ..process })
}

/// What arguments may refer to.
struct Parameters<'a>(&'a BTreeMap<String, String>);

impl Values for Parameters<'_> {
    fn position(&self, _number: usize) -> Option<&str> {
        None
    }

    fn variable(&self, name: &str) -> Option<Cow<'_, str>> {
        self.0.get(name).map(|value| Cow::Borrowed(value.as_str()))
    }

    fn document(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
}

async fn variables(
    work: &Work,
    command: &Command,
    secrets: &dyn Secrets,
    env: &mut Environment,
) -> Result<(), String> {
    let names: Vec<SecretName> = command.env.iter().filter_map(|it| it.secret.clone()).collect();
    let domain = &work.definition.domain;
    let values =
        if names.is_empty() { BTreeMap::new() } else { secrets.open(domain, &names).await? };
    for Variable { name, value, secret } in &command.env {
        match secret {
            None => env.set(name.as_str(), value.clone().unwrap_or_default()),
            Some(secret) => {
                let value = values.get(secret).ok_or_else(|| not_set(domain, secret))?;
                env.hide(name, value.clone());
            }
        }
    }
    Ok(())
}

/// What work is told of itself.
fn about(work: &Work, env: &mut Environment) {
    let Attempt { run_id, number } = &work.attempt;
    env.set("KAPELL_JOB_ID", run_id.job());
    env.set("KAPELL_RUN_ID", run_id.as_str());
    env.set("KAPELL_ATTEMPT", number.to_string());
    let scheduled = jiff::Timestamp::from_millisecond(work.scheduled_at.0).unwrap_or_default();
    env.set("KAPELL_SCHEDULED_AT", scheduled.to_string());
}

fn user(asked: Option<&str>) -> Result<User, String> {
    let Some(asked) = asked else { return Ok(User::Same) };
    let (uid, gid) = look_up(asked)?;
    if uid == crate::system::user() {
        return Ok(User::Same);
    }
    if crate::system::user() != 0 {
        return Err(format!("cannot run as `{asked}`: only a host that is root can do so"));
    }
    Ok(User::Id { uid, gid, own: false })
}
