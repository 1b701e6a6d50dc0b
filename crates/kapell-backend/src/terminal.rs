//! Our side of a terminal that a program beside those of a container has.

use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use kapell_core::exec::Size;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::pty::{grantpt, posix_openpt, unlockpt};
use nix::unistd;
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What a terminal takes for the end of its input.
const END_OF_INPUT: u8 = 4;

/// Opens one: our side, and the program's.
pub(crate) fn open(size: Size) -> io::Result<(OwnedFd, OwnedFd)> {
    let ours = posix_openpt(OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC)?;
    grantpt(&ours)?;
    unlockpt(&ours)?;
    let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
    #[expect(unsafe_code, reason = "numbers only; the kernel makes a descriptor for us")]
    let (theirs, ours) = unsafe {
        let fd = libc::ioctl(ours.as_raw_fd(), libc::TIOCGPTPEER, flags);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        let theirs = OwnedFd::from_raw_fd(fd);
        (theirs, OwnedFd::from(ours))
    };
    resize(&ours, size)?;
    Ok((ours, theirs))
}

fn resize(terminal: &OwnedFd, size: Size) -> io::Result<()> {
    let Size { rows, cols } = size;
    let size = libc::winsize { ws_row: rows, ws_col: cols, ws_xpixel: 0, ws_ypixel: 0 };
    #[expect(unsafe_code, reason = "reads a structure of ours")]
    let set = unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Our side, to be read and written. Clones are the same one.
#[derive(Debug, Clone)]
pub(crate) struct Terminal(Arc<AsyncFd<OwnedFd>>);

impl Terminal {
    pub(crate) fn new(ours: OwnedFd) -> io::Result<Self> {
        let flags = OFlag::from_bits_retain(fcntl(&ours, FcntlArg::F_GETFL)?);
        fcntl(&ours, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
        #[expect(unsafe_code, reason = "an owned descriptor stays open and the same")]
        let watched = unsafe { AsyncFd::register(ours) };
        Ok(Self(Arc::new(watched?)))
    }

    /// Whoever has it is told. One that is gone has no size.
    pub(crate) fn resize(&self, size: Size) {
        let _gone = resize(self.0.get_ref(), size);
    }

    fn poll_send(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            let mut guard = ready!(self.0.poll_write_ready(cx))?;
            let sent = guard.try_io(|fd| Ok(unistd::write(fd.get_ref(), bytes)?));
            if let Ok(sent) = sent {
                return Poll::Ready(sent);
            }
        }
    }
}

impl AsyncRead for Terminal {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let mut guard = ready!(self.0.poll_read_ready(cx))?;
            let free = room.initialize_unfilled();
            match guard.try_io(|fd| Ok(unistd::read(fd.get_ref(), free)?)) {
                Ok(Ok(length)) => {
                    room.advance(length);
                    return Poll::Ready(Ok(()));
                }
                // Nobody has the other side any more.
                Ok(Err(error)) if error.raw_os_error() == Some(libc::EIO) => {
                    return Poll::Ready(Ok(()));
                }
                Ok(Err(error)) => return Poll::Ready(Err(error)),
                Err(_not_yet) => {}
            }
        }
    }
}

impl AsyncWrite for Terminal {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_send(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// It stays open for what is written to it: only its input ends.
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_send(cx, &[END_OF_INPUT]).map_ok(drop)
    }
}
