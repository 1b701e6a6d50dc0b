//! A place outside that does as it is told.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use kapell_core::board::{Domain, JobId, SecretName};
use kapell_core::constraint::delivery::Answer;
use kapell_core::constraint::lines::Pace;
use kapell_core::constraint::{Method, Outgoing, Place, Target};
use kapell_core::job::ActionId;
use kapell_core::run::RunId;
use kapell_core::seams::{Ids, Timestamp};
use kapell_core::secret::{Secret, not_set};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::testing::TokioClock;
use crate::webhook::{Handler, Hold, Keys, Message, Outbound, Outbox, Parts, Sent};

/// What becomes of a call.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    Now(Answer),
    After(Duration, u16),
    Never,
}

pub(crate) const fn status(status: u16) -> Reply {
    Reply::Now(Answer::Status { status, retry_after: None })
}

/// Whoever is called. What is not in the script is answered by 200.
#[derive(Debug)]
pub(crate) struct Outside {
    pub(crate) script: Mutex<VecDeque<Reply>>,
    pub(crate) calls: Mutex<Vec<(Duration, Sent)>>,
    begin: Instant,
}

impl Outside {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { script: Mutex::default(), calls: Mutex::default(), begin: Instant::now() })
    }

    pub(crate) fn will(&self, replies: impl IntoIterator<Item = Reply>) {
        self.script.lock().unwrap().extend(replies);
    }

    /// When it was called, in whole seconds.
    pub(crate) fn times(&self) -> Vec<u64> {
        self.calls.lock().unwrap().iter().map(|(at, _)| at.as_secs()).collect()
    }

    pub(crate) fn sent(&self) -> Vec<Sent> {
        self.calls.lock().unwrap().iter().map(|(_, sent)| sent.clone()).collect()
    }

    pub(crate) fn bodies(&self) -> Vec<serde_json::Value> {
        self.sent().iter().map(|sent| serde_json::from_slice(&sent.body).unwrap()).collect()
    }
}

#[async_trait]
impl Outbound for Outside {
    async fn send(&self, sent: &Sent) -> Answer {
        self.calls.lock().unwrap().push((self.begin.elapsed(), sent.clone()));
        let reply = self.script.lock().unwrap().pop_front().unwrap_or(status(200));
        match reply {
            Reply::Now(answer) => answer,
            Reply::After(wait, status) => {
                tokio::time::sleep(wait).await; // tidy: allow(sleep) the place outside is slow
                Answer::Status { status, retry_after: None }
            }
            Reply::Never => std::future::pending().await,
        }
    }
}

/// The secrets of domain `jobs`.
#[derive(Debug, Default)]
pub(crate) struct Vault {
    pub(crate) values: Mutex<BTreeMap<String, String>>,
    /// The store does not answer.
    pub(crate) away: Mutex<bool>,
}

impl Vault {
    pub(crate) fn set(&self, name: &str, value: &str) {
        self.values.lock().unwrap().insert(name.to_owned(), value.to_owned());
    }
}

#[async_trait]
impl Keys for Vault {
    async fn key(
        &self,
        domain: &Domain,
        name: &SecretName,
    ) -> Result<Result<Secret, String>, String> {
        if *self.away.lock().unwrap() {
            return Err("the store did not answer".to_owned());
        }
        let found = self.values.lock().unwrap().get(name.as_str()).cloned();
        let found = found.filter(|_| domain.as_str() == "jobs").map(Secret::new);
        Ok(found.ok_or_else(|| not_set(domain, name)))
    }
}

/// No chance at all: the longest waits are half of the full ones.
#[derive(Debug)]
pub(crate) struct NoChance;

impl Ids for NoChance {
    fn draw(&self) -> u64 {
        0
    }
}

/// What outlives a host.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    pub(crate) messages: Mutex<BTreeMap<ActionId, Outgoing>>,
    pub(crate) refuses: Mutex<Option<String>>,
}

#[async_trait]
impl Outbox for Kept {
    async fn keep(&self, message: Outgoing) -> Result<(), String> {
        if let Some(why) = self.refuses.lock().unwrap().clone() {
            return Err(why);
        }
        self.messages.lock().unwrap().entry(message.id).or_insert(message);
        Ok(())
    }

    async fn forget(&self, _: JobId, id: ActionId) {
        self.messages.lock().unwrap().remove(&id);
    }
}

pub(crate) struct Post {
    pub(crate) handler: Handler,
    pub(crate) outside: Arc<Outside>,
    pub(crate) vault: Arc<Vault>,
    pub(crate) outbox: Arc<Kept>,
    pub(crate) worker: JoinSet<()>,
}

pub(crate) fn post(pace: Pace) -> Post {
    let (outside, vault) = (Outside::new(), Arc::new(Vault::default()));
    let outbox = Arc::new(Kept::default());
    let parts = Parts {
        outbound: Arc::clone(&outside) as _,
        keys: Arc::clone(&vault) as _,
        outbox: Arc::clone(&outbox) as _,
        clock: Arc::new(TokioClock::new()),
        ids: Arc::new(NoChance),
    };
    let (handler, worker) = Handler::new(parts, pace);
    let mut running = JoinSet::new();
    running.spawn(worker.run());
    Post { handler, outside, vault, outbox, worker: running }
}

pub(crate) fn target(url: &str) -> Target {
    Target {
        place: Place::Url(url.to_owned()),
        method: Method::Post,
        headers: Vec::new(),
        body: None,
        secret: None,
        timeout: Duration::from_secs(10),
        max_attempts: 6,
    }
}

pub(crate) fn message(number: u32, url: &str) -> Message {
    Message {
        webhook_id: format!("msg_{number}"),
        job_id: "report".into(),
        run_id: RunId::scheduled(&"report".into(), Timestamp(i64::from(number) * 1000)),
        domain: Domain::new("jobs"),
        what: "webhook of time_window".to_owned(),
        target: target(url),
        body: json!({ "n": number }),
        secret_fields: Vec::new(),
        hold: Hold::Keep,
    }
}
