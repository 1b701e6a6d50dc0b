//! How many runs of `/bin/true` the backend for local processes takes from launch to the news of their end, beside what
//! bare `posix_spawn` reaches in the same run.
//!
//! `cargo run --release -p kapell-node --example local_bench [RUNS] [AT_ONCE]`

use std::collections::BTreeMap;
use std::io::{Write as _, stdout};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use kapell_core::board::{Domain, SecretName};
use kapell_core::job::JobDefinition;
use kapell_core::run::RunId;
use kapell_core::seams::Timestamp;
use kapell_core::secret::Secret;
use kapell_node::scheduler::backend::{Attempt, Backend as _, News, Secrets, What, Work};
use kapell_node::scheduler::local::{LocalBackend, Parts};
use kapell_node::system::{SystemClock, SystemIds};
use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, posix_spawn};
use tokio::sync::mpsc;

type Failure = Box<dyn std::error::Error>;

const ROUNDS: u32 = 5;

#[derive(Debug)]
struct NoSecrets;

#[async_trait]
impl Secrets for NoSecrets {
    async fn open(
        &self,
        _domain: &Domain,
        _names: &[SecretName],
    ) -> Result<BTreeMap<SecretName, Secret>, String> {
        Err("there are none here".to_owned())
    }
}

/// Each thread starts one after the other and waits for it.
fn bare(runs: u32, at_once: u32) -> Result<f64, Failure> {
    let begin = Instant::now();
    std::thread::scope(|scope| {
        let each = move || -> nix::Result<()> {
            let (actions, attributes) = (PosixSpawnFileActions::init()?, PosixSpawnAttr::init()?);
            for _ in 0..runs / at_once {
                let (path, environment) = (Path::new("/bin/true"), [c"PATH=/bin"]);
                let pid = posix_spawn(path, &actions, &attributes, &[c"true"], &environment)?;
                nix::sys::wait::waitpid(pid, None)?;
            }
            Ok(())
        };
        let threads: Vec<_> = (0..at_once).map(|_| scope.spawn(each)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap_or(Ok(())))
    })?;
    Ok(f64::from(runs) / begin.elapsed().as_secs_f64())
}

fn work(round: u32, number: u32, definition: &Arc<JobDefinition>) -> Result<Work, Failure> {
    let run_id = RunId::parse(&format!("bench:{}", 1_763_290_800 + round)).ok_or("no id")?;
    Ok(Work {
        attempt: Attempt { run_id, number },
        definition: Arc::clone(definition),
        parameters: BTreeMap::new(),
        scheduled_at: Timestamp(0),
    })
}

/// Launched, told as ended, released.
async fn ours(
    backend: &LocalBackend,
    news: &mut mpsc::UnboundedReceiver<News>,
    definition: &Arc<JobDefinition>,
    (round, runs, at_once): (u32, u32, u32),
) -> Result<f64, Failure> {
    let begin = Instant::now();
    let (mut next, mut over) = (0, 0);
    let (mut launches, mut releases) = (FuturesUnordered::new(), FuturesUnordered::new());
    while over < runs {
        while next < runs && next - over < at_once {
            let work = work(round, next, definition)?;
            launches.push(async move { backend.launch(&work).await });
            next += 1;
        }
        tokio::select! {
            biased;
            Some(answer) = launches.next() => answer?,
            Some(()) = releases.next() => {}
            Some(told) = news.recv() => if let What::Ended(end) = told.what {
                if end.exit_code != Some(0) {
                    return Err(format!("{end:?}").into());
                }
                over += 1;
                releases.push(async move { backend.release(&told.attempt).await });
            },
        }
    }
    while releases.next().await.is_some() {}
    Ok(f64::from(runs) / begin.elapsed().as_secs_f64())
}

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<(), Failure> {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<u32>());
    let runs = numbers.next().transpose()?.unwrap_or(2_000);
    let at_once = numbers.next().transpose()?.unwrap_or(8);
    let dir = tempfile::tempdir()?;
    let (newsroom, mut news) = mpsc::unbounded_channel();
    let local = LocalBackend::open(Parts {
        data_dir: dir.path().to_owned(),
        newsroom,
        clock: Arc::new(SystemClock),
        ids: Arc::new(SystemIds),
        secrets: Arc::new(NoSecrets),
        program: PathBuf::from("kapell"),
    })
    .await?;
    let text = r#"{"job_id": "bench", "command": {"command": "/bin/true", "args": []}}"#;
    let definition = Arc::new(serde_json::from_str(text)?);
    for round in 0..ROUNDS {
        let bare = bare(runs, at_once)?;
        let ours = ours(&local, &mut news, &definition, (round, runs, at_once)).await?;
        let percent = 100.0 * ours / bare;
        writeln!(stdout(), "posix_spawn {bare:.0}/s  local {ours:.0}/s  {percent:.0} %")?;
    }
    local.close().await;
    Ok(())
}
