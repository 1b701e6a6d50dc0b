//! Standard output and standard error, written to the end whatever stands behind them.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};

use kapell_backend::executor::Stream;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Writes all of `bytes`, or nothing more once nobody reads: an error means that they are gone.
///
/// Past the buffers of the standard library: a pipe or a terminal that somebody has set not to
/// block takes a part, and a buffer would not tell how much. It is waited for, as if it blocked.
pub fn write_all(stream: Stream, bytes: &[u8]) -> io::Result<()> {
    // The locks keep the lines of several threads apart.
    match stream {
        Stream::Stdout => {
            let out = io::stdout().lock();
            write_to(out.as_fd(), bytes)
        }
        Stream::Stderr => {
            let out = io::stderr().lock();
            write_to(out.as_fd(), bytes)
        }
    }
}

/// One of the streams where a writer is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Writer(pub Stream);

impl io::Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        write_all(self.0, bytes).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write_to(fd: BorrowedFd<'_>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match nix::unistd::write(fd, bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::EINTR) => {}
            Err(Errno::EAGAIN) => wait_for(fd)?,
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

/// Waits until there is room, or nobody to make any: then the next write says so.
fn wait_for(fd: BorrowedFd<'_>) -> io::Result<()> {
    let mut asked = [PollFd::new(fd, PollFlags::POLLOUT)];
    match poll(&mut asked, PollTimeout::NONE) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn full_pipe() -> (io::PipeReader, io::PipeWriter) {
        let (reader, writer) = io::pipe().unwrap();
        let flags = nix::fcntl::FcntlArg::F_SETFL(nix::fcntl::OFlag::O_NONBLOCK);
        nix::fcntl::fcntl(&writer, flags).unwrap();
        while nix::unistd::write(&writer, b".").is_ok() {}
        (reader, writer)
    }

    #[test]
    fn a_full_pipe_is_waited_for() {
        let (mut reader, writer) = full_pipe();
        let text = "0123456789".repeat(50_000);
        let read = std::thread::spawn(move || {
            let mut all = String::new();
            reader.read_to_string(&mut all).map(|_| all)
        });
        write_to(writer.as_fd(), text.as_bytes()).unwrap();
        drop(writer);
        let all = read.join().unwrap().unwrap();
        assert!(all.ends_with(&text), "{} bytes came", all.len());
    }

    #[test]
    fn a_reader_that_is_gone_is_an_error() {
        let (reader, writer) = full_pipe();
        drop(reader);
        let error = write_to(writer.as_fd(), b"x").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}
