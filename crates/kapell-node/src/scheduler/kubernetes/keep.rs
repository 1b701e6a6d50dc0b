//! The logs of pods: followed while they run, or fetched when they end.

#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use kapell_backend::kubernetes::{Error, Lines};
use kapell_core::kubernetes::{Life, PodSight, Presence};
use kapell_core::log::Frame;
use tokio::sync::watch;
use tokio::task::spawn_blocking;

use super::Inner;
use super::held::Log;
use crate::failpoint::around;
use crate::pod_log::{Pod, PodLog};
use crate::scheduler::backend::Attempt;
use crate::scheduler::logs::{Fetched, MOST_FETCHED, RunLogs};

/// So many lines are written together.
const BATCH: usize = 256;
/// So many logs are fetched at once of pods that were not followed: each may be long.
pub(super) const FETCHERS: usize = 16;
/// More than this is not sent. Lines come with their times, which are longer than what we keep for each, but never so much
/// longer that this would be less than what is kept.
const MOST_SENT: u64 = 3 * MOST_FETCHED;

impl Inner {
    /// Keeps all that the pod of an attempt writes until it ends. What is kept already is not fetched again.
    pub(super) async fn keep_log(self: Arc<Self>, attempt: Attempt) {
        let Some(logs) = self.logs.clone() else { return };
        let Some(held) = self.book().all.get(&attempt).cloned() else { return };
        let mut kept = held.log.lock().await;
        if *kept == Log::All {
            return;
        }
        let run = attempt.run_id.clone();
        let origin = Origin { inner: Arc::clone(&self), attempt };
        let is_over = origin.sight().last().is_some_and(|pod| pod.end.is_some());
        let _leave = if is_over { self.fetchers.acquire().await.ok() } else { None };
        match origin.keep(logs).await {
            Ok(()) => *kept = Log::All,
            Err(why) => tracing::warn!(%run, why, "the log of a run on Kubernetes is not whole"),
        }
    }
}

/// The pod of an attempt.
struct Origin {
    inner: Arc<Inner>,
    attempt: Attempt,
}

impl Pod for Origin {
    fn sight(&self) -> Presence<PodSight> {
        let book = self.inner.book();
        book.all.get(&self.attempt).map_or(Presence::Unseen, |held| held.pod.clone())
    }

    fn life(&self, container: &str) -> Life {
        // What is not known any more was released, and what there was of it is gone.
        let book = self.inner.book();
        book.all.get(&self.attempt).map_or(Life::Over, |held| held.life(container))
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.inner.seen.subscribe()
    }

    async fn open(&self, pod: &str, container: &str, follow: bool) -> Result<Lines, Error> {
        let found = {
            let book = self.inner.book();
            let held = book.all.get(&self.attempt);
            held.and_then(|held| {
                let client = self.inner.client(&held.spot.cluster)?.clone();
                Some((client, Arc::clone(&held.spot.namespace), held.calls.clone()))
            })
        };
        let Some((client, namespace, calls)) = found else { return Ok(Lines::none()) };
        let opened = client.log(&namespace, pod, container, follow, Some(MOST_SENT), &calls);
        around("cluster-log", opened).await
    }
}

impl Origin {
    async fn keep(&self, logs: RunLogs) -> Result<(), String> {
        let (names, lost) = match self.sight() {
            Presence::There(pod) => (pod.containers, None),
            // What was kept of it before stays.
            Presence::Gone(_) if logs.read(&self.attempt).is_some() => return Ok(()),
            Presence::Gone(_) => (Vec::new(), Some("its pod is gone".to_owned())),
            Presence::Unseen | Presence::Absent => return Ok(()),
        };
        let many = names.len() > 1;
        let texts = names.into_iter().map(|it| Text {
            prefix: if many { format!("[{}] ", it.name) } else { String::new() },
            log: PodLog::of(it.name.into()),
        });
        let (name, texts) = (self.attempt.clone(), texts.collect());
        let begun = spawn_blocking(move || begin(&logs, &name, texts)).await;
        let (kept, texts) = begun.map_err(failed)?.map_err(failed)?;
        let (mut kept, cut_off) = pass_on(self, texts, kept).await?;
        let (now, trouble) = (self.inner.clock.wall(), lost.or(cut_off));
        let why = trouble.clone();
        let finished = spawn_blocking(move || -> io::Result<()> {
            if let Some(why) = why {
                kept.remark(now, &format!("the log is not whole: {why}"))?;
            }
            kept.finish()
        });
        finished.await.map_err(failed)?.map_err(failed)?;
        trouble.map_or(Ok(()), Err)
    }
}

fn failed(error: impl fmt::Display) -> String {
    format!("cannot keep the log: {error}")
}

/// Goes on where somebody has left off: what the cluster has dropped meanwhile nobody else has.
fn begin(
    logs: &RunLogs,
    attempt: &Attempt,
    mut texts: Vec<Text>,
) -> io::Result<(Fetched, Vec<Text>)> {
    let kept = logs.follow(attempt, |frame| texts.iter_mut().for_each(|text| text.know(&frame)))?;
    Ok((kept, texts))
}

/// Keeps what comes until nothing more does, or until there is no room for more; tells why not all of it came.
async fn pass_on(
    pod: &impl Pod,
    texts: Vec<Text>,
    mut kept: Fetched,
) -> Result<(Fetched, Option<String>), String> {
    let mut coming: FuturesUnordered<_> = texts.into_iter().map(|it| it.next(pod)).collect();
    let mut trouble = None;
    while let Some(first) = coming.next().await {
        // What is there is written together, before more is waited for.
        let (mut frames, mut next) = (Vec::new(), Some(first));
        while let Some((text, read)) = next {
            match read {
                Ok(Some(frame)) => {
                    frames.push(text.named(frame));
                    coming.push(text.next(pod));
                }
                Ok(None) => {}
                Err(error) => trouble = Some(error.to_string()),
            }
            let more = frames.len() < BATCH;
            next = if more { coming.next().now_or_never().flatten() } else { None };
        }
        let written = spawn_blocking(move || write(kept, &frames)).await;
        let has_room;
        (kept, has_room) = written.map_err(failed)?.map_err(failed)?;
        if !has_room {
            break;
        }
    }
    Ok((kept, trouble))
}

/// False once there is no room for more.
fn write(mut kept: Fetched, frames: &[Frame]) -> io::Result<(Fetched, bool)> {
    let mut has_room = true;
    for frame in frames {
        has_room = kept.take(frame)?;
    }
    Ok((kept, has_room))
}

/// What one container writes.
struct Text {
    prefix: String,
    log: PodLog,
}

impl Text {
    async fn next(mut self, pod: &impl Pod) -> (Self, Result<Option<Frame>, Error>) {
        let next = self.log.next(pod).await;
        (self, next)
    }

    fn know(&mut self, frame: &Frame) {
        if let Some(bytes) = frame.bytes.strip_prefix(self.prefix.as_bytes()) {
            self.log.know(&Frame { bytes: bytes.to_vec(), ..frame.clone() });
        }
    }

    fn named(&self, mut frame: Frame) -> Frame {
        if !self.prefix.is_empty() {
            frame.bytes.splice(0..0, self.prefix.bytes());
        }
        frame
    }
}
