//! The constraints: each finds out its facts, and has them judged.

use std::fmt;

use async_trait::async_trait;
use kapell_core::constraint::delivery::Answer;
use kapell_core::constraint::{
    ActionSpec, Finding, Health, OtherJob, OtherQuestion, PreviousSuccess, Room, Rule, Seen, Spec,
    Target, Window,
};

use super::action::{self, Action};
use super::context::Context;
use super::inbox::Message;
use crate::webhook::{self, Hold, Settled};

/// Something that must be so for a run to go on.
#[async_trait]
pub trait Constraint: fmt::Debug + Send + Sync {
    fn spec(&self) -> &Spec;

    /// Finds out whether it is met, or why nobody can say.
    async fn check(&self, context: &Context) -> Result<Finding, String>;

    /// What is to be done if it is violated. All constraints are looked at before any action is taken.
    fn on_violation(&self) -> Vec<Box<dyn Action>> {
        list(&self.spec().on_violation)
    }

    /// What is to be done if it is met.
    fn on_met(&self) -> Vec<Box<dyn Action>> {
        list(&self.spec().on_met)
    }
}

fn list(specs: &[ActionSpec]) -> Vec<Box<dyn Action>> {
    specs.iter().map(action::of).collect()
}

/// The constraint that a configuration describes.
pub(super) fn of(spec: Spec) -> Box<dyn Constraint> {
    match spec.rule.clone() {
        Rule::PreRunHook(target) | Rule::PostRunHook(target) => Box::new(Hook { spec, target }),
        Rule::MaxExpectedRunTime { .. } | Rule::MaxAllowedRunTime { .. } => {
            Box::new(RunTime { spec })
        }
        Rule::RequirePreviousSuccess(rule) => Box::new(Previous { spec, rule }),
        Rule::TimeWindow(window) => Box::new(Hours { spec, window }),
        Rule::OtherJob(rule) => Box::new(Other { spec, rule }),
        Rule::HttpHealthCheck(rule) => Box::new(Healthy { spec, rule }),
        Rule::ResourceAvailable(room) => Box::new(Roomy { spec, room }),
    }
}

/// `preRunHook`, `postRunHook`
#[derive(Debug)]
struct Hook {
    spec: Spec,
    target: Target,
}

#[async_trait]
impl Constraint for Hook {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    async fn check(&self, context: &Context) -> Result<Finding, String> {
        let kind = format!("kapell.run.{}", context.run.phase().name());
        let seen = Seen { name: self.spec.name, met: None, message: String::new() };
        let message = action::message(context, &self.target, &kind, Some(&seen));
        let message =
            webhook::Message { what: self.spec.name.to_owned(), hold: Hold::Withdraw, ..message };
        let ticket = context.means.webhooks.deliver(message).map_err(|error| error.to_string())?;
        match ticket.settled().await {
            Settled::Delivered { status } | Settled::GivenUp { status: Some(status), .. } => {
                Ok(self.target.judge(status))
            }
            Settled::GivenUp { status: None, why } => Err(why),
        }
    }
}

/// `maxExpectedRunTime`, `maxAllowedRunTime`
#[derive(Debug)]
struct RunTime {
    spec: Spec,
}

#[async_trait]
impl Constraint for RunTime {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    async fn check(&self, context: &Context) -> Result<Finding, String> {
        let work = context.run.work.as_ref().ok_or("the work has not ended")?;
        let took = work.ended_at.since(work.started_at);
        self.spec.rule.judge_run_time(took).ok_or_else(|| "it is no limit".to_owned())
    }
}

/// `requirePreviousSuccess`
#[derive(Debug)]
struct Previous {
    spec: Spec,
    rule: PreviousSuccess,
}

#[async_trait]
impl Constraint for Previous {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    async fn check(&self, context: &Context) -> Result<Finding, String> {
        let (job, of) = (context.run.run_id.job_id(), context.run.run_id.clone());
        let most = OtherJob::HISTORY;
        let asked = context.means.inbox.ask(|reply| Message::JobHistory { job, of, most, reply });
        let history = asked.await.map_err(|error| error.to_string())?;
        Ok(self.rule.judge(&history.ok_or("its own job is not there any more")?))
    }
}

/// `time_window`
#[derive(Debug)]
struct Hours {
    spec: Spec,
    window: Window,
}

#[async_trait]
impl Constraint for Hours {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    async fn check(&self, context: &Context) -> Result<Finding, String> {
        self.window.judge(context.now(), &context.run.definition.timezone)
    }
}

/// `other_job_running`, `other_job_completed_recently`, `other_job_scheduled_soon`
#[derive(Debug)]
struct Other {
    spec: Spec,
    rule: OtherJob,
}

#[async_trait]
impl Constraint for Other {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    async fn check(&self, context: &Context) -> Result<Finding, String> {
        let inbox = &context.means.inbox;
        let name = || (self.rule.job.clone(), context.run.run_id.clone());
        let (job, of) = name();
        let asked = inbox.ask(|reply| Message::JobState { job, of, reply });
        let state = asked.await.map_err(|error| error.to_string())?;
        let history = match self.rule.question {
            OtherQuestion::Running | OtherQuestion::ScheduledWithin { .. } => Vec::new(),
            OtherQuestion::CompletedWithin { .. } => {
                let ((job, of), most) = (name(), OtherJob::HISTORY);
                let asked = inbox.ask(|reply| Message::JobHistory { job, of, most, reply });
                asked.await.map_err(|error| error.to_string())?.unwrap_or_default()
            }
        };
        self.rule.judge(state.as_ref(), &history, context.now())
    }
}

/// `http_health_check`
#[derive(Debug)]
struct Healthy {
    spec: Spec,
    rule: Health,
}

#[async_trait]
impl Constraint for Healthy {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    /// A place that does not answer is as ill as one that says so; one that must not be asked is an error.
    async fn check(&self, context: &Context) -> Result<Finding, String> {
        let domain = &context.run.definition.domain;
        match context.means.webhooks.ask(domain, &self.rule.target).await? {
            Answer::Status { status, .. } => Ok(self.rule.judge(status)),
            Answer::None(why) => Ok(Finding::Violated(why)),
            Answer::Refused(why) => Err(why),
        }
    }
}

/// `resource_available`
#[derive(Debug)]
struct Roomy {
    spec: Spec,
    room: Room,
}

#[async_trait]
impl Constraint for Roomy {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    async fn check(&self, context: &Context) -> Result<Finding, String> {
        Ok(self.room.judge(&context.means.cells.states().await?))
    }
}
