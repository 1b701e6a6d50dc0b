//! `GET /v1/cell/logs/…`: frames of what containers wrote, for as long as more may come.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;
use hyper::header::HeaderValue;
use kapell_core::log::Frame;
use kapell_node::cell::{ContainerLogs, LogOf};
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
    let reading = Reading::of(Arc::new(Kept { rep, of }), false);
    let kind = HeaderValue::from_static("application/octet-stream");
    let body = Body::fed(move |pipe| async move {
        reading.tell(&pipe, follow, tail, Ok).await;
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

/// A log in files that are perhaps still written.
pub(in super::super) trait Files: Send + Sync {
    fn is_live(&self) -> bool;
    /// Where it lies, the oldest container first.
    fn logs(&self) -> Vec<ContainerLogs>;
    /// Whether nothing more comes once it is not live.
    fn ends(&self) -> bool;
}

/// What a cell keeps of a container.
struct Kept {
    rep: Arc<dyn Rep>,
    of: LogOf,
}

impl Files for Kept {
    fn is_live(&self) -> bool {
        self.rep.is_live(&self.of)
    }

    fn logs(&self) -> Vec<ContainerLogs> {
        self.rep.logs(&self.of)
    }

    fn ends(&self) -> bool {
        match self.of {
            // Another container may follow; whoever asks knows whether it is wanted.
            LogOf::Lrp(_) => false,
            LogOf::Task(_) => true,
        }
    }
}

/// A reader of such a log.
pub(in super::super) struct Reading {
    files: Arc<dyn Files>,
    reader: Reader,
    /// Whether comments may stand between what is sent.
    beats: bool,
}

enum Ended {
    Left,
    Trouble(String),
}

impl From<Gone> for Ended {
    fn from(_: Gone) -> Self {
        Self::Left
    }
}

impl From<io::Error> for Ended {
    fn from(error: io::Error) -> Self {
        Self::Trouble(error.to_string())
    }
}

impl Reading {
    pub(in super::super) fn of(files: Arc<dyn Files>, beats: bool) -> Self {
        Self { files, reader: Reader::default(), beats }
    }

    /// Sends frames as `write` has them, to the end. False if somebody left or could not be told all.
    pub(in super::super) async fn tell(
        self,
        pipe: &Pipe,
        follow: bool,
        tail: Option<u64>,
        write: impl FnMut(Vec<u8>) -> Result<Vec<u8>, String> + Send,
    ) -> bool {
        match self.pour(pipe, follow, tail, write).await {
            Ok(()) => true,
            Err(Ended::Left) => false,
            Err(Ended::Trouble(why)) => {
                pipe.break_off(why).await;
                false
            }
        }
    }

    async fn pour(
        mut self,
        pipe: &Pipe,
        follow: bool,
        tail: Option<u64>,
        mut write: impl FnMut(Vec<u8>) -> Result<Vec<u8>, String> + Send,
    ) -> Result<(), Ended> {
        let mut written = |frames: &[Frame]| write(encoded(frames)).map_err(Ended::Trouble);
        if let Some(lines) = tail {
            let frames;
            (self, frames) = self.look(move |reader| reader.tail(lines)).await?;
            pipe.send(written(&frames)?).await?;
            if !follow {
                return Ok(());
            }
        }
        loop {
            // Asked first: what a container wrote before it was gone is then there to be read.
            let live = self.files.is_live();
            let mut frames;
            (self, frames) = self.look(Reader::read).await?;
            let is_quiet = frames.is_empty();
            while !frames.is_empty() {
                pipe.send(written(&frames)?).await?;
                (self, frames) = self.read(Reader::read).await?;
            }
            let over = self.files.ends() && !live;
            if !follow || over {
                return Ok(());
            }
            if is_quiet {
                pipe.meanwhile_if(self.beats, sleep(POLL)).await?;
            }
        }
    }

    /// Reads what is there now.
    async fn look(
        self,
        read: impl FnOnce(&mut Reader) -> io::Result<Vec<Frame>> + Send + 'static,
    ) -> Result<(Self, Vec<Frame>), Ended> {
        let files = Arc::clone(&self.files);
        let seen = move |reader: &mut Reader| {
            reader.look(&files.logs())?;
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
        let (back, frames) = job.await.map_err(|error| Ended::Trouble(error.to_string()))?;
        Ok((back, frames?))
    }
}

fn encoded(frames: &[Frame]) -> Vec<u8> {
    frames.iter().flat_map(Frame::encode).collect()
}
