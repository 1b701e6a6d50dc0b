//! The actions.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use kapell_core::board::JobId;
use kapell_core::constraint::{ActionSpec, Deed, Level, Notify, Phase, Seen, Target, Template};
use kapell_core::job::{ActionId, Figure};
use kapell_core::run::{RunId, RunState, StopKind};
use serde_json::Value as Json;

use super::context::Context;
use super::inbox::{Gone, Message, Which};
use crate::webhook::{self, Hold, Settled};

/// How long an action may take that does not wait on purpose.
const LIMIT: Duration = Duration::from_secs(30);

/// Why an action was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ActionError {
    /// It failed, and others may still be taken.
    #[error("{0}")]
    Failed(String),
    /// Nothing can be done here any more.
    #[error(transparent)]
    Broken(#[from] Gone),
}

/// Something that is done because a constraint is met or violated.
#[async_trait]
pub trait Action: fmt::Debug + Send + Sync {
    fn spec(&self) -> &ActionSpec;

    /// Does it, and says what was done. Dropping the future leaves it.
    async fn take(&self, context: &Context) -> Result<String, ActionError>;

    /// How long it may take; nothing: as long as it likes.
    fn limit(&self) -> Option<Duration> {
        Some(LIMIT)
    }

    /// Whether it does nothing but wait for most of its time.
    fn waits(&self) -> bool {
        false
    }
}

/// The action that a configuration describes.
pub(super) fn of(spec: &ActionSpec) -> Box<dyn Action> {
    let spec = spec.clone();
    match spec.deed.clone() {
        Deed::Retry | Deed::Fail | Deed::Skip | Deed::Proceed => Box::new(Say { spec }),
        Deed::Delay { time } => Box::new(Delay { spec, time: time.get() }),
        Deed::Log { message, level } => Box::new(Log { spec, message, level }),
        Deed::KickOffJob { job, parameters } => {
            let parameters = parameters.into_iter().collect();
            Box::new(KickOff { spec, job, parameters })
        }
        Deed::KillAllInstances { job, stop } => {
            Box::new(Kill { spec, job, stop, which: Which::All })
        }
        Deed::KillLatestInstance { job, stop } => {
            Box::new(Kill { spec, job, stop, which: Which::Latest })
        }
        Deed::SkipNextInstance { job, count } => Box::new(SkipNext { spec, job, count }),
        Deed::Notify(notify) => Box::new(Tell { spec, notify }),
        Deed::Metric { .. } => Box::new(Metric { spec }),
    }
}

/// `retry`, `fail`, `skip`, `proceed`: what they say counts, there is nothing to do.
#[derive(Debug)]
struct Say {
    spec: ActionSpec,
}

#[async_trait]
impl Action for Say {
    fn spec(&self) -> &ActionSpec {
        &self.spec
    }

    async fn take(&self, _context: &Context) -> Result<String, ActionError> {
        Ok(format!("{} is what the run does", self.spec.name))
    }
}

#[derive(Debug)]
struct Delay {
    spec: ActionSpec,
    time: Duration,
}

#[async_trait]
impl Action for Delay {
    fn spec(&self) -> &ActionSpec {
        &self.spec
    }

    async fn take(&self, _context: &Context) -> Result<String, ActionError> {
        tokio::time::sleep(self.time).await;
        Ok(format!("waited {}s", self.time.as_secs_f64()))
    }

    fn limit(&self) -> Option<Duration> {
        None
    }

    fn waits(&self) -> bool {
        true
    }
}

#[derive(Debug)]
struct Log {
    spec: ActionSpec,
    message: String,
    level: Level,
}

#[async_trait]
impl Action for Log {
    fn spec(&self) -> &ActionSpec {
        &self.spec
    }

    async fn take(&self, context: &Context) -> Result<String, ActionError> {
        let text = fill(&self.message, &context.scope());
        let run = &context.run;
        let (run_id, job_id, attempt) = (&run.run_id, run.run_id.job(), run.attempt);
        let scheduled_at = run.scheduled_at.0;
        let state = match run.phase() {
            Phase::Before => RunState::ActionRunning.name(),
            Phase::After => RunState::Terminating.name(),
        };
        match self.level {
            Level::Debug => {
                tracing::debug!(%run_id, job_id, scheduled_at, state, attempt, "{text}");
            }
            Level::Info => tracing::info!(%run_id, job_id, scheduled_at, state, attempt, "{text}"),
            Level::Warn => tracing::warn!(%run_id, job_id, scheduled_at, state, attempt, "{text}"),
            Level::Error => {
                tracing::error!(%run_id, job_id, scheduled_at, state, attempt, "{text}");
            }
        }
        Ok(text)
    }
}

/// Templates were checked when the job was stored.
fn fill(text: &str, scope: &Json) -> String {
    Template::parse(text).map_or_else(|_| text.to_owned(), |template| template.fill(scope))
}

#[derive(Debug)]
struct KickOff {
    spec: ActionSpec,
    job: JobId,
    parameters: Vec<(String, String)>,
}

#[async_trait]
impl Action for KickOff {
    fn spec(&self) -> &ActionSpec {
        &self.spec
    }

    async fn take(&self, context: &Context) -> Result<String, ActionError> {
        let scope = context.scope();
        let parameters =
            self.parameters.iter().map(|(name, text)| (name.clone(), fill(text, &scope))).collect();
        let of = context.run.run_id.clone();
        #[expect(clippy::cast_possible_truncation, reason = "a part of a hash is one too")]
        let run_id = RunId::asked_for(&self.job, context.run.scheduled_at, context.mark() as u64);
        let shown = run_id.clone();
        let asked =
            context.means.inbox.ask(|reply| Message::Trigger { run_id, of, parameters, reply });
        asked.await?.map_err(ActionError::Failed)?;
        Ok(format!("triggered {shown}"))
    }
}

