//! Takes actions, one after the other.

use std::fmt;

use async_trait::async_trait;
use kapell_core::causes::chain;
use kapell_core::constraint::{Done, Outcome, Seen, Spec, Verdict, conclude, steps};
use kapell_core::run::{ActionsDone, Counts};
use tokio::time::timeout;

use super::action::{Action, ActionError};
use super::check::Constraint;
use super::checker::Error;
use super::context::Context;
use super::inbox::Message;
use super::pulse::Pulse;

/// What was found out about all constraints of a run, and so what is to be done.
#[derive(Debug)]
pub struct Todo {
    pub(super) context: Context,
    pub(super) looked: Vec<(Box<dyn Constraint>, Outcome)>,
}

impl Todo {
    pub(super) fn found(&self) -> Vec<(&Spec, Outcome)> {
        self.looked.iter().map(|(it, outcome)| (it.spec(), outcome.clone())).collect()
    }
}

/// Takes the actions of a run.
#[async_trait]
pub trait ActionExecutor: fmt::Debug + Send + Sync {
    /// Goes through all lists in order. Dropping the future leaves the action that is under way; none follows.
    async fn execute(&self, todo: Todo, pulse: &Pulse) -> Result<ActionsDone, Error>;
}

/// What is told to a run whose actions could not be taken: it fails, and what was done before that is not forgotten.
pub fn failed(error: Error) -> ActionsDone {
    let message = chain(&error);
    match error {
        Error::Executor { done, .. } => *done,
        Error::Unreadable(_) => {
            let (counts, notes) = (Counts::default(), Vec::new());
            ActionsDone { verdict: Verdict::Fail, message, counts, notes }
        }
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub struct Executor;

#[async_trait]
impl ActionExecutor for Executor {
    async fn execute(&self, todo: Todo, pulse: &Pulse) -> Result<ActionsDone, Error> {
        let found = todo.found();
        let lists: Vec<Vec<Box<dyn Action>>> = todo
            .looked
            .iter()
            .map(|(constraint, outcome)| match outcome {
                Outcome::Met(_) => constraint.on_met(),
                Outcome::Violated(_) => constraint.on_violation(),
                Outcome::Error(_) | Outcome::PassedOver => Vec::new(),
            })
            .collect();
        let mut done = Vec::new();
        for step in steps(&found) {
            let Some(action) = lists.get(step.constraint).and_then(|list| list.get(step.action))
            else {
                continue;
            };
            let (spec, outcome) = &found[step.constraint];
            let context = todo.context.for_action(seen(spec, outcome), step);
            let taking = take(action.as_ref(), &context, spec.name);
            let taken = if action.waits() {
                pulse.resting(taking).await
            } else {
                pulse.during(taking).await
            };
            let spec = action.spec();
            let result = match taken {
                Ok(text) => Ok(text),
                Err(ActionError::Failed(why)) => Err(why),
                Err(source @ ActionError::Broken(_)) => {
                    let why = format!("{}, and none after it was taken", chain(&source));
                    // Whatever the list says of it, the run does not go on.
                    done.push(Done { name: spec.name, required: true, result: Err(why) });
                    let done = Box::new(conclude(&found, &done));
                    return Err(Error::Executor { done, source });
                }
            };
            done.push(Done { name: spec.name, required: spec.required, result });
        }
        Ok(conclude(&found, &done))
    }
}

fn seen(spec: &Spec, outcome: &Outcome) -> Seen {
    let (met, message) = match outcome {
        Outcome::Met(message) => (Some(true), message.clone()),
        Outcome::Violated(message) => (Some(false), message.clone()),
        Outcome::Error(message) => (None, message.clone()),
        Outcome::PassedOver => (None, String::new()),
    };
    Seen { name: spec.name, met, message }
}

async fn take(
    action: &dyn Action,
    context: &Context,
    constraint: &'static str,
) -> Result<String, ActionError> {
    let (run_id, name) = (context.run.run_id.clone(), action.spec().name);
    let acting = Message::Acting { run_id, action: name, constraint, at: context.now() };
    context.means.inbox.tell(acting).await?;
    match action.limit() {
        None => action.take(context).await,
        Some(limit) => timeout(limit, action.take(context)).await.unwrap_or_else(|_| {
            Err(ActionError::Failed(format!("it was not done within {}s", limit.as_secs_f64())))
        }),
    }
}
