//! `GET /v1/cell/logs/…`: frames of what containers wrote, for as long as more may come.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;
use hyper::header::HeaderValue;
use kapell_core::log::Frame;
use kapell_node::cell::LogOf;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::super::answer::{self, Answer, Problem};
use super::super::body::{Body, Gone, Pipe};
use super::super::query::Query;
use super::super::site::Tools;
use super::rep::Rep;
use super::segments::Reader;

/// How often it is seen whether more was written.
const POLL: Duration = Duration::from_millis(100);

pub(super) async fn logs(
    rep: Arc<dyn Rep>,
    of: LogOf,
    query: &Query,
    tools: &Tools,
) -> Result<Answer, Box<Problem>> {
    let (follow, tail) = (query.switch("follow")?, query.number::<u64>("tail")?);
    let has = {
        let (rep, of) = (Arc::clone(&rep), of.clone());
        spawn_blocking(move || is_id(&of) && (rep.is_live(&of) || !rep.logs(&of).is_empty())).await
    };
    if !has.unwrap_or(false) {
        let text = "nothing of it is kept on this cell";
        return Err(Problem::new(StatusCode::NOT_FOUND, "not_found", text));
    }
    let place = follow.then(|| tools.stream()).transpose()?;
    let reading = Reading { rep, of, reader: Reader::default() };
    let kind = HeaderValue::from_static("application/octet-stream");
    let body = Body::fed(move |pipe| async move {
        if let Err(Ended::Trouble(error)) = reading.tell(&pipe, follow, tail).await {
            pipe.break_off(error).await;
        }
        drop(place);
    });
    Ok(answer::stream(kind, body))
}

/// What is no id must not become a path.
pub(super) fn is_id(of: &LogOf) -> bool {
    match of {
        LogOf::Lrp(key) => key.process_guid.is_valid(),
        LogOf::Task(guid) => guid.is_valid(),
    }
}

struct Reading {
    rep: Arc<dyn Rep>,
    of: LogOf,
    reader: Reader,
}

enum Ended {
    Left,
    Trouble(io::Error),
}

impl From<Gone> for Ended {
    fn from(_: Gone) -> Self {
        Self::Left
    }
}

impl Reading {
    async fn tell(mut self, pipe: &Pipe, follow: bool, tail: Option<u64>) -> Result<(), Ended> {
        if let Some(lines) = tail {
            let frames;
            (self, frames) = self.look(move |reader| reader.tail(lines)).await?;
            pipe.send(encoded(&frames)).await?;
            if !follow {
                return Ok(());
            }
        }
        loop {
            // Asked first: what a container wrote before it was gone is then there to be read.
            let live = self.rep.is_live(&self.of);
            let mut frames;
            (self, frames) = self.look(Reader::read).await?;
            let is_quiet = frames.is_empty();
            while !frames.is_empty() {
                pipe.send(encoded(&frames)).await?;
                (self, frames) = self.read(Reader::read).await?;
            }
            let over = match self.of {
                // Another container may follow; whoever asks knows whether it is wanted.
                LogOf::Lrp(_) => false,
                LogOf::Task(_) => !live,
            };
            if !follow || over {
                return Ok(());
            }
            if is_quiet {
                pipe.meanwhile_if(false, sleep(POLL)).await?;
            }
        }
    }

    /// Reads what is there now.
    async fn look(
        self,
        read: impl FnOnce(&mut Reader) -> io::Result<Vec<Frame>> + Send + 'static,
    ) -> Result<(Self, Vec<Frame>), Ended> {
        let (rep, of) = (Arc::clone(&self.rep), self.of.clone());
        let seen = move |reader: &mut Reader| {
            reader.look(&rep.logs(&of))?;
            read(reader)
        };
        self.read(seen).await
    }

    /// Reads off the runtime: a disk may take its time.
    async fn read(
        mut self,
        read: impl FnOnce(&mut Reader) -> io::Result<Vec<Frame>> + Send + 'static,
    ) -> Result<(Self, Vec<Frame>), Ended> {
        let job = spawn_blocking(move || {
            let frames = read(&mut self.reader);
            (self, frames)
        });
        let (back, frames) = job.await.map_err(|error| Ended::Trouble(io::Error::other(error)))?;
        Ok((back, frames.map_err(Ended::Trouble)?))
    }
}

fn encoded(frames: &[Frame]) -> Vec<u8> {
    frames.iter().flat_map(Frame::encode).collect()
}
