//! The connection to the host. There is one at a time: what the host before has sent is heeded to its end first.

use std::os::fd::OwnedFd;

use super::journal::Story;
use super::kernel;
use super::parcel::{self, ENDED, FOUND};
use crate::sys;

/// As much is read at once.
const CHUNK: usize = 256 << 10;

pub(super) struct Line {
    pub(super) fd: OwnedFd,
    read: Vec<u8>,
    /// What of it has been heeded.
    heeded: usize,
    unsent: Vec<u8>,
    /// The kernel has no room for more.
    pub(super) is_full: bool,
    /// Nothing more comes.
    pub(super) is_over: bool,
}

impl Line {
    pub(super) fn new(fd: OwnedFd) -> Self {
        let (read, unsent) = (Vec::new(), Vec::new());
        Self { fd, read, heeded: 0, unsent, is_full: false, is_over: false }
    }

    /// Takes what is there, once.
    pub(super) fn fill(&mut self) {
        self.read.drain(..self.heeded);
        self.heeded = 0;
        let from = self.read.len();
        self.read.resize(from + CHUNK, 0);
        let taken = sys::read(&self.fd, &mut self.read[from..]);
        self.read.truncate(from + taken.unwrap_or(0));
        match taken {
            Ok(1..) | Err(libc::EAGAIN | libc::EINTR) => {}
            Ok(0) | Err(_) => self.is_over = true,
        }
    }

    /// The next parcel that is whole, as bytes of its own.
    pub(super) fn next(&mut self) -> Option<Vec<u8>> {
        match parcel::read(&self.read[self.heeded..]) {
            parcel::Read::Whole(_, length) => {
                let whole = self.read[self.heeded..][..length].to_vec();
                self.heeded += length;
                Some(whole)
            }
            parcel::Read::NotYet => None,
            parcel::Read::Damaged => {
                self.is_over = true;
                None
            }
        }
    }

    pub(super) fn say(&mut self, kind: u8, name: &[u8], parts: &[&[u8]]) {
        parcel::push(&mut self.unsent, kind, name, parts);
    }

    /// Says all that is known of a program.
    pub(super) fn tell(&mut self, guid: &[u8], story: &Story) {
        let Story { tag, began_ms, end, .. } = story;
        self.say(FOUND, guid, &[&began_ms.to_be_bytes(), tag]);
        if let Some((at, record)) = end {
            self.say(ENDED, guid, &[&at.to_be_bytes(), &[0; 8], record]);
        }
    }

    /// Sends what it can.
    pub(super) fn flush(&mut self) {
        let mut sent = 0;
        self.is_full = false;
        while sent < self.unsent.len() {
            match kernel::send(&self.fd, &self.unsent[sent..]) {
                Ok(count) => sent += count,
                Err(libc::EINTR) => {}
                Err(libc::EAGAIN) => {
                    self.is_full = true;
                    break;
                }
                // What was read before is heeded nonetheless.
                Err(_) => {
                    sent = self.unsent.len();
                }
            }
        }
        self.unsent.drain(..sent);
    }
}
