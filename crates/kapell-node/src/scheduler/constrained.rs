//! Constraints and actions of jobs, for the scheduler.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use kapell_core::constraint::{self as rules, About, Phase, Verdict};
use kapell_core::job::{JobDefinition, params};
use kapell_core::run::{ActionsDone, Checked, Counts, RunId, WorkEnd};

use super::checker::{Checker, Subject, Wants};
use crate::constraint::{self, ConstraintChecker as _, Pulse, Todo, failed};

/// Has constraints looked at, and keeps what is to be done about them until it is asked to.
#[derive(Debug)]
pub(super) struct Constrained {
    checker: constraint::Checker,
    todo: Mutex<BTreeMap<(RunId, u32), Todo>>,
}

impl Constrained {
    pub(super) const fn new(checker: constraint::Checker) -> Self {
        Self { checker, todo: Mutex::new(BTreeMap::new()) }
    }

    fn todo(&self) -> MutexGuard<'_, BTreeMap<(RunId, u32), Todo>> {
        self.todo.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn about(subject: &Subject, work: Option<rules::Work>) -> Arc<About> {
    let run = &subject.run;
    Arc::new(About {
        definition: Arc::clone(&subject.definition),
        run_id: run.run_id.clone(),
        attempt: subject.attempt,
        scheduled_at: run.scheduled_at,
        due_at: run.due_at,
        trigger: run.trigger.clone(),
        parameters: params::of_run(&subject.definition, &run.parameters),
        work,
    })
}

#[async_trait]
impl Checker for Constrained {
    fn wants(&self, definition: &JobDefinition) -> Wants {
        match rules::read(definition) {
            Ok(read) => Wants { before: read.has(Phase::Before), after: read.has(Phase::After) },
            // What cannot be read is told by the check, and the run fails.
            Err(_) => Wants { before: true, after: false },
        }
    }

    async fn check(&self, subject: &Subject, pulse: &Pulse) -> Checked {
        match self.checker.check_pre_execution(about(subject, None), pulse).await {
            Ok(found) => {
                if found.checked.acts {
                    let key = (subject.run.run_id.clone(), subject.attempt);
                    self.todo().insert(key, found.todo);
                }
                found.checked
            }
            Err(error) => {
                let ActionsDone { verdict, message, counts, notes } = failed(error);
                Checked { verdict, message, acts: false, counts, notes }
            }
        }
    }

    async fn act(&self, subject: &Subject, pulse: &Pulse) -> ActionsDone {
        let todo = self.todo().remove(&(subject.run.run_id.clone(), subject.attempt));
        let Some(todo) = todo else {
            let message = "what was to be done is not known any more".to_owned();
            let (counts, notes) = (Counts::default(), Vec::new());
            return ActionsDone { verdict: Verdict::Fail, message, counts, notes };
        };
        self.checker.act(todo, pulse).await.unwrap_or_else(failed)
    }

    async fn check_post(&self, subject: &Subject, work: &WorkEnd, pulse: &Pulse) -> ActionsDone {
        let work = rules::Work {
            started_at: subject.started_at.unwrap_or(work.at),
            ended_at: work.at,
            exit_code: work.exit_code,
            failure: work.failure.clone(),
        };
        let checked = self.checker.check_post_execution(about(subject, Some(work)), pulse).await;
        checked.unwrap_or_else(failed)
    }

    fn forget(&self, run_id: &RunId) {
        self.todo().retain(|(of, _), _| of != run_id);
    }
}
