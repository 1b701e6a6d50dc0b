//! `GET /v1/logs/…`: finds the cells that have a log, and passes on what they send.

mod format;
mod source;

use std::sync::Arc;
use std::time::Duration;

use hyper::header::HeaderValue;
use kapell_api::v1::{LogFormat, LogQuery};
use kapell_core::board::CellPresence;
use tokio::time::sleep;

use super::super::answer::{self, Answer, Problem};
use super::super::body::{Body, Gone, Pipe};
use super::super::desk::Desk;
use super::super::query::{Query, bad};
use super::call::Call;
use super::upstream::{Opened, Peer, Upstream};
pub(super) use format::Formatter;
pub(super) use source::LogSource;

/// How often it is seen whether an instance has moved.
const LOOK: Duration = Duration::from_millis(250);

pub(super) fn query(query: &Query) -> Result<LogQuery, Box<Problem>> {
    let format = match query.get("format") {
        None | Some("raw") => LogFormat::Raw,
        Some("frames") => LogFormat::Frames,
        Some("events") => LogFormat::Events,
        Some(other) => {
            return Err(bad(&format!("`{other}` is no format: raw, frames, events"), "format"));
        }
    };
    Ok(LogQuery { follow: query.switch("follow")?, tail: query.number("tail")?, format })
}

pub(super) async fn answer(
    call: &Call,
    source: LogSource,
    upstream: &Arc<Upstream>,
) -> Result<Answer, Box<Problem>> {
    if !source.is_seen(call) {
        return Err(source.missing());
    }
    relay(call, source, upstream).await
}

/// The same for whoever is known to see it.
pub(super) async fn relay(
    call: &Call,
    source: LogSource,
    upstream: &Arc<Upstream>,
) -> Result<Answer, Box<Problem>> {
    let query = query(&call.query)?;
    let place = query.follow.then(|| upstream.tools.stream()).transpose()?;
    let mut cells = source.cells(&*call.desk).into_iter();
    let mut open = None;
    let mut trouble = None;
    for cell in cells.by_ref() {
        match upstream.open(Peer::Cell(&cell), &source.path(&query)).await {
            Ok(Some(opened)) => {
                open = Some((cell, opened));
                break;
            }
            Ok(None) => {}
            Err(problem) => trouble = Some(problem),
        }
    }
    if open.is_none() {
        if let Some(problem) = trouble {
            return Err(problem);
        }
        if !source.is_known(&*call.desk) {
            return Err(source.missing());
        }
    }
    let relay = Relay {
        desk: Arc::clone(&call.desk),
        upstream: Arc::clone(upstream),
        source,
        query,
        rest: cells.collect(),
    };
    let format = Formatter::new(query.format);
    let kind = HeaderValue::from_static(format.content_type());
    let body = Body::fed(move |pipe| async move {
        relay.run(pipe, open, format).await;
        drop(place);
    });
    Ok(answer::stream(kind, body))
}

/// A log on its way from the cells to a reader.
struct Relay {
    desk: Arc<dyn Desk>,
    upstream: Arc<Upstream>,
    source: LogSource,
    query: LogQuery,
    /// Those that may have older parts of it.
    rest: Vec<CellPresence>,
}

type Open = Option<(CellPresence, Opened)>;

impl Relay {
    async fn run(mut self, pipe: Pipe, open: Open, mut format: Formatter) {
        let done = async {
            pipe.send(format.begin()).await?;
            if self.query.follow {
                self.follow(&pipe, open, &mut format).await?;
            } else {
                self.read(&pipe, open, &mut format).await?;
            }
            pipe.send(format.end()).await
        };
        let _left: Result<(), Gone> = done.await;
    }

    /// All that there is now.
    async fn read(
        &mut self,
        pipe: &Pipe,
        mut open: Open,
        format: &mut Formatter,
    ) -> Result<(), Gone> {
        let mut rest = std::mem::take(&mut self.rest).into_iter();
        loop {
            if let Some((_, opened)) = &mut open {
                while let Some(bytes) = pipe.meanwhile_if(format.beats(), opened.next()).await? {
                    pass(pipe, format, bytes).await?;
                }
            }
            let Some(cell) = rest.next() else { return Ok(()) };
            format.restart();
            // A cell that does not answer has told what it had when it was asked first.
            let opened =
                self.upstream.open(Peer::Cell(&cell), &self.source.path(&self.query)).await;
            open = opened.ok().flatten().map(|opened| (cell, opened));
        }
    }

    /// Goes on to wherever the instance goes, until it is gone for good.
    async fn follow(
        &mut self,
        pipe: &Pipe,
        mut open: Open,
        format: &mut Formatter,
    ) -> Result<(), Gone> {
        loop {
            let Some((cell, opened)) = &mut open else {
                if !self.source.may_write(&*self.desk) {
                    return Ok(());
                }
                pipe.meanwhile_if(format.beats(), sleep(LOOK)).await?;
                open = self.reopen().await;
                format.restart();
                continue;
            };
            let next = async {
                tokio::select! {
                    biased;
                    bytes = opened.next() => Some(bytes),
                    () = sleep(LOOK) => None,
                }
            };
            match pipe.meanwhile_if(format.beats(), next).await? {
                Some(Some(bytes)) => pass(pipe, format, bytes).await?,
                Some(None) if self.source.ends() => return Ok(()),
                Some(None) => open = None,
                None if self.source.has_left(&*self.desk, &cell.cell_id) => open = None,
                None => {}
            }
        }
    }

    /// Where it is now, from the beginning: nothing of it was seen yet.
    async fn reopen(&self) -> Open {
        let path = self.source.path(&LogQuery { tail: None, ..self.query });
        for cell in self.source.current_cells(&*self.desk) {
            if let Ok(Some(opened)) = self.upstream.open(Peer::Cell(&cell), &path).await {
                return Some((cell, opened));
            }
        }
        None
    }
}

pub(super) async fn pass(
    pipe: &Pipe,
    format: &mut Formatter,
    bytes: Result<bytes::Bytes, String>,
) -> Result<(), Gone> {
    let text = match bytes {
        Ok(bytes) => format.take(&bytes),
        Err(why) => Err(why),
    };
    match text {
        Ok(text) => pipe.send(text).await,
        Err(why) => {
            pipe.break_off(why).await;
            Err(Gone)
        }
    }
}
