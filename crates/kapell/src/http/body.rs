//! Bodies: ours, and those that only pass through.

use std::error::Error as StdError;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use tokio::sync::OwnedSemaphorePermit;

use super::forward::Connection;

pub(super) type BodyError = Box<dyn StdError + Send + Sync>;

/// The body of an answer.
#[derive(Debug)]
pub(super) enum Body {
    Whole(Full<Bytes>),
    Relayed(Relay),
}

impl Body {
    pub(super) fn whole(bytes: Bytes) -> Self {
        Self::Whole(Full::new(bytes))
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match self.get_mut() {
            Self::Whole(body) => Pin::new(body).poll_frame(cx).map_err(Into::into),
            Self::Relayed(relay) => relay.poll_frame(cx).map_err(Into::into),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(body) => body.is_end_stream(),
            Self::Relayed(relay) => relay.body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(body) => body.size_hint(),
            Self::Relayed(relay) => relay.body.size_hint(),
        }
    }
}

/// The leader's answer, with the connection that it comes over: no task of its own drives it, so it ends with whoever
/// reads it.
#[derive(Debug)]
pub(super) struct Relay {
    pub(super) connection: Connection,
    pub(super) body: Incoming,
    pub(super) _slot: OwnedSemaphorePermit,
}

impl Relay {
    fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        self.connection.poll(cx);
        Pin::new(&mut self.body).poll_frame(cx)
    }
}

/// A request's body on its way to the leader; it counts what passes.
#[derive(Debug)]
pub(super) struct Upload {
    body: Incoming,
    moved: Arc<AtomicUsize>,
}

impl Upload {
    /// The second value grows whenever something of the body was sent.
    pub(super) fn of(body: Incoming) -> (Self, Arc<AtomicUsize>) {
        let moved = Arc::new(AtomicUsize::new(0));
        (Self { body, moved: Arc::clone(&moved) }, moved)
    }
}

impl HttpBody for Upload {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        if frame.is_ready() {
            self.moved.fetch_add(1, Ordering::Relaxed);
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
