//! A connection that notices when its client takes nothing any more.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::guests::Guest;

/// Fails when nothing of an answer is taken for as long as `stall`.
#[derive(Debug)]
pub(super) struct Watched<T> {
    io: T,
    guest: Arc<Guest>,
    stall: Duration,
    /// Runs while the client takes nothing.
    stuck: Option<Pin<Box<Sleep>>>,
}

impl<T> Watched<T> {
    pub(super) const fn new(io: T, guest: Arc<Guest>, stall: Duration) -> Self {
        Self { io, guest, stall, stuck: None }
    }

    fn judge<R>(&mut self, cx: &mut Context<'_>, done: Poll<io::Result<R>>) -> Poll<io::Result<R>> {
        if done.is_ready() {
            self.guest.moved();
            if self.stuck.take().is_some() {
                self.guest.takes(true);
            }
            return done;
        }
        let stall = self.stall;
        let guest = &self.guest;
        let stuck = self.stuck.get_or_insert_with(|| {
            guest.takes(false);
            Box::pin(sleep(stall))
        });
        if guest.streams() {
            return Poll::Pending;
        }
        ready!(stuck.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Watched<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Watched<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.io).poll_write(cx, bytes);
        self.judge(cx, done)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.io).poll_write_vectored(cx, slices);
        self.judge(cx, done)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.io).poll_flush(cx);
        self.judge(cx, done)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.io).poll_shutdown(cx);
        self.judge(cx, done)
    }
}
