use std::ffi::OsString;
use std::process::Command;

use super::cache::Cache;
use super::guard::Guard;
use super::life::{self, Standing, Term};
use super::select;
use super::state::{Record, State};
use super::table::{SERVERS, Server};
use crate::error::Result;

/// The servers of one test run. Those that it started end with it.
#[derive(Debug, Default)]
pub(crate) struct Session {
    up: Vec<(&'static Server, Vec<(&'static str, OsString)>)>,
    /// Backends that could not be had, and why.
    pub(crate) missing: Vec<(&'static str, String)>,
    guard: Option<Guard>,
}

impl Session {
    /// Brings up what is not. A server that cannot be had is no error: tests skip without it.
    pub(crate) fn begin(names: &[&str]) -> Result<Self> {
        let servers = select(names)?;
        let mut session = Self::default();
        if let Err(error) = session.fill(&servers) {
            let reason = error.to_string();
            // It fails before the first server or not at all.
            session.missing = servers.iter().map(|each| (each.name, reason.clone())).collect();
        }
        Ok(session)
    }

    fn fill(&mut self, servers: &[&'static Server]) -> Result<()> {
        let cache = Cache::locate()?;
        // Before anything is used: from here on no other run's end takes it from us.
        self.guard = Some(Guard::start()?);
        let _lock = cache.lock()?;
        let mut state = State::load(&cache)?;
        for server in servers {
            match life::ensure(&cache, &mut state, server, Term::UntilUnused) {
                Ok((record, standing)) => {
                    let note = if standing == Standing::Old { " already up" } else { "" };
                    println!("{record}{note}");
                    self.up.push((server, environment(&cache, server, &record)));
                }
                Err(error) => self.missing.push((server.name, error.to_string())),
            }
        }
        Ok(())
    }

    /// Ends what only this run uses, as dropping it does; an error if something is left of it.
    pub(crate) fn end(self) -> Result<()> {
        self.guard.map_or(Ok(()), Guard::finish)
    }

    /// Tells a command of these backends in its environment, and of none that comes from elsewhere.
    pub(crate) fn equip(&self, command: &mut Command, names: &[&str]) {
        for variable in variables() {
            command.env_remove(variable);
        }
        let wanted = self.up.iter().filter(|(server, _)| names.contains(&server.name));
        command.envs(wanted.flat_map(|(_, variables)| variables.clone()));
    }
}

fn environment(cache: &Cache, server: &Server, record: &Record) -> Vec<(&'static str, OsString)> {
    let mut variables = vec![(server.variable, record.endpoint.clone().into())];
    variables.extend(server.authority.map(|name| (name, cache.authority().into_os_string())));
    let programs =
        server.programs.and_then(|name| Some((name, server.recipe.programs(cache).ok()?)));
    variables.extend(programs.map(|(name, path)| (name, path.into_os_string())));
    variables
}

/// Every variable that a session may set.
fn variables() -> impl Iterator<Item = &'static str> {
    let all = |server: &'static Server| [Some(server.variable), server.authority, server.programs];
    SERVERS.iter().flat_map(all).flatten()
}
