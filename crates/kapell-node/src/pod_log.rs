//! What one container of a pod writes, to its end: followed from its start, and read once more when it is over.
//!
//! A log that is followed ends early if its container only just starts, and one that was cut ends like one that is whole. So
//! only what is read after the end counts as all of it; what was passed on before is not passed on again.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use kapell_backend::kubernetes::{Error, Line, Lines};
use kapell_core::kubernetes::{Course, Life, PodSight, Presence};
use kapell_core::log::{Frame, Mark, Stream};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// What a cluster says of a container that has written nothing because it was never started, and what its node says of one
/// that it does not know yet.
const NOTHING: [&str; 2] = ["waiting to start", "is not available"];
/// How long after the end of a log its container may take to be told as over: one of which something was read, and one
/// that may have been asked for too early.
const AFTERWARDS: Duration = Duration::from_secs(30);
const AFTER_NOTHING: Duration = Duration::from_secs(5);
const AGAIN: Duration = Duration::from_millis(500);
/// How long nothing may come of a log that is all there. A connection that is dead looks like a container that has nothing
/// to say, so only then can it be told.
const STUCK: Duration = Duration::from_secs(5);

/// A pod whose containers write.
pub(crate) trait Pod: Sync {
    fn sight(&self) -> Presence<PodSight>;

    /// How far a container is.
    fn life(&self, container: &str) -> Life;

    /// Tells of changes from now on.
    fn changes(&self) -> watch::Receiver<u64>;

    /// Asks for the log of a container from its beginning.
    fn open(
        &self,
        pod: &str,
        container: &str,
        follow: bool,
    ) -> impl Future<Output = Result<Lines, Error>> + Send;

    /// Waits until a container is one of these.
    fn becomes(&self, container: &str, lives: &[Life]) -> impl Future<Output = ()> + Send {
        async move {
            let mut changes = self.changes();
            while !lives.contains(&self.life(container)) && changes.changed().await.is_ok() {}
        }
    }
}

/// The log of one container.
#[derive(Debug)]
pub(crate) struct PodLog {
    container: String,
    mark: Mark,
    reading: Reading,
    /// What was read and not yet passed on.
    ready: VecDeque<Frame>,
}

#[derive(Debug)]
enum Reading {
    /// It is to be asked for, once more or for the first time.
    Closed,
    Open {
        lines: Lines,
        /// All that there will ever be is in it.
        is_last: bool,
        /// A line without an end, which may go on.
        part: Option<Line>,
        /// Nothing came yet.
        is_empty: bool,
    },
    Whole,
}

impl PodLog {
    pub(crate) fn of(container: String) -> Self {
        let (mark, reading, ready) = (Mark::default(), Reading::Closed, VecDeque::new());
        Self { container, mark, reading, ready }
    }

    /// This is no news: it was passed on before, by somebody else.
    pub(crate) fn know(&mut self, frame: &Frame) {
        self.mark.is_news(frame);
    }

    /// The next piece, as soon as there is one; none when nothing more can come. An error if the cluster does not give it:
    /// there is no more then. May be given up and asked again: nothing is lost.
    pub(crate) async fn next(&mut self, pod: &impl Pod) -> Result<Option<Frame>, Error> {
        loop {
            if let Some(frame) = self.ready.pop_front() {
                return Ok(Some(frame));
            }
            let Reading::Open { lines, is_last, part, is_empty } = &mut self.reading else {
                if matches!(self.reading, Reading::Whole) {
                    return Ok(None);
                }
                self.open(pod).await?;
                continue;
            };
            let stuck = async {
                pod.becomes(&self.container, &[Life::Over]).await;
                sleep(STUCK).await;
            };
            let read = tokio::select! {
                biased;
                read = lines.next() => read,
                () = stuck => {
                    self.reading = Reading::Closed;
                    continue;
                }
            };
            match read {
                Ok(Some(line)) => {
                    *is_empty = false;
                    let before = part.take();
                    let (line, held) = if line.bytes.ends_with(b"\n") {
                        (Some(line), None)
                    } else {
                        (None, Some(line))
                    };
                    *part = held;
                    before.into_iter().chain(line).for_each(|line| self.take(line));
                }
                Ok(None) if *is_last => {
                    let rest = part.take();
                    self.reading = Reading::Whole;
                    if let Some(line) = rest {
                        self.take(line);
                    }
                }
                // One that was followed may have been cut, or have begun too early: it is read again.
                Ok(None) => {
                    let limit = if *is_empty { AFTER_NOTHING } else { AFTERWARDS };
                    let over = pod.becomes(&self.container, &[Life::Over]);
                    let _writes_on = timeout(limit, over).await;
                    self.reading = Reading::Closed;
                }
                Err(_) => {
                    self.reading = Reading::Closed;
                    sleep(AGAIN).await;
                }
            }
        }
    }

    async fn open(&mut self, pod: &impl Pod) -> Result<(), Error> {
        pod.becomes(&self.container, &[Life::Writes, Life::Over]).await;
        let is_last = pod.life(&self.container) == Life::Over;
        let Presence::There(seen) = pod.sight() else {
            // Whoever has nothing to read from has read all of it.
            self.reading = Reading::Whole;
            return Ok(());
        };
        match pod.open(&seen.name, &self.container, !is_last).await {
            Ok(lines) => {
                self.mark.restart();
                self.reading = Reading::Open { lines, is_last, part: None, is_empty: true };
            }
            Err(error) => match error.course() {
                Some(Course::Missing) if is_last => self.reading = Reading::Whole,
                Some(Course::GiveUp) if is_last && is_of_nothing(&error) => {
                    self.reading = Reading::Whole;
                }
                Some(Course::GiveUp | Course::Exists | Course::Stale) if !is_of_nothing(&error) => {
                    self.reading = Reading::Whole;
                    return Err(error);
                }
                // It may pass, or the node has not heard of it yet, or has just forgotten it, which is about to be told.
                Some(
                    Course::Slower { .. }
                    | Course::Again
                    | Course::Missing
                    | Course::GiveUp
                    | Course::Exists
                    | Course::Stale,
                )
                | None => sleep(AGAIN).await,
            },
        }
        Ok(())
    }

    fn take(&mut self, line: Line) {
        let frame = Frame { stream: Stream::Out, at: line.at, bytes: line.bytes };
        if self.mark.is_news(&frame) {
            self.ready.push_back(frame);
        }
    }
}

fn is_of_nothing(error: &Error) -> bool {
    let said = error.to_string();
    NOTHING.iter().any(|text| said.contains(text))
}
