use kapell_core::board::Task;
use kapell_core::run::{RunId, is_of_run};

use super::Check;
use super::book::{Book, task_of_run};
use crate::fleet::fact::Fact;
use crate::fleet::view::View;

/// Of runs that have ended no work is left: nothing runs, and no task is on the board.
///
/// Nobody but a host itself reaches what runs on its machine: what a run that was given up with its host has left there
/// stays until that host leads again. So the machine that counts is that of the leader.
#[derive(Debug, Default)]
pub(super) struct NothingLeft {
    book: Book,
}

fn is_over(run_id: &RunId, view: &View<'_>) -> bool {
    view.records.runs.get(run_id).is_none_or(|run| run.state.is_final())
}

impl Check for NothingLeft {
    fn name(&self) -> &'static str {
        "nothing left"
    }

    fn saw(&mut self, fact: &Fact, _view: &View<'_>) -> Result<(), String> {
        self.book.saw(fact);
        Ok(())
    }

    fn at_end(&mut self, view: &View<'_>) -> Result<(), String> {
        let leads = |host: &usize| view.leader == Some(*host);
        for (host, attempt) in view.works.iter().filter(|(host, _)| leads(host)) {
            if is_over(&attempt.run_id, view) {
                return Err(format!("{attempt:?} has ended, and its work runs on host {host}"));
            }
        }
        for process in view.running.values() {
            let attempt = task_of_run(process).and_then(|guid| self.book.attempt(guid));
            let there = view.machines.get(&process.cell).is_some_and(|it| it.is_up && it.has_agent);
            if let Some(attempt) = attempt.filter(|it| there && is_over(&it.run_id, view)) {
                let cell = &process.cell;
                return Err(format!("{attempt:?} has ended, and its work runs on {cell}"));
            }
        }
        let of_run = |task: &&Task| is_of_run(task.guid());
        for task in view.records.tasks.values().filter(of_run) {
            let attempt = self.book.attempt(task.guid());
            if attempt.is_none_or(|it| is_over(&it.run_id, view)) {
                return Err(format!("{attempt:?} has ended, and its task is there: {task:?}"));
            }
        }
        Ok(())
    }
}
