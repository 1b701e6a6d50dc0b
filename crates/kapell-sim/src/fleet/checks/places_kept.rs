use std::collections::{BTreeMap, BTreeSet};

use kapell_core::board::Record;
use kapell_core::job::{JobDefinition, Overlap};
use kapell_core::run::{Run, RunId, RunState};

use super::Check;
use super::book::{Book, task_of_run};
use crate::fleet::fact::Fact;
use crate::fleet::jobs::want::{GROUP, GROUP_LIMIT};
use crate::fleet::view::View;

/// Of a job and of a group no more runs work at the same time than may.
///
/// Counted are runs that have not ended and whose work really runs somewhere. A limit that is changed counts for those
/// that get their places after that: whoever got one under a limit keeps it, and works only later. Work of a run that was
/// given up because its host was lost is not counted: nobody can reach it.
#[derive(Debug, Default)]
pub(super) struct PlacesKept {
    book: Book,
    /// The highest limit of its job that was in force while a run could have got its place.
    allowed: BTreeMap<RunId, usize>,
    /// Where the work of runs runs.
    working: BTreeMap<RunId, BTreeSet<String>>,
}

fn limit(definition: &JobDefinition) -> usize {
    match definition.overlap {
        Overlap::Allow => usize::MAX,
        Overlap::Skip
        | Overlap::Queue
        | Overlap::QueueOne
        | Overlap::CancelOther
        | Overlap::TerminateOther => definition.max_concurrent_runs as usize,
    }
}

impl PlacesKept {
    /// A run gets its place at some time between being made and being launched.
    fn admits(&mut self, fact: &Fact, view: &View<'_>) {
        let Fact::Committed { changes, .. } = fact else { return };
        for after in changes.iter().filter_map(|change| change.after.as_ref()) {
            if let Record::Run(run) = after
                && run.state == RunState::PreRun
                && let Some((_, definition)) = view.records.job(&run.run_id.job_id())
            {
                self.allowed.entry(run.run_id.clone()).or_insert_with(|| limit(definition));
            }
            if let Record::Definition(of) = after {
                let job = &of.definition.job_id;
                for (run_id, allowed) in &mut self.allowed {
                    let run = view.records.runs.get(run_id);
                    if run_id.job_id() == *job && run.is_some_and(|it| it.state == RunState::PreRun)
                    {
                        *allowed = limit(&of.definition).max(*allowed);
                    }
                }
            }
        }
        self.allowed.retain(|run_id, _| view.records.runs.contains_key(run_id));
    }

    fn over(&mut self, run_id: &RunId, place: &str) {
        if let Some(places) = self.working.get_mut(run_id) {
            places.remove(place);
            if places.is_empty() {
                self.working.remove(run_id);
            }
        }
    }

    /// Runs that work and have not ended.
    fn at_work<'a>(&'a self, view: &'a View<'_>) -> impl Iterator<Item = &'a Run> {
        let runs = self.working.keys().filter_map(|run_id| view.records.runs.get(run_id));
        runs.map(AsRef::as_ref).filter(|run| !run.state.is_final())
    }

    fn begins(&mut self, run_id: &RunId, place: String, view: &View<'_>) -> Result<(), String> {
        self.working.entry(run_id.clone()).or_default().insert(place);
        let job = run_id.job_id();
        let own: Vec<&Run> = self.at_work(view).filter(|run| run.run_id.job_id() == job).collect();
        let current = view.records.jobs.get(&job).map(|job| job.revision);
        let revisions = own.iter().map(|run| run.revision).chain(current);
        let definitions = revisions.filter_map(|revision| self.book.definition(&job, revision));
        let allowed = own.iter().filter_map(|run| self.allowed.get(&run.run_id).copied());
        let most = definitions.map(limit).chain(allowed).max();
        if most.is_some_and(|most| own.len() > most) && !self.book.is_spoiled(&job) {
            let own: Vec<&RunId> = own.iter().map(|run| &run.run_id).collect();
            return Err(format!("{own:?} work at the same time, and {most:?} of {job} may"));
        }
        let grouped: Vec<&RunId> = self
            .at_work(view)
            .filter(|run| {
                let definition = self.book.definition(&run.run_id.job_id(), run.revision);
                let group = definition.and_then(|it| it.group.as_ref());
                group.is_some_and(|group| group.name.as_str() == GROUP)
                    && !self.book.is_spoiled(&run.run_id.job_id())
            })
            .map(|run| &run.run_id)
            .collect();
        if grouped.len() > GROUP_LIMIT as usize {
            return Err(format!("{grouped:?} work at the same time, and {GROUP_LIMIT} may"));
        }
        Ok(())
    }
}

impl Check for PlacesKept {
    fn name(&self) -> &'static str {
        "places kept"
    }

    fn saw(&mut self, fact: &Fact, view: &View<'_>) -> Result<(), String> {
        self.book.saw(fact);
        self.admits(fact, view);
        if let Fact::WorkBegan { host, attempt, .. } = fact {
            let place = format!("host {host} {}", attempt.number);
            return self.begins(&attempt.run_id, place, view);
        }
        if let Fact::WorkOver { host, attempt } = fact {
            self.over(&attempt.run_id, &format!("host {host} {}", attempt.number));
        }
        if let Fact::Began(process) | Fact::Over(process) = fact
            && let Some(attempt) = task_of_run(process).and_then(|guid| self.book.attempt(guid))
        {
            let (run_id, place) = (attempt.run_id.clone(), process.container.to_string());
            if matches!(fact, Fact::Over(_)) {
                self.over(&run_id, &place);
                return Ok(());
            }
            return self.begins(&run_id, place, view);
        }
        Ok(())
    }

    fn at_end(&mut self, _view: &View<'_>) -> Result<(), String> {
        Ok(())
    }
}
