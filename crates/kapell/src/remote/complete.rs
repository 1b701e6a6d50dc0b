//! Completion in shells: commands and options, and ids as the host knows them.

use std::ffi::OsStr;
use std::time::Duration;

use clap::CommandFactory as _;
use clap_complete::engine::CompletionCandidate;
use clap_complete::env::{CompleteEnv, Shells};
use kapell_api::client::{ActualFilter, Client, Error, Options, RunFilter};

use super::FAILED;
use super::args::{Reach, Shell};
use super::reach::Resolved;
use crate::cli::Cli;
use crate::config::Config;
use crate::{print, say};

/// Set by the shell when it asks us what could come next.
const VARIABLE: &str = "KAPELL_COMPLETE";
/// A person waits with a finger on the key.
const LIMIT: Duration = Duration::from_millis(400);

/// What ids are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Lrp,
    Task,
    Cell,
    Domain,
    Job,
    Run,
    /// Instances and tasks that write.
    Logs,
    /// Processes, instances, tasks and cells, each with its kind.
    Explain,
    Any,
}

/// Answers a shell that asks what could come next. True if one did.
pub(crate) fn complete() -> bool {
    let here = std::env::current_dir().ok();
    CompleteEnv::with_factory(Cli::command)
        .var(VARIABLE)
        .bin("kapell")
        .try_complete(std::env::args_os(), here.as_deref())
        .unwrap_or(true)
}

/// Prints what makes a shell ask us.
pub(crate) fn completions(shell: Shell) -> u8 {
    let shells = Shells::builtins();
    let mut script = Vec::new();
    let written = shells.completer(shell.name()).map(|completer| {
        completer.write_registration(VARIABLE, "kapell", "kapell", "kapell", &mut script)
    });
    if !matches!(written, Some(Ok(()))) {
        say(&format!("error: there is no completion for {}\n", shell.name()));
        return FAILED;
    }
    print(&String::from_utf8_lossy(&script));
    0
}

/// Finds ids that begin as given. Where nobody answers, there are none.
pub(crate) fn ids(kind: Kind) -> impl Fn(&OsStr) -> Vec<CompletionCandidate> {
    move |current| {
        let current = current.to_string_lossy();
        let all = find(kind).unwrap_or_default();
        all.into_iter()
            .filter(|id| id.starts_with(&*current))
            .map(CompletionCandidate::new)
            .collect()
    }
}

fn find(kind: Kind) -> Option<Vec<String>> {
    let config = Config::load(None, None, |name| std::env::var_os(name)).ok()?;
    let resolved =
        Resolved::new(&Reach::default(), &config.state_dir, |name| std::env::var_os(name)).ok()?;
    let options =
        Options { connect: LIMIT, answer: LIMIT, patience: Duration::ZERO, ..Options::default() };
    let client = resolved.client(&options).ok()?;
    crate::store::block_on(async { Ok(ask(kind, &client).await?) }).ok()
}

async fn ask(kind: Kind, client: &Client) -> Result<Vec<String>, Error> {
    Ok(match kind {
        Kind::Lrp => lrps(client).await?,
        Kind::Task => tasks(client).await?,
        Kind::Cell => cells(client).await?,
        Kind::Domain => domains(client).await?,
        Kind::Job => jobs(client).await?,
        Kind::Run => runs(client).await?,
        Kind::Logs => {
            let all = [lrps(client).await?, instances(client).await?];
            let tasks = under("task", tasks(client).await?);
            all.concat().into_iter().chain(tasks).chain(under("run", runs(client).await?)).collect()
        }
        Kind::Explain => under("lrp", [lrps(client).await?, instances(client).await?].concat())
            .chain(under("task", tasks(client).await?))
            .chain(under("cell", cells(client).await?))
            .chain(under("job", jobs(client).await?))
            .chain(under("run", runs(client).await?))
            .collect(),
        Kind::Any => under("lrp", lrps(client).await?)
            .chain(under("task", tasks(client).await?))
            .chain(under("domain", domains(client).await?))
            .chain(under("cell", cells(client).await?))
            .chain(under("run", runs(client).await?))
            .collect(),
    })
}

fn under(kind: &'static str, ids: Vec<String>) -> impl Iterator<Item = String> {
    ids.into_iter().map(move |id| format!("{kind}/{id}"))
}

async fn lrps(client: &Client) -> Result<Vec<String>, Error> {
    let items = client.desired_lrps().await?.items;
    Ok(items.into_iter().map(|it| it.process_guid.to_string()).collect())
}

async fn instances(client: &Client) -> Result<Vec<String>, Error> {
    let items = client.actual_lrps(ActualFilter::default()).await?.items;
    Ok(items.into_iter().map(|it| it.key().to_string()).collect())
}

async fn tasks(client: &Client) -> Result<Vec<String>, Error> {
    Ok(client.tasks().await?.items.iter().map(|it| it.guid().to_string()).collect())
}

async fn cells(client: &Client) -> Result<Vec<String>, Error> {
    let items = client.cells().await?.items;
    Ok(items.into_iter().map(|it| it.presence.cell_id.to_string()).collect())
}

async fn domains(client: &Client) -> Result<Vec<String>, Error> {
    Ok(client.domains().await?.items.into_iter().map(|it| it.domain).collect())
}

async fn jobs(client: &Client) -> Result<Vec<String>, Error> {
    let items = client.jobs(None, None).await?.items;
    Ok(items.into_iter().map(|it| it.job.job_id.to_string()).collect())
}

async fn runs(client: &Client) -> Result<Vec<String>, Error> {
    let items = client.runs(RunFilter::default()).await?.items;
    Ok(items.into_iter().map(|it| it.run.run_id.to_string()).collect())
}
