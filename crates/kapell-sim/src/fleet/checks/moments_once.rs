use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kapell_core::board::{JobId, Record, RecordKey, Request};
use kapell_core::job::due::is_far_ahead;
use kapell_core::job::{Job, JobDefinition, JobRequest, PassReason, Passed};
use kapell_core::run::{Run, RunId};
use kapell_core::seams::Timestamp;

use super::Check;
use super::book::{Book, job_of};
use crate::fleet::fact::Fact;
use crate::fleet::jobs::want::Beats;
use crate::fleet::ledger::Change;
use crate::fleet::view::View;

/// After so long somebody leads, once nothing goes wrong.
const LED: Duration = Duration::from_secs(42);
/// How late a moment may be planned then.
const LATE: Duration = Duration::from_secs(4);

/// Each moment of a job has one run, or a reason is on record why it has none.
///
/// Which moments a job has is computed here from the text of its definitions. A commit that takes a job from where it
/// stood to a later moment makes a run of each moment between them or says in the record of the job why not, with a
/// reason that is true. No moment has a second run, ever. Another schedule begins when it is applied: what the one before
/// had left is out of it. Once nothing goes wrong, moments are dealt with before they come, and no job stands far ahead of
/// the clock because of moments that were passed over.
#[derive(Debug, Default)]
pub(super) struct MomentsOnce {
    book: Book,
    jobs: BTreeMap<JobId, Known>,
    calm_since: Option<Duration>,
}

#[derive(Debug, Default)]
struct Known {
    stands: Option<Timestamp>,
    made: BTreeSet<Timestamp>,
}

/// What one commit does to one job.
#[derive(Debug, Default)]
struct Turn<'a> {
    before: Option<&'a Job>,
    after: Option<&'a Job>,
    made: Vec<&'a Run>,
}

fn as_job(record: Option<&Record>) -> Option<&Job> {
    match record {
        Some(Record::Job(job)) => Some(job),
        Some(
            Record::Desired(_)
            | Record::Actual(_)
            | Record::Task(_)
            | Record::Domain(_)
            | Record::Definition(_)
            | Record::Run(_)
            | Record::Message(_),
        )
        | None => None,
    }
}

fn as_made(change: &Change) -> Option<&Run> {
    match (&change.before, &change.after) {
        (None, Some(Record::Run(run))) if run.trigger.is_of_schedule() => Some(run),
        (_, _) => None,
    }
}

impl MomentsOnce {
    fn committed(&mut self, changes: &[Change], view: &View<'_>) -> Result<(), String> {
        let touched: BTreeSet<JobId> = changes.iter().filter_map(|it| job_of(&it.key)).collect();
        for job_id in touched {
            let of_it = |it: &&Change| job_of(&it.key).as_ref() == Some(&job_id);
            let stands = view.records.jobs.get(&job_id);
            let mut turn = Turn { before: stands, after: stands, made: Vec::new() };
            for change in changes.iter().filter(of_it) {
                if matches!(change.key, RecordKey::Job(_)) {
                    turn.before = as_job(change.before.as_ref());
                    turn.after = as_job(change.after.as_ref());
                }
                turn.made.extend(as_made(change));
            }
            self.turn(&job_id, &turn)?;
        }
        Ok(())
    }

    fn turn(&mut self, job_id: &JobId, turn: &Turn<'_>) -> Result<(), String> {
        let Some(after) = turn.after else {
            self.jobs.remove(job_id);
            return Ok(());
        };
        if self.book.is_spoiled(job_id) {
            return Ok(());
        }
        for run in &turn.made {
            self.made(job_id, run)?;
        }
        let known = self.jobs.entry(job_id.clone()).or_default();
        let newest = known.made.last().copied().filter(|_| after.again.is_none());
        let stands = newest.map_or(after.mark, |newest| newest.max(after.mark));
        let from = known.stands.replace(stands);
        let (Some(before), Some(from)) = (turn.before.filter(|job| !job.removed), from) else {
            return Ok(());
        };
        let was = self.book.definition(job_id, before.revision);
        let is = self.book.definition(job_id, after.revision);
        let (Some(was), Some(is)) = (was, is) else { return Ok(()) };
        if Beats::of(was) != Beats::of(is) {
            return Ok(());
        }
        // What lies behind what was passed over was dealt with before the job went back.
        let to = before.again.map_or(stands, |again| stands.min(again.until));
        self.between(job_id, (from, to), turn, was, is)
    }

