//! Runs are made.

use std::sync::Arc;

use arcstr::ArcStr;

use super::{Step, made, shown};
use crate::board::{JobId, Record, Refusal, Reply};
use crate::job::definition::JobDefinition;
use crate::job::due::is_far_ahead;
use crate::job::params::{self, by_option};
use crate::job::record::{Job, Passed};
use crate::job::request::{MOST_RUNS, NewRun, SchedulerNews};
use crate::run::record::MOST_KICKS;
use crate::run::{Rare, Run, RunId, RunState, Timeline, Trigger};
use crate::seams::Timestamp;

impl Step<'_, '_> {
    pub(super) fn advance(
        &mut self,
        job_id: &JobId,
        (from, to): (Timestamp, Timestamp),
        runs: &[NewRun],
        passed: &[Passed],
    ) -> Result<Reply, Refusal> {
        let mut job = self.lasting(job_id)?;
        self.check_advance(&job, (from, to), runs)?;
        for new in runs {
            self.make(&job, new);
        }
        let last = runs.last().map_or(from, |run| run.scheduled_at);
        if passed.is_empty() && to <= last && job.again.is_none() {
            return Ok(shown(job));
        }
        job.reach(to);
        job.count_passed(from, runs, passed.to_vec());
        Ok(shown(self.put(job)))
    }

    /// What was dealt with by runs stays so: only what was passed over comes again.
    pub(super) fn take_back(
        &mut self,
        job_id: &JobId,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Reply, Refusal> {
        let mut job = self.lasting(job_id)?;
        let stands = self.draft.stands(&job);
        let is_ahead = stands == from && job.again.is_none() && is_far_ahead(from, to);
        if !is_ahead || !job.take_back(stands, to) {
            let text = format!("job `{job_id}` stands at {}: nothing is taken back", stands.0);
            return Err(Refusal::State { text });
        }
        Ok(shown(self.put(job)))
    }

    /// What was planned by what is not so any more is planned again.
    fn check_advance(
        &self,
        job: &Job,
        (from, to): (Timestamp, Timestamp),
        runs: &[NewRun],
    ) -> Result<(), Refusal> {
        let refused = |text: String| Err(Refusal::State { text });
        let (job_id, stands) = (&job.job_id, self.draft.stands(job));
        if from != stands {
            return refused(format!(
                "job `{job_id}` stands at {}, not {}: plan it again",
                stands.0, from.0
            ));
        }
        let suspended = self.definition(job).is_none_or(|definition| definition.suspend);
        if !runs.is_empty() && (job.paused.is_some() || suspended) {
            return refused(format!("job `{job_id}` is paused or suspended: plan it again"));
        }
        let mut problems = Vec::new();
        if runs.len() > MOST_RUNS {
            problems.push(format!("at most {MOST_RUNS} runs are made at once, not {}", runs.len()));
        }
        let mut before = from;
        for run in runs {
            let at = run.scheduled_at;
            let is_next = before < at && at <= to && run.run_id == RunId::scheduled(job_id, at);
            if !is_next || !run.trigger.is_of_schedule() {
                problems.push(format!(
                    "`{}` is not a moment of job `{job_id}` after {}",
                    run.run_id, before.0
                ));
            } else if self.draft.run(&run.run_id).is_some() {
                problems.push(format!("run `{}` is there already", run.run_id));
            }
            before = at;
        }
        if problems.is_empty() { Ok(()) } else { Err(Refusal::Invalid { problems }) }
    }

    pub(super) fn trigger(&mut self, job_id: &JobId, new: &NewRun) -> Result<Reply, Refusal> {
        let job = self.lasting(job_id)?;
        let definition = self.definition(&job);
        let Some(definition) = definition else {
            let text = format!("what job `{job_id}` does could not be read: apply it again");
            return Err(Refusal::State { text });
        };
        let problems = triggered(&definition, new);
        if !problems.is_empty() {
            return Err(Refusal::Invalid { problems });
        }
        if self.draft.run(&new.run_id).is_some() {
            let text = format!("run `{}` is there already", new.run_id);
            return Err(Refusal::Exists { text, fields: vec!["run_id".to_owned()] });
        }
        Ok(made(self.make(&job, new)))
    }

    pub(super) fn make(&mut self, job: &Job, new: &NewRun) -> Arc<Run> {
        let run = Arc::new(Run {
            run_id: new.run_id.clone(),
            domain: job.domain.clone(),
            revision: job.revision,
            trigger: new.trigger.clone(),
            scheduled_at: new.scheduled_at,
            due_at: new.due_at,
            state: RunState::PreRun,
            previous_state: None,
            attempt: 0,
            created_at: self.now,
            place: ArcStr::new(),
            started_at: None,
            timeline: Timeline::new(),
            update_id: None,
            version: 1,
            rare: Rare { parameters: new.parameters.clone(), ..Rare::default() }.into(),
        });
        self.draft.put(Record::Run(run.clone()));
        self.tell(SchedulerNews::Made { run_id: new.run_id.clone() });
        run
    }
}

/// Everything that is wrong with a run that somebody asks for.
fn triggered(definition: &JobDefinition, new: &NewRun) -> Vec<String> {
    let job_id = &definition.job_id;
    let mut problems = Vec::new();
    if new.run_id.job() != job_id.as_str() || new.run_id.moment().is_some() {
        problems.push(format!(
            "run_id: `{}` is not one for a run of job `{job_id}` that is asked for",
            new.run_id
        ));
    }
    match &new.trigger {
        Trigger::Schedule | Trigger::CatchUp => {
            problems
                .push("trigger: what the schedule asks for is made by the scheduler".to_owned());
        }
        Trigger::Manual { .. } | Trigger::Backfill { .. } | Trigger::Retry { .. }
            if !definition.manual =>
        {
            problems.push(format!("job `{job_id}` is not to be run by hand (`manual: false`)"));
        }
        Trigger::Action { depth, of } if *depth > MOST_KICKS => problems.push(format!(
            "run `{of}` is the last of {MOST_KICKS} that kicked each other off: these jobs go in a circle; take one of their kickOffJob actions out"
        )),
        Trigger::Manual { .. }
        | Trigger::Backfill { .. }
        | Trigger::Retry { .. }
        | Trigger::Action { .. } => {}
    }
    let how = |name: &str| match &new.trigger {
        Trigger::Action { .. } => "one in the `parameters` of its kickOffJob".to_owned(),
        Trigger::Retry { .. } => {
            format!("one to a run of its own (`kapell job trigger {job_id} -p {name}=VALUE`)")
        }
        Trigger::Manual { .. }
        | Trigger::Backfill { .. }
        | Trigger::Schedule
        | Trigger::CatchUp => by_option(name),
    };
    if let Err(wrong) = params::resolve_told(definition, &new.parameters, how) {
        let of_job = |text| format!("parameters of job `{job_id}`: {text}");
        problems.extend(wrong.into_iter().map(of_job));
    }
    problems
}
