//! Jobs of files that hold thousands of them: asked about in one go, and applied many at a time.

use std::collections::BTreeMap;

use kapell_api::client::{Client, Error};
use kapell_api::v1::JobView;
use kapell_core::board::JobId;
use kapell_core::job::JobDefinition;
use kapell_core::manifest::Document;
use tokio::task::JoinSet;

use super::apply::{Step, job};
use crate::say;

/// So many requests are under way at once: enough for a host to commit them together.
const AT_ONCE: usize = 32;
/// With no more jobs than that each is asked about by its name, not all that the host has.
const FEW: usize = 8;

/// What the host has of the jobs that documents are about.
pub(super) async fn standing(
    documents: &[Document],
    client: &Client,
) -> Result<BTreeMap<JobId, JobView>, Error> {
    let wanted: Vec<&JobDefinition> = documents.iter().filter_map(job).collect();
    let mut stand = BTreeMap::new();
    if wanted.len() > FEW {
        let all = client.jobs(None, None).await?.items;
        stand.extend(all.into_iter().map(|view| (view.job.job_id.clone(), view)));
        return Ok(stand);
    }
    for job in wanted {
        match client.job(job.job_id.as_str()).await {
            Ok(view) => drop(stand.insert(job.job_id.clone(), view)),
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(stand)
}

/// Whether the host would take all of them; if not, says why not, of each.
pub(super) async fn are_taken(
    jobs: impl Iterator<Item = &JobDefinition>,
    client: &Client,
) -> Result<bool, Error> {
    let jobs: Vec<&JobDefinition> = jobs.collect();
    let mut taken = true;
    for some in jobs.chunks(AT_ONCE) {
        let checked = ask(some, client, |client, job| async move { client.check_job(&job).await });
        for (job, checked) in some.iter().zip(checked.await) {
            match checked {
                Ok(()) => {}
                Err(error @ Error::Problem { status: 403 | 409 | 422, .. }) => {
                    taken = false;
                    say(&format!("error: job/{} is refused: {error}\n", job.job_id));
                }
                Err(error) => return Err(error),
            }
        }
    }
    if !taken {
        say("error: nothing was changed\n");
    }
    Ok(taken)
}

/// How many of the next documents are done at once: jobs, or one of something else.
pub(super) fn together(rest: &[(&Document, &Step)]) -> usize {
    let jobs = rest.iter().take(AT_ONCE).take_while(|(document, _)| job(document).is_some());
    jobs.count().max(1)
}

/// Applies those that change something.
pub(super) async fn apply(some: &[(&Document, &Step)], client: &Client) -> Vec<Result<(), Error>> {
    let changed = some.iter().filter(|(_, step)| **step != Step::Unchanged);
    let jobs: Vec<&JobDefinition> = changed.filter_map(|(document, _)| job(document)).collect();
    let apply =
        |client: Client, job: JobDefinition| async move { client.apply_job(&job).await.map(drop) };
    let mut done = ask(&jobs, client, apply).await.into_iter();
    let mut each = |step: &Step| if *step == Step::Unchanged { None } else { done.next() };
    some.iter().map(|(_, step)| each(step).unwrap_or(Ok(()))).collect()
}

/// The answers, in the order of the jobs.
async fn ask<F>(
    jobs: &[&JobDefinition],
    client: &Client,
    about: impl Fn(Client, JobDefinition) -> F,
) -> Vec<Result<(), Error>>
where
    F: Future<Output = Result<(), Error>> + Send + 'static,
{
    let mut asked = JoinSet::new();
    for (at, job) in jobs.iter().enumerate() {
        let answer = about(client.clone(), (*job).clone());
        asked.spawn(async move { (at, answer.await) });
    }
    let mut answers = asked.join_all().await;
    answers.sort_by_key(|(at, _)| *at);
    answers.into_iter().map(|(_, answer)| answer).collect()
}
