//! A host's data directory, and work that counts its launches and ends when a file says how.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kapell_core::board::{Domain, SecretName};
use kapell_core::seams::Timestamp;
use kapell_core::secret::Secret;
use serde_json::{Value as Json, json};
use tempfile::TempDir;
use tokio::sync::mpsc::{self, UnboundedReceiver};

use crate::scheduler::backend::{Attempt, Backend, News, Secrets, Work};
use crate::scheduler::conformance::Rig;
use crate::scheduler::local::order::guid;
use crate::scheduler::local::{LocalBackend, Parts};
use crate::system::{SystemClock, SystemIds};
use crate::testing::eventually;

const PATIENCE: Duration = Duration::from_secs(30);
const SCRIPT: &str = "echo $$ > $OF/pid; echo x >> $OF/launches; \
    while [ ! -e $OF/go ]; do sleep 0.01; done; exit $(cat $OF/go)";

#[derive(Debug)]
pub(super) struct OneSecret;

#[async_trait]
impl Secrets for OneSecret {
    async fn open(
        &self,
        _domain: &Domain,
        names: &[SecretName],
    ) -> Result<BTreeMap<SecretName, Secret>, String> {
        Ok(names.iter().map(|name| (name.clone(), Secret::new("hush-hush"))).collect())
    }
}

pub(crate) fn work(attempt: &Attempt, payload: &Json) -> Work {
    let mut definition = json!({"job_id": attempt.run_id.job()});
    definition.as_object_mut().unwrap().extend(payload.as_object().unwrap().clone());
    Work {
        attempt: attempt.clone(),
        definition: Arc::new(serde_json::from_value(definition).unwrap()),
        parameters: BTreeMap::new(),
        scheduled_at: Timestamp(1_763_290_800_000),
    }
}

/// Text for a shell.
pub(crate) fn command(attempt: &Attempt, text: &str) -> Work {
    work(attempt, &json!({"command": {"command": text, "stop_grace": "5s"}}))
}

pub(super) async fn open(dir: &Path) -> (LocalBackend, UnboundedReceiver<News>) {
    open_with(dir, Path::new("kapell")).await
}

/// `program` runs workflows.
pub(super) async fn open_with(
    dir: &Path,
    program: &Path,
) -> (LocalBackend, UnboundedReceiver<News>) {
    let (parts, news) = parts(dir, program);
    (LocalBackend::open(parts).await.unwrap(), news)
}

pub(super) fn parts(dir: &Path, program: &Path) -> (Parts, UnboundedReceiver<News>) {
    let (newsroom, news) = mpsc::unbounded_channel();
    let parts = Parts {
        data_dir: dir.to_owned(),
        newsroom,
        clock: Arc::new(SystemClock),
        ids: Arc::new(SystemIds),
        secrets: Arc::new(OneSecret),
        program: program.to_owned(),
        tenure: None,
    };
    (parts, news)
}

/// Work that runs until a file in `dir` tells it how to end.
pub(super) fn patient(dir: &Path, attempt: &Attempt) -> Work {
    let of = dir.join("of").join(guid(attempt));
    fs::create_dir_all(&of).unwrap();
    let env = json!([{"name": "OF", "value": of}]);
    work(attempt, &json!({"command": {"command": SCRIPT, "env": env, "stop_grace": "5s"}}))
}

pub(super) fn count(dir: &Path, attempt: &Attempt) -> u32 {
    let of = dir.join("of").join(guid(attempt)).join("launches");
    u32::try_from(fs::read_to_string(of).unwrap_or_default().lines().count()).unwrap()
}

pub(super) fn let_end(dir: &Path, attempt: &Attempt, code: i32) {
    let of = dir.join("of").join(guid(attempt));
    fs::write(of.join("draft"), code.to_string()).unwrap();
    fs::rename(of.join("draft"), of.join("go")).unwrap();
}

pub(super) struct Lab {
    pub(super) dir: TempDir,
    pub(super) backend: LocalBackend,
    pub(super) news: UnboundedReceiver<News>,
}

impl Lab {
    pub(super) async fn new() -> Self {
        Self::on(tempfile::tempdir().unwrap()).await
    }

    pub(super) async fn on(dir: TempDir) -> Self {
        let (backend, news) = open(dir.path()).await;
        Self { dir, backend, news }
    }

    pub(super) async fn next(&mut self) -> News {
        tokio::time::timeout(PATIENCE, self.news.recv()).await.unwrap().unwrap()
    }

    /// All that an attempt wrote.
    pub(super) fn output(&self, attempt: &Attempt) -> String {
        let mut text = Vec::new();
        for part in self.backend.logs().read(attempt).map_or_else(Vec::new, |logs| logs.parts) {
            for entry in fs::read_dir(part).unwrap() {
                let mut decoder = kapell_core::log::Decoder::default();
                decoder.push(&fs::read(entry.unwrap().path()).unwrap());
                while let Some(frame) = decoder.next_frame().unwrap() {
                    text.extend(frame.bytes);
                }
            }
        }
        String::from_utf8(text).unwrap()
    }
}

#[async_trait]
impl Rig for Lab {
    fn backend(&self) -> &dyn Backend {
        &self.backend
    }

    fn news(&mut self) -> &mut UnboundedReceiver<News> {
        &mut self.news
    }

    fn work(&self, attempt: &Attempt) -> Work {
        patient(self.dir.path(), attempt)
    }

    fn unstartable(&self, attempt: &Attempt) -> Work {
        work(attempt, &json!({"command": {"command": "/no/such/program", "args": []}}))
    }

    async fn start(&self, attempt: &Attempt) {
        let runs = || async { count(self.dir.path(), attempt) > 0 };
        if fs::exists(self.dir.path().join("of").join(guid(attempt))).unwrap() {
            eventually("the work runs", PATIENCE, runs).await;
        }
    }

    async fn end(&self, attempt: &Attempt, code: i32) {
        let_end(self.dir.path(), attempt, code);
    }

    fn launches(&self, attempt: &Attempt) -> u32 {
        count(self.dir.path(), attempt)
    }

    fn is_under_way(&self, attempt: &Attempt) -> bool {
        let pid = self.dir.path().join("of").join(guid(attempt)).join("pid");
        let pid = fs::read_to_string(pid).unwrap_or_default();
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        // One that has ended stays there until somebody asks how.
        stat.rsplit_once(") ").is_some_and(|(_, fields)| !fields.starts_with(['Z', 'X']))
    }

    async fn reopen(self) -> Self {
        self.backend.close().await;
        Self::on(self.dir).await
    }

    async fn close(self) {
        for attempt in self.backend.known().await.unwrap() {
            self.backend.release(&attempt).await;
        }
        self.backend.close().await;
    }
}
