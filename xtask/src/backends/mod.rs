//! `cargo xtask backends`: real servers on loopback ports that tests run against.

mod cache;
mod cassandra;
mod certificates;
mod dynamodb;
mod etcd;
mod guard;
mod kubernetes;
mod life;
mod postgres;
mod process;
mod registry;
mod session;
mod state;
mod table;

use crate::error::{Error, Result, failed};
use cache::Cache;
pub(crate) use guard::{GUARD, guard};
use life::Standing;
pub(crate) use session::Session;
use state::State;
use table::{SERVERS, Server};

pub(crate) fn run(words: &[&str]) -> Result<()> {
    run_in(&Cache::locate()?, words)
}

fn run_in(cache: &Cache, words: &[&str]) -> Result<()> {
    let [action @ ("up" | "down" | "status"), names @ ..] = words else {
        return Err(Error::Usage("backends: say up, down or status".to_owned()));
    };
    let servers = select(names)?;
    match *action {
        "up" => up(cache, &servers),
        "down" => down(cache, &servers),
        _ => status(cache, &servers),
    }
}

/// The servers of these names, in the order of the table; all if there is no name.
fn select(names: &[&str]) -> Result<Vec<&'static Server>> {
    if let Some(name) = names.iter().find(|name| !SERVERS.iter().any(|each| each.name == **name)) {
        let known: Vec<&str> = SERVERS.iter().map(|server| server.name).collect();
        return Err(failed(format!("unknown backend `{name}`; known: {}", known.join(", "))));
    }
    let is_meant = |server: &&Server| names.is_empty() || names.contains(&server.name);
    Ok(SERVERS.iter().filter(is_meant).collect())
}

#[cfg(test)]
pub(crate) fn is_known(names: &[&str]) -> bool {
    select(names).is_ok()
}

/// Tries every server before it fails, so that one that cannot be had costs only itself.
fn up(cache: &Cache, servers: &[&Server]) -> Result<()> {
    let _lock = cache.lock()?;
    let mut state = State::load(cache)?;
    let mut problems = Vec::new();
    for server in servers {
        match life::ensure(cache, &mut state, server, life::Term::UntilDown) {
            Ok((record, Standing::Old)) => println!("{record} already up"),
            Ok((record, Standing::New)) => println!("{record}"),
            Err(error) => problems.push(format!("{}: {error}", server.name)),
        }
    }
    if servers.iter().any(|server| server.authority.is_some()) {
        println!("ca {}", cache.authority().display());
    }
    if problems.is_empty() { Ok(()) } else { Err(failed(problems.join("\n"))) }
}

fn down(cache: &Cache, servers: &[&Server]) -> Result<()> {
    let _lock = cache.lock()?;
    let mut state = State::load(cache)?;
    for server in servers {
        match state.get(server.name) {
            Some(record) => {
                let pid = record.pid;
                life::stop(cache, &mut state, server)?;
                println!("{} down, was {pid}", server.name);
            }
            None => println!("{} down", server.name),
        }
    }
    Ok(())
}

/// Takes no lock: while someone else waits for a download, this still answers.
fn status(cache: &Cache, servers: &[&Server]) -> Result<()> {
    let state = State::load(cache)?;
    for server in servers {
        match state.get(server.name) {
            Some(record) if !process::is_running(record.pid, server.program, &record.dir) => {
                println!("{} down {} {} (ended)", server.name, record.endpoint, record.pid);
            }
            Some(record) if !record.ready || !server.recipe.answers(cache, &record.endpoint) => {
                let (endpoint, pid) = (&record.endpoint, record.pid);
                println!("{} down {endpoint} {pid} (does not answer)", server.name);
            }
            Some(record) => println!("{} up {} {}", server.name, record.endpoint, record.pid),
            None => println!("{} down", server.name),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn an_unknown_name_is_an_error_that_names_what_exists() {
        let scratch = Scratch::new("backends").unwrap();
        let cache = Cache::at(scratch.path());
        let Err(Error::Failed(text)) = run_in(&cache, &["up", "etcd", "oracle"]) else {
            panic!("accepted")
        };
        assert_eq!(
            text,
            "unknown backend `oracle`; known: etcd, etcd-tls, postgres, registry, kubernetes, cassandra, dynamodb"
        );
        assert!(matches!(run_in(&cache, &["sideways"]), Err(Error::Usage(_))));
    }

    #[test]
    fn what_was_never_started_is_down_and_may_be_stopped() {
        let scratch = Scratch::new("backends").unwrap();
        let cache = Cache::at(scratch.path().join("new"));
        assert!(run_in(&cache, &["status"]).is_ok());
        assert!(run_in(&cache, &["down", "postgres"]).is_ok());
    }

    #[test]
    fn no_name_means_all_in_the_order_of_the_table() {
        let names =
            |servers: Vec<&Server>| servers.iter().map(|each| each.name).collect::<Vec<_>>();
        assert_eq!(
            names(select(&[]).unwrap()),
            ["etcd", "etcd-tls", "postgres", "registry", "kubernetes", "cassandra", "dynamodb"]
        );
        assert_eq!(names(select(&["postgres", "etcd"]).unwrap()), ["etcd", "postgres"]);
    }
}
