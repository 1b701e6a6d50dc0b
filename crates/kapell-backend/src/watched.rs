//! A running process as something to wait for: its end, and what it writes.

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use nix::errno::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::executor::{Exit, Output, Stream};
use crate::spawn::Spawned;
use crate::wait::{self, Whom};

/// How much is read at once.
const CHUNK: usize = 64 << 10;
/// How many chunks are read before others get their turn.
const TURN: usize = 16;

thread_local! {
    /// One buffer serves all pipes of a thread: what is read is handed on before the next read.
    static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; CHUNK]);
}

#[derive(Debug)]
pub(crate) struct Watched {
    /// Becomes readable when the process has ended; gone once we know how.
    process: Option<AsyncFd<OwnedFd>>,
    stdout: Option<AsyncFd<OwnedFd>>,
    stderr: Option<AsyncFd<OwnedFd>>,
    output: Arc<dyn Output>,
}

/// What one look at a pipe brought.
enum Look {
    Nothing,
    Bytes,
    End,
}

impl Watched {
    pub(crate) fn new(spawned: Spawned, output: Arc<dyn Output>) -> io::Result<Self> {
        Ok(Self {
            process: Some(register(spawned.process)?),
            stdout: Some(register(spawned.stdout)?),
            stderr: Some(register(spawned.stderr)?),
            output,
        })
    }

    /// Whether someone may still write.
    pub(crate) fn is_open(&self) -> bool {
        self.stdout.is_some() || self.stderr.is_some()
    }

    /// Takes what is written until the process has ended.
    pub(crate) fn poll_exit(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Exit>> {
        let ended = self.take_output(cx);
        let Some(process) = &self.process else { return Poll::Pending };
        // A process that has closed its output is about to end, or already has: looking now saves
        // being woken once more.
        if ended && let Some(exit) = reap(process.get_ref())? {
            self.process = None;
            return Poll::Ready(Ok(exit));
        }
        loop {
            let mut guard = ready!(process.poll_read_ready(cx))?;
            if let Some(exit) = reap(process.get_ref())? {
                self.process = None;
                // What it wrote last may have come since we looked.
                self.take_output(cx);
                return Poll::Ready(Ok(exit));
            }
            guard.clear_ready();
        }
    }

    /// Takes what is written until nobody can write any more.
    pub(crate) fn poll_drained(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.take_output(cx);
        if self.is_open() { Poll::Pending } else { Poll::Ready(()) }
    }

    /// Takes what there is. True if a pipe has come to its end.
    fn take_output(&mut self, cx: &mut Context<'_>) -> bool {
        let mut ended = false;
        for _ in 0..TURN {
            let first = look(&mut self.stdout, Stream::Stdout, &*self.output, cx, ended);
            ended |= matches!(first, Look::End);
            let second = look(&mut self.stderr, Stream::Stderr, &*self.output, cx, ended);
            if matches!(second, Look::End) && !ended {
                // The other one most likely ended too, after we looked at it.
                look(&mut self.stdout, Stream::Stdout, &*self.output, cx, true);
            }
            ended |= matches!(second, Look::End);
            if !matches!(first, Look::Bytes) && !matches!(second, Look::Bytes) {
                return ended;
            }
        }
        cx.waker().wake_by_ref();
        ended
    }
}

fn register(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    #[expect(
        unsafe_code,
        reason = "an owned descriptor stays open and the same until it is dropped"
    )]
    let registered = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) };
    Ok(registered?)
}

/// Reads once from a pipe that is ready, or that is worth a try although it is not known to be.
fn look(
    pipe: &mut Option<AsyncFd<OwnedFd>>,
    stream: Stream,
    output: &dyn Output,
    cx: &mut Context<'_>,
    anyway: bool,
) -> Look {
    let Some(fd) = pipe else { return Look::Nothing };
    let guard = match fd.poll_read_ready(cx) {
        Poll::Ready(Ok(guard)) => Some(guard),
        Poll::Ready(Err(_)) => {
            *pipe = None;
            return Look::End;
        }
        Poll::Pending if anyway => None,
        Poll::Pending => return Look::Nothing,
    };
    let read = BUFFER.with_borrow_mut(|buffer| {
        let read = nix::unistd::read(fd.as_fd(), buffer);
        if let Ok(length @ 1..) = read {
            output.take(stream, &buffer[..length]);
        }
        read
    });
    match read {
        Ok(1..) | Err(Errno::EINTR) => Look::Bytes,
        Err(Errno::EAGAIN) => {
            if let Some(mut guard) = guard {
                guard.clear_ready();
                // Asks to be woken: the readiness that we were told of is used up.
                return look(pipe, stream, output, cx, false);
            }
            Look::Nothing
        }
        Ok(0) | Err(_) => {
            *pipe = None;
            Look::End
        }
    }
}

/// Waits for the process without blocking; none if it has not ended.
fn reap(process: &OwnedFd) -> io::Result<Option<Exit>> {
    Ok(wait::reap(Whom::Handle(process))?.map(|dead| dead.exit))
}
