//! From work to what a driver runs.

use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use kapell_api::v1::{LrpWork, TaskWork};
use kapell_backend::containers::{Spec, User};
use kapell_core::board::{Action, CellId, EnvVar};
use nix::unistd;

use super::LogOf as Key;
use super::settings::{CellSettings, OWN_USERS};
use super::tag::Tag;

const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What is to be run in a container that is reserved.
#[derive(Debug, Clone)]
pub(super) struct Launch {
    pub(super) action: Action,
    pub(super) env: Vec<EnvVar>,
    pub(super) stop_grace: Duration,
}

impl Launch {
    pub(super) fn of_lrp(work: LrpWork, settings: &CellSettings) -> Self {
        let grace = work.desired.stop_grace_ms.map(Duration::from_millis);
        Self {
            action: work.desired.action,
            env: work.desired.env,
            stop_grace: grace.unwrap_or(settings.stop_grace),
        }
    }

    pub(super) fn of_task(work: TaskWork, settings: &CellSettings) -> Self {
        let definition = work.definition;
        Self { action: definition.action, env: definition.env, stop_grace: settings.stop_grace }
    }

    /// Whether it names whom to run as, which is to be looked up.
    pub(super) fn asks_for_user(&self) -> bool {
        self.action.as_run().is_some_and(|run| run.user.is_some())
    }

    /// Makes ready what a driver needs. `own_dir` is where it runs if it asks for nothing else.
    pub(super) fn spec(
        self,
        tag: &Tag,
        cell_id: &CellId,
        own_dir: PathBuf,
        settings: &CellSettings,
    ) -> Result<Spec, String> {
        let run = self.action.into_run();
        let run = run.ok_or("this cell can only do `run` actions: use one")?;
        let user = user(run.user.as_deref(), tag.uid, settings)?;
        let home = tag.dir.clone().unwrap_or(own_dir);
        let mut env = Environment::default();
        for variable in self.env.into_iter().chain(run.env) {
            env.set(variable.name, variable.value);
        }
        env.set_default("PATH", PATH.to_owned());
        env.set_default("HOME", home.to_string_lossy().into_owned());
        about(tag, cell_id, &mut env);
        Ok(Spec {
            guid: tag.instance_guid.as_str().to_owned(),
            tag: tag.encode(),
            path: run.path,
            args: run.args,
            env: env.variables,
            dir: tag.dir.clone(),
            user,
            stop_grace: self.stop_grace,
            logs: tag.logs.clone(),
            log_bytes: settings.log_bytes,
        })
    }
}

/// What a container is told of itself.
fn about(tag: &Tag, cell_id: &CellId, env: &mut Environment) {
    let guid = tag.instance_guid.as_str();
    env.set("KAPELL_CELL_ID", cell_id.as_str());
    env.set("KAPELL_INSTANCE_GUID", guid);
    env.set("INSTANCE_GUID", guid);
    match &tag.key {
        Key::Lrp(key) => {
            env.set("KAPELL_PROCESS_GUID", key.process_guid.as_str());
            env.set("KAPELL_INSTANCE_INDEX", key.index.to_string());
            env.set("INSTANCE_INDEX", key.index.to_string());
        }
        Key::Task(guid) => env.set("KAPELL_TASK_GUID", guid.as_str()),
    }
    if let Some(first) = tag.ports.first() {
        env.set("PORT", first.host_port.to_string());
    }
    for port in &tag.ports {
        env.set(format!("PORT_{}", port.container_port), port.host_port.to_string());
    }
}

/// Variables in order; whoever sets one last wins.
#[derive(Debug, Default)]
struct Environment {
    variables: Vec<(String, String)>,
}

impl Environment {
    fn set(&mut self, name: impl Into<String>, value: impl Into<String>) {
        let (name, value) = (name.into(), value.into());
        match self.variables.iter_mut().find(|(set, _)| *set == name) {
            Some(variable) => variable.1 = value,
            None => self.variables.push((name, value)),
        }
    }

    fn set_default(&mut self, name: &str, value: String) {
        if self.variables.iter().all(|(set, _)| set != name) {
            self.variables.push((name.to_owned(), value));
        }
    }
}

/// Whom a container runs as: whom it asks for, or one of its own, or the agent's own user.
fn user(asked: Option<&str>, own: Option<u32>, settings: &CellSettings) -> Result<User, String> {
    let Some(asked) = asked else {
        return Ok(own.map_or(User::Same, |uid| User::Id { uid, gid: uid, own: true }));
    };
    let (uid, gid) = look_up(asked)?;
    let agent = crate::system::user();
    if uid == 0 && !settings.allow_root {
        return Err(format!("cannot run as `{asked}`: this cell runs nothing as root"));
    }
    // Also those of other cells of this machine.
    let given = |range: &Range<u32>| range.contains(&uid) || OWN_USERS.contains(&uid);
    if settings.users.as_ref().is_some_and(given) {
        return Err(format!("cannot run as `{asked}`: cells give this user to containers"));
    }
    if uid == agent {
        return Ok(User::Same);
    }
    if agent != 0 {
        return Err(format!("cannot run as `{asked}`: only an agent that is root can do so"));
    }
    Ok(User::Id { uid, gid, own: false })
}

/// The group of those without an account: one of the same number may be somebody's.
const NOBODY: u32 = 65_534;

fn look_up(asked: &str) -> Result<(u32, u32), String> {
    if let Ok(uid) = asked.parse::<u32>() {
        let known = unistd::User::from_uid(uid.into()).ok().flatten();
        return Ok((uid, known.map_or(NOBODY, |user| user.gid.as_raw())));
    }
    match unistd::User::from_name(asked) {
        Ok(Some(user)) => Ok((user.uid.as_raw(), user.gid.as_raw())),
        Ok(None) => Err(format!("there is no user `{asked}` on this machine")),
        Err(error) => Err(format!("cannot look up the user `{asked}`: {error}")),
    }
}
