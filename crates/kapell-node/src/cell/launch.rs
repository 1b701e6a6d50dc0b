//! From work to what a driver runs.

use std::ops::Range;
use std::path::PathBuf;

use kapell_backend::containers::{Limits, Output, Port, Process, Spec, User};
use kapell_core::board::{CellId, PortMapping, Run, Variable};
use kapell_core::secret::{Secret, not_set};
use nix::unistd;

use super::LogOf as Key;
use super::settings::{CellSettings, OWN_USERS};
use super::tag::Tag;
use super::vault::Values;

pub(crate) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Makes ready what a driver needs to make a container.
pub(super) fn spec(tag: &Tag, sole: bool, settings: &CellSettings) -> Result<Spec, String> {
    let asked = tag.plain().and_then(|run| run.user.as_deref());
    let limit = |limit: u32| (limit > 0).then_some(limit);
    let port = |port: &PortMapping| Port { container: port.container_port, host: port.host_port };
    Ok(Spec {
        guid: tag.instance_guid.as_str().to_owned(),
        tag: tag.encode(),
        rootfs: tag.rootfs.clone(),
        user: user(asked, tag, settings)?,
        limits: Limits {
            memory_mb: limit(tag.memory_mb),
            cpu_millis: limit(tag.cpu_millis),
            pids: limit(tag.max_pids),
        },
        ports: tag.ports.iter().map(port).collect(),
        logs: tag.logs.clone(),
        log_bytes: settings.log_bytes,
        log_rate: tag.log_rate,
        sole,
    })
}

/// What a container is like, as its driver tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Inside {
    pub(super) dir: PathBuf,
    pub(super) own_network: bool,
}

/// Makes ready what a driver needs to run a program in a container.
pub(super) fn process(
    (tag, cell_id): (&Tag, &CellId),
    (name, output): (&str, Output),
    run: &Run,
    inside: &Inside,
    (settings, values): (&CellSettings, &Values),
) -> Result<Process, String> {
    let user = match &run.user {
        Some(asked) if has_other_user(tag, run) => Some(user(Some(asked), tag, settings)?),
        Some(_) | None => None,
    };
    let dir = run.dir.as_ref().map(PathBuf::from);
    let home = dir.as_deref().unwrap_or(&inside.dir);
    let mut env = Environment::default();
    for Variable { name, value, secret } in tag.env.iter().chain(&run.env) {
        match secret {
            None => env.set(name.as_str(), value.clone().unwrap_or_default()),
            Some(secret) => {
                let value = values.get(secret).ok_or_else(|| not_set(&tag.domain, secret))?;
                env.hide(name, value.clone());
            }
        }
    }
    env.set_default("PATH", PATH.to_owned());
    env.set_default("HOME", home.to_string_lossy().into_owned());
    about(tag, cell_id, inside.own_network, &mut env);
    Ok(Process {
        name: name.to_owned(),
        path: run.path.clone(),
        args: run.args.clone(),
        env: env.variables,
        secrets: env.secrets,
        dir,
        user,
        stop_grace: tag.stop_grace(),
        output,
    })
}

/// What a container is told of itself.
fn about(tag: &Tag, cell_id: &CellId, own_network: bool, env: &mut Environment) {
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
    let listens = |port: &PortMapping| {
        let port = if own_network { port.container_port } else { port.host_port };
        port.to_string()
    };
    if let Some(first) = tag.ports.first() {
        env.set("PORT", listens(first));
    }
    for port in &tag.ports {
        env.set(format!("PORT_{}", port.container_port), listens(port));
    }
}

/// Variables in order; whoever sets one last wins.
#[derive(Debug, Default)]
pub(crate) struct Environment {
    pub(crate) variables: Vec<(String, String)>,
    /// None of these is among the others.
    pub(crate) secrets: Vec<(String, Secret)>,
}

impl Environment {
    pub(crate) fn set(&mut self, name: impl Into<String>, value: impl Into<String>) {
        let (name, value) = (name.into(), value.into());
        self.secrets.retain(|(set, _)| *set != name);
        match self.variables.iter_mut().find(|(set, _)| *set == name) {
            Some(variable) => variable.1 = value,
            None => self.variables.push((name, value)),
        }
    }

    pub(crate) fn hide(&mut self, name: &str, value: Secret) {
        self.variables.retain(|(set, _)| set != name);
        self.secrets.retain(|(set, _)| set != name);
        self.secrets.push((name.to_owned(), value));
    }

    pub(crate) fn set_default(&mut self, name: &str, value: String) {
        let is_hidden = self.secrets.iter().any(|(set, _)| set == name);
        if !is_hidden && self.variables.iter().all(|(set, _)| set != name) {
            self.variables.push((name.to_owned(), value));
        }
    }
}

/// Whether a program is to run as somebody else than its container does.
pub(super) fn has_other_user(tag: &Tag, run: &Run) -> bool {
    let of_container = tag.plain().and_then(|run| run.user.as_ref());
    run.user.is_some() && run.user.as_ref() != of_container
}

/// Whom a container runs as: whom it asks for, or one of its own, or the agent's own user.
fn user(asked: Option<&str>, tag: &Tag, settings: &CellSettings) -> Result<User, String> {
    let Some(asked) = asked else {
        return Ok(tag.uid.map_or(User::Same, |uid| User::Id { uid, gid: uid, own: true }));
    };
    if tag.rootfs.is_some() {
        // This machine knows nothing of the users that a root brings, and none of them is one of this machine.
        return Ok(User::Named(asked.to_owned()));
    }
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

pub(crate) fn look_up(asked: &str) -> Result<(u32, u32), String> {
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
