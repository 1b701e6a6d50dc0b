//! `POST /v1/jobs/{job_id}/backfill`

use std::time::Duration;

use hyper::StatusCode;
use kapell_api::v1::{BackfillWanted, Backfilled, BackfilledRun, When};
use kapell_core::board::{Refusal, Request};
use kapell_core::job::{JobRequest, NewRun, backfill, when};
use kapell_core::seams::Timestamp;
use kapell_node::board::Declined;

use super::super::answer::{self, Answer, Problem};
use super::super::desk::{Desk, look};
use super::call::{Call, intend_job};
use super::jobs::{definition, job_of, name, resolved, schedule};
use super::refusal::{declined, invalid};

/// How long the whole of it may wait for a board that takes nothing just now.
const PATIENCE: Duration = Duration::from_secs(2);
const FIRST_WAIT: Duration = Duration::from_millis(20);

pub(super) async fn backfill(call: Call) -> Result<Answer, Box<Problem>> {
    let now = call.wall;
    let (wanted, asked) = call.json::<BackfillWanted>().await?;
    let (desk, job_id) = (&*asked.desk, job_of(&asked)?);
    let definition = definition(desk, &job_id)?;
    let zone = definition.timezone.as_str();
    let (from, to) = (time(wanted.from, "from", zone, now)?, time(wanted.to, "to", zone, now)?);
    let parameters = resolved(&definition, &wanted.parameters)?;
    let schedule = schedule(&definition)?;
    let (who, tail) = (name(&asked.who), backfill::tail(&parameters, &wanted.key));
    let planned = backfill::plan(&job_id, &schedule, (from, to), now, &who, tail);
    let mut runs = planned.map_err(|why| invalid(why.to_string()))?.runs;
    for run in &mut runs {
        run.parameters.clone_from(&parameters);
    }
    let there = if wanted.dry_run {
        runs.iter().map(|run| found(desk, run) == Some(true)).collect()
    } else {
        intend_job(&asked.note, desk, &job_id).await?;
        make(desk, &runs).await?
    };
    let told = runs.into_iter().zip(there).map(|(run, there)| {
        let NewRun { run_id, scheduled_at, .. } = run;
        BackfilledRun { run_id, scheduled_at, there }
    });
    let told = Backfilled { timezone: definition.timezone.clone(), runs: told.collect() };
    Ok(answer::value(StatusCode::OK, &told))
}

/// Whether the run of this id is the one that is asked for; none if there is none.
fn found(desk: &dyn Desk, asked: &NewRun) -> Option<bool> {
    let found = look(desk, asked.run_id.job(), |records| {
        records.runs.get(&asked.run_id).map(|run| backfill::is_same(run, asked))
    });
    found.flatten()
}

/// Makes them one after the other, and tells of each whether it was there before. If not all can be made, the answer says
/// how many are.
async fn make(desk: &dyn Desk, runs: &[NewRun]) -> Result<Vec<bool>, Box<Problem>> {
    let (mut there, mut patience) = (Vec::with_capacity(runs.len()), PATIENCE);
    for run in runs {
        match one(desk, run, &mut patience).await {
            Ok(before) => there.push(before),
            Err(why) => return Err(partly(why, there.len(), runs.len())),
        }
    }
    Ok(there)
}

async fn one(desk: &dyn Desk, run: &NewRun, patience: &mut Duration) -> Result<bool, Declined> {
    let (mut wait, mut in_doubt) = (FIRST_WAIT, false);
    loop {
        let (job_id, run) = (run.run_id.job_id(), run.clone());
        let asked = Request::Job(JobRequest::Trigger { job_id, run: run.clone() });
        let Err(why) = desk.ask(asked).await else { return Ok(false) };
        let passes = match &why {
            Declined::Refused(Refusal::Exists { .. }) => match found(desk, &run) {
                Some(true) => return Ok(!in_doubt),
                Some(false) => false,
                // It is on its way to the store.
                None => true,
            },
            Declined::Busy | Declined::ReadOnly(_) | Declined::Unsettled(_) => true,
            Declined::Refused(_) | Declined::NotLeading => false,
        };
        in_doubt |= matches!(why, Declined::Unsettled(_));
        if !passes || patience.is_zero() {
            return Err(why);
        }
        wait = wait.min(*patience);
        *patience -= wait;
        tokio::time::sleep(wait).await;
        wait *= 2;
    }
}

/// Why not all were made, with what was.
fn partly(why: Declined, made: usize, of: usize) -> Box<Problem> {
    let problem = declined(why);
    if made == 0 {
        return problem;
    }
    let text =
        format!("{made} of {of} runs are there; ask again for the others, none is made twice: ");
    problem.about(&text).detail("made", made).detail("of", of)
}

fn time(
    text: When,
    field: &str,
    timezone: &str,
    now: Timestamp,
) -> Result<Timestamp, Box<Problem>> {
    match text {
        When::At(at) => Ok(at),
        When::Text(text) => {
            when::read(&text, timezone, now).map_err(|why| invalid(format!("{field}: {why}")))
        }
    }
}
