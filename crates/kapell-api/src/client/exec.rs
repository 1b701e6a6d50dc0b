//! Programs in containers.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame};
use kapell_core::exec::{Decoder, Kind, Size, encode};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::call::{self, Call, Failure};
use super::routes::path;
use super::streams::Source;
use super::{Client, Error};
use crate::v1::{ExecEnd, ExecWanted};

/// So many pieces of input may be on their way.
const PIECES: usize = 4;

/// A cell says something more often, if only that it is there.
const SILENCE: Duration = Duration::from_secs(60);

/// The body of a request that is written while it is answered.
#[derive(Debug)]
pub(super) struct Upload(mpsc::Receiver<Bytes>);

impl HttpBody for Upload {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(cx).map(|piece| piece.map(|bytes| Ok(Frame::data(bytes))))
    }
}

/// What is sent to a program. The program is killed if this and its [`Exec`] are dropped.
#[derive(Debug, Clone)]
pub struct Input(mpsc::Sender<Bytes>);

impl Input {
    /// False if nobody takes it any more. Nothing is the end of its input. Blocks.
    pub fn blocking_send(&self, bytes: &[u8]) -> bool {
        self.0.blocking_send(encode(Kind::Input, bytes).into()).is_ok()
    }

    pub async fn send(&self, bytes: &[u8]) -> bool {
        self.0.send(encode(Kind::Input, bytes).into()).await.is_ok()
    }

    /// Says how large its terminal is now.
    pub async fn resize(&self, size: Size) -> bool {
        self.0.send(encode(Kind::Resize, &size.to_bytes()).into()).await.is_ok()
    }
}

/// A program in a container.
#[derive(Debug)]
pub struct Exec {
    source: Source,
    decoder: Decoder,
    pub input: Input,
}

/// What comes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    Out(Vec<u8>),
    Err(Vec<u8>),
    End(ExecEnd),
}

impl Exec {
    /// What it writes and how it ends; none if that cannot be known. Nothing is lost if this is dropped while it waits.
    pub async fn next(&mut self) -> Result<Option<Told>, Error> {
        loop {
            let frame = self.decoder.next_frame().map_err(|error| self.source.garbled(&error))?;
            match frame {
                Some((Kind::Out, bytes)) => return Ok(Some(Told::Out(bytes))),
                Some((Kind::Err, bytes)) => return Ok(Some(Told::Err(bytes))),
                Some((Kind::End, json)) => {
                    let end = serde_json::from_slice(&json);
                    return end
                        .map(Told::End)
                        .map(Some)
                        .map_err(|error| self.source.garbled(&error));
                }
                Some((Kind::Start | Kind::Input | Kind::Resize, _)) => {
                    return Err(self.source.garbled(&"it sends what is ours to send"));
                }
                None => match timeout(SILENCE, self.source.chunk()).await {
                    Ok(Ok(Some(bytes))) => self.decoder.push(&bytes),
                    Ok(Ok(None)) => return Ok(None),
                    Ok(Err(error)) => return Err(error),
                    Err(_) => {
                        let what = format!("it has said nothing for {SILENCE:?}");
                        return Err(self.source.garbled(&what));
                    }
                },
            }
        }
    }
}

impl Client {
    pub async fn exec_in_lrp(
        &self,
        process_guid: &str,
        index: u32,
        wanted: &ExecWanted,
    ) -> Result<Exec, Error> {
        self.exec(path(&["actual-lrps", process_guid, &index.to_string(), "exec"]), wanted).await
    }

    pub async fn exec_in_task(&self, task_guid: &str, wanted: &ExecWanted) -> Result<Exec, Error> {
        self.exec(path(&["tasks", task_guid, "exec"]), wanted).await
    }

    /// Asks the first host that can be reached, once: nobody knows what a program does when it runs twice.
    async fn exec(&self, path: String, wanted: &ExecWanted) -> Result<Exec, Error> {
        let call = Call::post(path).streaming();
        let urls = self.urls();
        let mut last = Failure::nobody();
        for (base, pool) in &self.shared.bases {
            let wire = match self.open(base).await {
                Ok(wire) => wire,
                Err(failure) => {
                    last = failure;
                    continue;
                }
            };
            let (to, pieces) = mpsc::channel(PIECES);
            // Our types have text keys only, and there is room for the first piece: neither can fail.
            let json = serde_json::to_vec(wanted).unwrap_or_default();
            let _there_is_room = to.try_send(encode(Kind::Start, &json).into());
            let request = self.request(base, &call).map_err(|error| Error::Protocol {
                url: base.to_string(),
                what: format!("`{}` cannot be asked for: {error}", call.path),
            })?;
            let request = request.map(|_| call::Body::Right(Upload(pieces)));
            let answer = self.exchange_request(wire, (base, pool), &call, request).await;
            let answer = answer.map_err(|failure| failure.into_error(&urls))?;
            let Some(download) = answer.stream else {
                return Err(Error::Protocol { url: urls, what: "the answer is no stream".into() });
            };
            let source = Source { url: urls, call: call.to_string(), download };
            return Ok(Exec { source, decoder: Decoder::default(), input: Input(to) });
        }
        Err(last.into_error(&urls))
    }
}
