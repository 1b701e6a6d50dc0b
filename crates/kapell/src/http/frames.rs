//! What whoever wants a program sends for it: frames, the first of which says what to run.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::StatusCode;
use hyper::body::{Body as HttpBody, Frame, Incoming};
use kapell_api::v1::ExecWanted;
use kapell_core::exec::{Decoder, Kind};
use tokio::time::timeout;

use super::answer::Problem;

#[derive(Debug)]
pub(super) struct Frames {
    body: Incoming,
    decoder: Decoder,
}

impl Frames {
    /// What to run, which comes first, and all that has come so far.
    pub(super) async fn start(
        body: Incoming,
        stall: Duration,
    ) -> Result<(ExecWanted, Self, Vec<u8>), Box<Problem>> {
        let bad = |why: &str| {
            let text = format!("the first frame must say what to run: {why}");
            Problem::new(StatusCode::BAD_REQUEST, "bad_body", text).closing()
        };
        let (mut frames, mut came) = (Self { body, decoder: Decoder::default() }, Vec::new());
        let json = match timeout(stall, frames.take(Some(&mut came))).await {
            Ok(Ok(Some((Kind::Start, json)))) => json,
            Ok(Ok(Some(_))) => return Err(bad("it is another one")),
            Ok(Ok(None)) => return Err(bad("there is none")),
            Ok(Err(error)) => return Err(bad(&error.to_string())),
            Err(_) => return Err(bad("it does not come")),
        };
        let wanted = serde_json::from_slice(&json).map_err(|error| bad(&error.to_string()))?;
        Ok((wanted, frames, came))
    }

    /// None when all has come; an error if whoever sends it is gone.
    pub(super) async fn next(&mut self) -> io::Result<Option<(Kind, Vec<u8>)>> {
        self.take(None).await
    }

    /// The same; what comes for it is kept in `came`.
    async fn take(
        &mut self,
        mut came: Option<&mut Vec<u8>>,
    ) -> io::Result<Option<(Kind, Vec<u8>)>> {
        loop {
            if let Some(frame) = self.decoder.next_frame().map_err(io::Error::other)? {
                return Ok(Some(frame));
            }
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    if let Some(bytes) = frame.data_ref() {
                        self.decoder.push(bytes);
                        if let Some(came) = &mut came {
                            came.extend_from_slice(bytes);
                        }
                    }
                }
                Some(Err(error)) => return Err(io::Error::other(error)),
                None => return Ok(None),
            }
        }
    }

    /// All of it, as it came and comes.
    pub(super) fn passed_on(self, came: Vec<u8>) -> PassedOn {
        PassedOn { came: Some(came.into()), rest: self.body }
    }
}

/// A body whose beginning was read.
#[derive(Debug)]
pub(super) struct PassedOn {
    came: Option<Bytes>,
    rest: Incoming,
}

impl HttpBody for PassedOn {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match self.came.take() {
            Some(came) => Poll::Ready(Some(Ok(Frame::data(came)))),
            None => Pin::new(&mut self.rest).poll_frame(cx),
        }
    }
}
