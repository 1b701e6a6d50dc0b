//! Jobs without Kapell: created by a client that does nothing else, and watched until they are complete.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::batch::v1::Job;
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams, WatchEvent, WatchParams};
use serde_json::json;

use crate::cluster::pod;

/// Requests under way at once.
const AT_ONCE: usize = 8;
const LABEL: &str = "bare";

/// As Kapell makes them, but for what it writes to them for itself.
fn job(name: &str) -> anyhow::Result<Job> {
    let mut pod = pod();
    pod["restartPolicy"] = "Never".into();
    let labels = json!({LABEL: "yes"});
    Ok(serde_json::from_value(json!({
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "backoffLimit": 0, "completions": 1, "parallelism": 1,
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }))?)
}

fn is_complete(job: &Job) -> bool {
    let conditions = job.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|it| it.type_ == "Complete" && it.status == "True")
}

/// How long so many Jobs take, from the first request until the last one is seen to be complete. Then they are deleted.
pub(crate) async fn run(jobs: &Api<Job>, name: &str, count: u32) -> anyhow::Result<Duration> {
    let ours = ListParams::default().labels(LABEL);
    let version =
        jobs.list_metadata(&ours).await?.metadata.resource_version.context("a version")?;
    let watched = WatchParams::default().labels(LABEL);
    let mut changes = std::pin::pin!(jobs.watch(&watched, &version).await?);
    let mut left: BTreeSet<String> = (0..count).map(|number| format!("{name}-{number}")).collect();
    let params = PostParams::default();
    let made: Vec<Job> = left.iter().map(|name| job(name)).collect::<anyhow::Result<_>>()?;
    let begun = Instant::now();
    let create = stream::iter(&made)
        .map(|job| jobs.create(&params, job))
        .buffer_unordered(AT_ONCE)
        .try_for_each(|_| async { Ok(()) });
    let see = async {
        while !left.is_empty() {
            match changes.next().await.context("the watch is over")?? {
                WatchEvent::Modified(job) if is_complete(&job) => {
                    left.remove(&job.metadata.name.unwrap_or_default());
                }
                WatchEvent::Error(status) => bail!("{status:?}"),
                WatchEvent::Added(_)
                | WatchEvent::Modified(_)
                | WatchEvent::Deleted(_)
                | WatchEvent::Bookmark(_) => {}
            }
        }
        Ok(begun.elapsed())
    };
    let (created, took) = tokio::join!(create, see);
    created?;
    let gone = DeleteParams::foreground();
    jobs.delete_collection(&gone, &ours).await?;
    took
}
