//! Where a launcher leaves the terminal of a program that it has started.

use std::fs::File;
use std::io::{self, ErrorKind, IoSliceMut};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::net::UnixListener;
use std::path::Path;

use nix::cmsg_space;
use nix::sys::socket::sockopt::PeerCredentials;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, getsockopt, recvmsg};
use nix::unistd::geteuid;

/// A socket to which a launcher connects.
#[derive(Debug)]
pub(super) struct Console(UnixListener);

impl Console {
    /// The name of a socket may not be as long as that of a directory: it is made by a name of ours.
    pub(super) fn open(dir: &Path, name: &str) -> io::Result<Self> {
        let dir = File::open(dir)?;
        let at = format!("/proc/self/fd/{}/{name}", dir.as_raw_fd());
        let socket = UnixListener::bind(at)?;
        socket.set_nonblocking(true)?;
        Ok(Self(socket))
    }

    /// Our side of the terminal. A launcher that has done its work has left it.
    pub(super) fn take(&self) -> io::Result<OwnedFd> {
        loop {
            let (stream, _) = self.0.accept()?;
            if getsockopt(&stream, PeerCredentials)?.uid() != geteuid().as_raw() {
                continue;
            }
            let (mut name, mut room) = ([0; 4096], cmsg_space!([RawFd; 1]));
            let mut parts = [IoSliceMut::new(&mut name)];
            let flags = MsgFlags::MSG_CMSG_CLOEXEC | MsgFlags::MSG_DONTWAIT;
            let told = recvmsg::<()>(stream.as_raw_fd(), &mut parts, Some(&mut room), flags)?;
            for message in told.cmsgs()? {
                if let ControlMessageOwned::ScmRights(fds) = message
                    && let Some(fd) = fds.first()
                {
                    #[expect(unsafe_code, reason = "the kernel has just made it for us")]
                    return Ok(unsafe { OwnedFd::from_raw_fd(*fd) });
                }
            }
            return Err(ErrorKind::InvalidData.into());
        }
    }
}
