//! A workflow as the work of a run: `kapell process` as a process of the host.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kapell_core::board::{Domain, SecretName};
use kapell_core::run::{RunId, StopKind, WorkEnd};
use kapell_core::seams::Timestamp;
use kapell_core::secret::Secret;
use kapell_node::scheduler::backend::{Attempt, Backend as _, News, Secrets, What, Work};
use kapell_node::scheduler::local::{LocalBackend, Parts};
use kapell_node::system::{SystemClock, SystemIds};
use kapell_node::testing::eventually;
use serde_json::json;
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(60);

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

async fn open(dir: &Path) -> (LocalBackend, UnboundedReceiver<News>) {
    let (newsroom, news) = mpsc::unbounded_channel();
    let parts = Parts {
        data_dir: dir.to_owned(),
        newsroom,
        clock: Arc::new(SystemClock),
        ids: Arc::new(SystemIds),
        secrets: Arc::new(NoSecrets),
        program: PathBuf::from(env!("CARGO_BIN_EXE_kapell")),
        tenure: None,
    };
    (LocalBackend::open(parts).await.unwrap(), news)
}

fn work(number: u32, text: &str) -> Work {
    let run_id = RunId::parse("flow:1763290800").unwrap();
    let definition = json!({"job_id": "flow", "workflow": {"text": text, "params": ["first"]}});
    Work {
        attempt: Attempt { run_id, number },
        definition: Arc::new(serde_json::from_value(definition).unwrap()),
        parameters: BTreeMap::from([("DAY".to_owned(), "mon day".to_owned())]),
        scheduled_at: Timestamp(0),
    }
}

async fn end(news: &mut UnboundedReceiver<News>) -> WorkEnd {
    loop {
        match timeout(PATIENCE, news.recv()).await.unwrap().unwrap().what {
            What::Started { .. } | What::Hindered { .. } => {}
            What::Ended(end) => return end,
            What::Unstartable { why } => panic!("{why}"),
        }
    }
}

#[tokio::test]
async fn the_end_of_a_workflow_is_the_end_of_the_work_with_its_reason() {
    let dir = tempfile::tempdir().unwrap();
    let (backend, mut news) = open(dir.path()).await;
    let file = dir.path().join("told");
    let told = format!("echo \"$DAY $1\" > {}", file.display());
    let good = json!({"params": [{"name": "DAY"}], "steps": [{"name": "a", "command": told}]});
    let bad = json!({"steps": [{"name": "a", "command": "echo oh no >&2; exit 3"}]});
    backend.launch(&work(0, &good.to_string())).await.unwrap();
    assert_eq!(end(&mut news).await.failure, None);
    assert_eq!(std::fs::read_to_string(file).unwrap(), "mon day first\n");
    backend.launch(&work(1, &bad.to_string())).await.unwrap();
    let failed = end(&mut news).await;
    assert_eq!(failed.exit_code, Some(1));

    assert_eq!(failed.failure.as_deref(), Some("step `a` failed: exit status 3"));
    backend.launch(&work(2, "steps: 5")).await.unwrap();
    let refused = end(&mut news).await;
    assert_eq!(refused.exit_code, Some(2));
    assert!(refused.failure.unwrap().starts_with("the workflow was refused"));
    for number in 0..3 {
        backend.release(&work(number, "").attempt).await;
    }
    backend.close().await;
}

#[tokio::test]
async fn a_stop_ends_a_workflow_and_its_steps() {
    let dir = tempfile::tempdir().unwrap();
    let (backend, mut news) = open(dir.path()).await;
    let file = dir.path().join("pid");
    let command = format!("echo $$ > {}; exec sleep 300", file.display());
    let flow = json!({"steps": [{"name": "a", "command": command}]});
    let work = work(0, &flow.to_string());
    backend.launch(&work).await.unwrap();
    let runs = || async { std::fs::read_to_string(&file).is_ok_and(|pid| pid.ends_with('\n')) };
    eventually("the step runs", PATIENCE, runs).await;
    let pid = std::fs::read_to_string(&file).unwrap();
    let step = PathBuf::from(format!("/proc/{}", pid.trim()));
    assert!(step.exists());
    backend.stop(&work.attempt, &backend.place(), StopKind::Graceful).await.unwrap();
    assert!(!step.exists(), "no step outlives its workflow");
    let ended = end(&mut news).await;
    assert_eq!(ended.exit_code, Some(143));
    assert_eq!(ended.failure.as_deref(), Some("the workflow was interrupted"));
    backend.release(&work.attempt).await;
    backend.close().await;
}
