//! Bodies: ours, and those that only pass through.

use std::error::Error as StdError;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::forward::{Connection, Slots};
use super::guests::Guest;

pub(super) type BodyError = Box<dyn StdError + Send + Sync>;

/// The body of an answer.
#[derive(Debug)]
pub(super) enum Body {
    Whole(Full<Bytes>),
    Relayed(Relay),
    Fed(Fed),
}

impl Body {
    /// A body that `feeder` writes piece by piece. It waits while the reader is behind, and ends with the reader.
    pub(super) fn fed<F>(feeder: impl FnOnce(Pipe) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (to, pieces) = mpsc::channel(PIECES);
        let mut tasks = JoinSet::new();
        tasks.spawn(feeder(Pipe { to, last: Mutex::new(Instant::now()) }));
        Self::Fed(Fed { pieces, _tasks: tasks })
    }

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
            Self::Fed(fed) => {
                fed.pieces.poll_recv(cx).map(|piece| piece.map(|it| it.map(Frame::data)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(body) => body.is_end_stream(),
            Self::Relayed(relay) => relay.body.is_end_stream(),
            Self::Fed(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(body) => body.size_hint(),
            Self::Relayed(relay) => relay.body.size_hint(),
            Self::Fed(_) => SizeHint::default(),
        }
    }
}

/// How many pieces wait for a reader.
const PIECES: usize = 8;

/// A body that somebody writes while it is read. Whoever writes it ends with it.
#[derive(Debug)]
pub(super) struct Fed {
    pieces: mpsc::Receiver<Result<Bytes, BodyError>>,
    _tasks: JoinSet<()>,
}

/// The writer's end of a [`Body::fed`].
#[derive(Debug)]
pub(super) struct Pipe {
    to: mpsc::Sender<Result<Bytes, BodyError>>,
    /// When something was last sent.
    last: Mutex<Instant>,
}

/// Nobody reads any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gone;

impl Pipe {
    pub(super) async fn send(&self, piece: impl Into<Bytes>) -> Result<(), Gone> {
        let piece = piece.into();
        if piece.is_empty() {
            return Ok(());
        }
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        self.to.send(Ok(piece)).await.map_err(|_| Gone)
    }

    /// Lets the reader see that this is not the end.
    pub(super) async fn break_off(&self, why: impl Into<BodyError>) {
        let _heard = self.to.send(Err(why.into())).await;
    }

    /// Waits for something, and until it comes says every so often that nothing has.
    pub(super) async fn meanwhile<T>(&self, wait: impl Future<Output = T>) -> Result<T, Gone> {
        let mut wait = pin!(wait);
        loop {
            let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
            tokio::select! {
                biased;
                done = wait.as_mut() => return Ok(done),
                () = self.to.closed() => return Err(Gone),
                () = sleep_until(last + BEAT) => self.send(": still here\n\n").await?,
            }
        }
    }

    /// The same where `beats`, else waits in silence.
    pub(super) async fn meanwhile_if<T>(
        &self,
        beats: bool,
        wait: impl Future<Output = T>,
    ) -> Result<T, Gone> {
        if beats {
            return self.meanwhile(wait).await;
        }
        tokio::select! {
            biased;
            () = self.to.closed() => Err(Gone),
            done = wait => Ok(done),
        }
    }
}

/// How often a stream of events says that it still is one.
const BEAT: Duration = Duration::from_secs(15);

/// The leader's answer, with the connection that it comes over: no task of its own drives it, so it ends with whoever
/// reads it.
#[derive(Debug)]
pub(super) struct Relay {
    pub(super) connection: Connection,
    pub(super) body: Incoming,
    pub(super) _slots: Slots,
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
    /// Whose it is.
    guest: Option<Arc<Guest>>,
}

impl Upload {
    /// The second value grows whenever something of the body was sent.
    pub(super) fn of(body: Incoming, guest: Option<Arc<Guest>>) -> (Self, Arc<AtomicUsize>) {
        let moved = Arc::new(AtomicUsize::new(0));
        (Self { body, moved: Arc::clone(&moved), guest }, moved)
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
        if let Some(guest) = &self.guest {
            guest.awaits_body(!matches!(frame, Poll::Ready(None)));
        }
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