#[derive(Debug)]
struct Kill {
    spec: ActionSpec,
    job: Option<JobId>,
    stop: StopKind,
    which: Which,
}

fn own(job: Option<&JobId>, context: &Context) -> JobId {
    job.cloned().unwrap_or_else(|| context.run.run_id.job_id())
}

#[async_trait]
impl Action for Kill {
    fn spec(&self) -> &ActionSpec {
        &self.spec
    }

    async fn take(&self, context: &Context) -> Result<String, ActionError> {
        let (job, which, kind) = (own(self.job.as_ref(), context), self.which, self.stop);
        let except = context.run.run_id.clone();
        let why = format!("{} of run {except}", self.spec.name);
        let shown = job.clone();
        let asked = context.means.inbox.ask(|reply| Message::CancelRuns {
            job,
            which,
            except,
            kind,
            why,
            reply,
        });
        let count = asked.await?.map_err(ActionError::Failed)?;
        Ok(format!("{count} runs of job `{shown}` are cancelled"))
    }
}

#[derive(Debug)]
struct SkipNext {
    spec: ActionSpec,
    job: Option<JobId>,
    count: u32,
}

#[async_trait]
impl Action for SkipNext {
    fn spec(&self) -> &ActionSpec {
        &self.spec
    }

    async fn take(&self, context: &Context) -> Result<String, ActionError> {
        let (job, count) = (own(self.job.as_ref(), context), self.count);
        let shown = job.clone();
        let (of, action) = (context.run.run_id.clone(), ActionId(context.mark()));
        let inbox = &context.means.inbox;
        let asked = inbox.ask(|reply| Message::SkipNext { job, of, action, count, reply });
        asked.await?.map_err(ActionError::Failed)?;
        Ok(format!("the next {count} moments of job `{shown}` are passed over"))
    }
}

#[derive(Debug)]
struct Metric {
    spec: ActionSpec,
}

#[async_trait]
impl Action for Metric {
    fn spec(&self) -> &ActionSpec {
        &self.spec
    }

    async fn take(&self, context: &Context) -> Result<String, ActionError> {
        let Deed::Metric { metric, value, kind } = self.spec.deed.clone() else {
            return Err(ActionError::Failed("it names no figure".to_owned()));
        };
        let told = format!("{metric}: {value}");
        let (of, action) = (context.run.run_id.clone(), ActionId(context.mark()));
        let figure = Figure { kind, value, at: context.now() };
        let inbox = &context.means.inbox;
        let asked = inbox.ask(|reply| Message::SetMetric { of, action, metric, figure, reply });
        asked.await?.map_err(ActionError::Failed)?;
        Ok(told)
    }
}

/// `webhook`, `slack`, `pagerduty`
#[derive(Debug)]
struct Tell {
    spec: ActionSpec,
    notify: Box<Notify>,
}

#[async_trait]
impl Action for Tell {
    fn spec(&self) -> &ActionSpec {
        &self.spec
    }

    async fn take(&self, context: &Context) -> Result<String, ActionError> {
        let seen = context.seen.as_ref();
        let (kind, of) = match seen {
            Some(Seen { met: Some(true), name, .. }) => ("kapell.constraint.met", *name),
            Some(Seen { met: Some(false) | None, name, .. }) => {
                ("kapell.constraint.violated", *name)
            }
            None => ("kapell.run", "the run"),
        };
        let message = webhook::Message {
            what: format!("{} of {of}", self.spec.name),
            secret_fields: self
                .notify
                .secret_fields
                .iter()
                .map(|(key, name)| ((*key).to_owned(), name.clone()))
                .collect(),
            ..message(context, &self.notify.target, kind, seen)
        };
        let id = message.webhook_id.clone();
        let failed = |why: String| ActionError::Failed(why);
        let webhooks = &context.means.webhooks;
        let Some(wait) = self.notify.wait else {
            // The run goes on, and counts on it.
            let hold = Hold::Outlive(ActionId(context.mark()));
            webhooks.entrust(webhook::Message { hold, ..message }).await.map_err(failed)?;
            return Ok(format!("message {id} is on its way"));
        };
        let ticket = webhooks.deliver(message).map_err(|error| failed(error.to_string()))?;
        match tokio::time::timeout(wait, ticket.settled()).await {
            Ok(Settled::Delivered { status }) => Ok(format!("message {id} was taken: {status}")),
            Ok(Settled::GivenUp { why, .. }) => {
                Err(failed(format!("message {id} was not taken: {why}")))
            }
            Err(_) => {
                Err(failed(format!("message {id} was not taken within {}s", wait.as_secs_f64())))
            }
        }
    }

    fn limit(&self) -> Option<Duration> {
        Some(LIMIT + self.notify.wait.unwrap_or_default())
    }

    fn waits(&self) -> bool {
        self.notify.wait.is_some()
    }
}

/// A message about a run.
pub(super) fn message(
    context: &Context,
    target: &Target,
    kind: &str,
    seen: Option<&Seen>,
) -> webhook::Message {
    let run = &context.run;
    let now = context.now();
    let body = match &target.body {
        Some(body) => Template::fill_all(body, &run.scope(seen, now)),
        None => run.message(kind, seen, now),
    };
    webhook::Message {
        webhook_id: webhook::webhook_id(ActionId(context.mark())),
        job_id: run.run_id.job_id(),
        run_id: run.run_id.clone(),
        domain: run.definition.domain.clone(),
        what: kind.to_owned(),
        target: target.clone(),
        body,
        secret_fields: Vec::new(),
        hold: Hold::Keep,
    }
}
