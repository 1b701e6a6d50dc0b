//! Looks at all constraints of a run.

use std::collections::BTreeSet;
use std::fmt;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use kapell_core::constraint::{About, Fault, Finding, Outcome, Phase, checked, read};
use kapell_core::run::{ActionsDone, Checked};
use tokio::time::timeout;

use super::action::ActionError;
use super::check::{self, Constraint};
use super::context::{Context, Means};
use super::executor::{ActionExecutor, Executor, Todo};
use super::inbox::Message;
use super::pulse::Pulse;

/// What takes longer is told of.
const LONG: Duration = Duration::from_millis(500);

/// Why constraints could not be looked at, or actions not be taken: the run fails.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("its constraints cannot be read: {}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Unreadable(Vec<Fault>),
    #[error("its actions could not be taken")]
    Executor {
        /// What was done until then, and that the rest was not.
        done: Box<ActionsDone>,
        source: ActionError,
    },
}

/// What was found out before the work.
#[derive(Debug)]
pub struct PreCheck {
    pub checked: Checked,
    /// For the executor, if there is something to be done.
    pub todo: Todo,
}

/// Says what is to become of a run. Of what it goes by, nobody else knows anything.
#[async_trait]
pub trait ConstraintChecker: fmt::Debug + Send + Sync {
    /// Looks at all constraints before the work, side by side. Nothing is done about them yet.
    async fn check_pre_execution(&self, run: Arc<About>, pulse: &Pulse) -> Result<PreCheck, Error>;

    /// Looks at all constraints on work that has ended, and takes their actions.
    async fn check_post_execution(
        &self,
        run: Arc<About>,
        pulse: &Pulse,
    ) -> Result<ActionsDone, Error>;
}

#[derive(Debug, Clone)]
pub struct Checker {
    means: Means,
    executor: Arc<dyn ActionExecutor>,
}

impl Checker {
    pub fn new(means: Means) -> Self {
        Self { means, executor: Arc::new(Executor) }
    }

    /// Takes the actions that a check before the work has found.
    pub async fn act(&self, todo: Todo, pulse: &Pulse) -> Result<ActionsDone, Error> {
        self.executor.execute(todo, pulse).await
    }

    async fn look(&self, run: Arc<About>, phase: Phase, pulse: &Pulse) -> Result<Todo, Error> {
        let read = read(&run.definition).map_err(Error::Unreadable)?;
        let constraints: Vec<Box<dyn Constraint>> =
            read.of(phase).cloned().map(check::of).collect();
        let context = Context::new(self.means.clone(), run);
        let left: Mutex<BTreeSet<usize>> = Mutex::new((0..constraints.len()).collect());
        let names = || {
            let left = left.lock().unwrap_or_else(PoisonError::into_inner);
            left.iter().map(|place| constraints[*place].spec().name).collect::<Vec<_>>()
        };
        let looks = constraints.iter().enumerate().map(async |(place, it)| {
            let outcome = look_at(it.as_ref(), context.for_check(place)).await;
            left.lock().unwrap_or_else(PoisonError::into_inner).remove(&place);
            outcome
        });
        let looks = telling(join_all(looks), &context, names);
        let outcomes = pulse.during(looks).await;
        Ok(Todo { context, looked: constraints.into_iter().zip(outcomes).collect() })
    }
}

/// Tells of those that take their time, as soon as they do and whenever fewer are left.
async fn telling<T>(
    looks: impl Future<Output = T>,
    context: &Context,
    left: impl Fn() -> Vec<&'static str>,
) -> T {
    let (mut looks, mut told) = (pin!(looks), Vec::new());
    loop {
        if let Ok(outcomes) = timeout(LONG, &mut looks).await {
            return outcomes;
        }
        let constraints = left();
        if constraints != told {
            told.clone_from(&constraints);
            let (run_id, at) = (context.run.run_id.clone(), context.now());
            context.means.inbox.mention(Message::Checking { run_id, constraints, at });
        }
    }
}

async fn look_at(constraint: &dyn Constraint, context: Context) -> Outcome {
    let spec = constraint.spec();
    if context.run.attempt > 0 && !spec.recheck_on_retry {
        return Outcome::PassedOver;
    }
    // What is found out is told to the run, which has it logged.
    match timeout(spec.timeout, constraint.check(&context)).await {
        Ok(Ok(Finding::Met(why))) => Outcome::Met(why),
        Ok(Ok(Finding::Violated(why))) => Outcome::Violated(why),
        Ok(Err(why)) => Outcome::Error(why),
        Err(_) => {
            Outcome::Error(format!("it took longer than {}s (timeout)", spec.timeout.as_secs_f64()))
        }
    }
}

#[async_trait]
impl ConstraintChecker for Checker {
    async fn check_pre_execution(&self, run: Arc<About>, pulse: &Pulse) -> Result<PreCheck, Error> {
        let todo = self.look(run, Phase::Before, pulse).await?;
        Ok(PreCheck { checked: checked(&todo.found()), todo })
    }

    async fn check_post_execution(
        &self,
        run: Arc<About>,
        pulse: &Pulse,
    ) -> Result<ActionsDone, Error> {
        let todo = self.look(run, Phase::After, pulse).await?;
        let Checked { counts, mut notes, .. } = checked(&todo.found());
        let mut with_found = |done: &mut ActionsDone| {
            notes.append(&mut done.notes);
            done.notes = std::mem::take(&mut notes);
            done.counts.checked = counts.checked;
            done.counts.violated = counts.violated;
        };
        let mut taken = self.executor.execute(todo, pulse).await;
        match &mut taken {
            Ok(done) => with_found(done),
            Err(Error::Executor { done, .. }) => with_found(done),
            Err(Error::Unreadable(_)) => {}
        }
        taken
    }
}