    /// A moment has a run from now on.
    fn made(&mut self, job_id: &JobId, run: &Run) -> Result<(), String> {
        let (run_id, at) = (&run.run_id, run.scheduled_at);
        if *run_id != RunId::scheduled(job_id, at) {
            return Err(format!("{run_id} is not the run of {}", at.0));
        }
        if let Some(definition) = self.book.definition(job_id, run.revision) {
            let beats = Beats::of(definition);
            if !beats.has(at) || beats.excludes(at) {
                return Err(format!("{run_id} is of no moment of its job: {definition:?}"));
            }
        }
        if !self.jobs.entry(job_id.clone()).or_default().made.insert(at) {
            return Err(format!("{run_id} is made a second time"));
        }
        Ok(())
    }

    /// All moments between where a job stood and where it stands have become something.
    fn between(
        &self,
        job_id: &JobId,
        (from, to): (Timestamp, Timestamp),
        turn: &Turn<'_>,
        was: &JobDefinition,
        is: &JobDefinition,
    ) -> Result<(), String> {
        let (Some(before), Some(after), beats) = (turn.before, turn.after, Beats::of(is)) else {
            return Ok(());
        };
        let made = self.jobs.get(job_id).map(|known| &known.made);
        let mut at = from;
        while let Some(next) = beats.after(at).filter(|next| *next <= to) {
            at = next;
            if made.is_some_and(|made| made.contains(&at)) {
                continue;
            }
            let covers = |passed: &&Passed| passed.from <= at && at <= passed.to;
            let mut reasons = after.passed.iter().filter(covers);
            let true_one = reasons.clone().any(|passed| {
                let held = [(before, was), (after, is)];
                held.iter().any(|(job, definition)| is_true(&passed.why, job, definition, at))
            });
            if !true_one {
                let why = reasons.next().map(|passed| &passed.why);
                return Err(format!(
                    "{job_id} went from {} to {} over {}, which is no run, for {why:?}",
                    from.0, to.0, at.0
                ));
            }
        }
        Ok(())
    }

    /// Somebody puts a job to rest: until now all its moments were dealt with in time.
    fn in_time(&self, job_id: &JobId, view: &View<'_>) -> Result<(), String> {
        let calm = self.calm_since.is_some_and(|since| view.now >= since + LED);
        let job = view.records.job(job_id).filter(|(job, _)| !job.removed && job.paused.is_none());
        let Some((job, definition)) = job.filter(|(_, it)| calm && !it.suspend) else {
            return Ok(());
        };
        let stands = view.records.stands(job);
        let over = |passed: &Passed| view.wall.after(LATE) < passed.to;
        if is_far_ahead(stands, view.wall) && job.again.is_none() && job.passed.iter().any(over) {
            return Err(format!("{job_id} stands at {}, far ahead: {job:?}", stands.0));
        }
        match Beats::of(definition).after(stands).filter(|next| next.after(LATE) < view.wall) {
            Some(next) if !self.book.is_spoiled(job_id) => {
                Err(format!("{job_id} stands at {}, and {} is long past", stands.0, next.0))
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// Whether a reason can be the one: what it goes by is so.
fn is_true(why: &PassReason, job: &Job, definition: &JobDefinition, at: Timestamp) -> bool {
    match why {
        PassReason::Suspended { .. } => definition.suspend,
        PassReason::Paused { .. } => job.paused.is_some(),
        PassReason::Excluded { .. } => Beats::of(definition).excludes(at),
        PassReason::NotCaughtUp { policy } => definition.catch_up.policy.name() == policy,
        PassReason::TooOld { window_ms } => {
            definition.catch_up.window.get() == Duration::from_millis(*window_ms)
        }
        PassReason::DeadlineMissed { late_ms, deadline_ms } => {
            let deadline = Duration::from_millis(*deadline_ms);
            let named = definition.starting_deadline.is_some_and(|it| it.get() == deadline);
            named && late_ms > deadline_ms
        }
        PassReason::SkippedByAction => true,
        PassReason::SameInstant => false,
    }
}

impl Check for MomentsOnce {
    fn name(&self) -> &'static str {
        "moments once"
    }

    fn saw(&mut self, fact: &Fact, view: &View<'_>) -> Result<(), String> {
        self.book.saw(fact);
        if let Fact::FaultsOver = fact {
            self.calm_since = Some(view.now);
        }
        if let Fact::Committed { changes, .. } = fact {
            return self.committed(changes, view);
        }
        let Fact::Asked { request: Request::Job(request) } = fact else { return Ok(()) };
        if let JobRequest::Apply { definition } = request {
            return self.in_time(&definition.job_id, view);
        }
        if let JobRequest::Remove { job_id, .. } = request {
            return self.in_time(job_id, view);
        }
        Ok(())
    }

    fn at_end(&mut self, _view: &View<'_>) -> Result<(), String> {
        Ok(())
    }
}
