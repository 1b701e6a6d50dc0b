//! Programs beside those of a container, started by `runc` in all that the container is made of.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use kapell_core::exec::Size;
use serde_json::{Value, json};

use super::kept::{Kept, Order, order_of};
use super::place::DIR;
use super::reason;
use crate::containers::{Error, Exec};
use crate::process::exec::Launcher;
use crate::process::place::{Launch, Place};
use crate::process::spec_file::{PROCESS_MARK, check_variable};
use crate::process::trouble;

/// Starts programs in one container.
#[derive(Debug)]
pub(super) struct Beside {
    pub(super) kept: Arc<Kept>,
    pub(super) place: Arc<Place>,
}

impl Launcher for Beside {
    fn dir(&self) -> &Path {
        self.kept.place.dir()
    }

    fn launch(&self, like: &str, name: &str, exec: &Exec) -> Result<Launch, Error> {
        let process = beside(self.kept.process(like)?, exec)?;
        // The name of a socket may not be long: seen from where launchers run, which is beside us.
        let console = exec.terminal.map(|_| format!("../{DIR}/{name}.tty"));
        let order = Order::Open(process);
        self.kept.launch_beside(name, order, console.as_deref(), self.place.groups())
    }

    fn why_not(&self, name: &str, error: Error) -> Error {
        match self.kept.why_not(name, false, error) {
            Error::Unstartable(text) if reason::is_absence(&text) => Error::Absent(text),
            error @ (Error::Absent(_)
            | Error::Unstartable(_)
            | Error::Io { .. }
            | Error::Unknown(_)) => error,
        }
    }
}

impl Kept {
    /// What `runc` was told of a process that runs.
    fn process(&self, name: &str) -> Result<Value, Error> {
        let own = self.place.file(&order_of(name));
        let (file, is_first) =
            if own.exists() { (own, false) } else { (self.place.file("config.json"), true) };
        let damaged = |error: serde_json::Error| trouble::io("read", &file)(error.into());
        let text = fs::read(&file).map_err(trouble::io("read", &file))?;
        let mut value: Value = serde_json::from_slice(&text).map_err(damaged)?;
        Ok(if is_first { value["process"].take() } else { value })
    }
}

/// As that process: its user, its directory, all that it may do, and its environment with `env` besides.
fn beside(mut process: Value, exec: &Exec) -> Result<Value, Error> {
    let mut own = Vec::new();
    for (name, value) in &exec.env {
        check_variable(name)?;
        own.push((name.as_str(), value.as_str()));
    }
    own.push((PROCESS_MARK, "exec"));
    let is_other = |variable: &Value| {
        let name = variable.as_str().and_then(|text| text.split_once('=')).map(|(name, _)| name);
        !own.iter().any(|(own, _)| Some(*own) == name)
    };
    let inherited = process["env"].as_array().into_iter().flatten().filter(|it| is_other(it));
    let added = own.iter().map(|(name, value)| format!("{name}={value}").into());
    let env: Vec<Value> = inherited.cloned().chain(added).collect();
    let args: Vec<&String> = [&exec.path].into_iter().chain(&exec.args).collect();
    if args.iter().any(|arg| arg.contains('\0')) || env.iter().any(holds_nul) {
        let text = "an argument or a variable of the program holds a NUL byte".to_owned();
        return Err(Error::Unstartable(text));
    }
    process["args"] = json!(args);
    process["env"] = env.into();
    if let Some(Size { rows, cols }) = exec.terminal {
        process["terminal"] = true.into();
        process["consoleSize"] = json!({ "height": rows, "width": cols });
    }
    Ok(process)
}

fn holds_nul(variable: &Value) -> bool {
    variable.as_str().is_some_and(|text| text.contains('\0'))
}
