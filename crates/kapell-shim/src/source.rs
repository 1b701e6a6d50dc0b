//! A stream of output on its way from the pipe of a program to its log.

use std::os::fd::OwnedFd;

use crate::hidden::Hidden;
use crate::log::{HEAD, Log, Stream};
use crate::mask::Mask;
use crate::sys;
use crate::tail::Tail;

/// Where output comes from.
pub(crate) struct Source {
    /// None once nobody can write to it any more.
    pub(crate) pipe: Option<OwnedFd>,
    stream: Stream,
    pub(crate) tail: Tail,
    /// What must not be seen in it.
    mask: Option<Mask>,
}

impl Source {
    pub(crate) fn new(pipe: OwnedFd, stream: Stream, hidden: &Hidden) -> Self {
        Self { pipe: Some(pipe), stream, tail: Tail::new(), mask: hidden.mask() }
    }

    /// Keeps what may be shown.
    fn keep(&mut self, shown: &[u8], log: &mut Log, buffer: &mut [u8]) {
        for part in shown.chunks(log.chunk()) {
            let frame = &mut buffer[..HEAD + part.len()];
            frame[HEAD..].copy_from_slice(part);
            self.tail.push(part);
            log.write(self.stream, frame);
        }
    }

    /// Nothing more comes: what was held back was no secret.
    pub(crate) fn end(&mut self, log: &mut Log, buffer: &mut [u8]) {
        if let Some(mask) = &mut self.mask {
            let rest = mask.finish();
            self.keep(&rest, log, buffer);
        }
    }
}

/// Reads once.
pub(crate) fn take(source: &mut Source, log: &mut Log, buffer: &mut [u8]) -> usize {
    let Some(pipe) = &source.pipe else { return 0 };
    match sys::read(pipe, &mut buffer[HEAD..HEAD + log.chunk()]) {
        Ok(length @ 1..) => {
            if let Some(mask) = &mut source.mask {
                let shown = mask.push(&buffer[HEAD..HEAD + length]);
                source.keep(&shown, log, buffer);
                return length;
            }
            source.tail.push(&buffer[HEAD..HEAD + length]);
            log.write(source.stream, &mut buffer[..HEAD + length]);
            length
        }
        Err(libc::EAGAIN | libc::EINTR) => 0,
        Ok(0) | Err(_) => {
            source.pipe = None;
            source.end(log, buffer);
            0
        }
    }
}

/// Takes what is there now. Someone else may hold the pipe open and write on: that is not awaited.
pub(crate) fn drain(source: &mut Source, log: &mut Log, buffer: &mut [u8]) {
    let mut left = source.pipe.as_ref().map_or(0, sys::waiting);
    while left > 0 {
        match take(source, log, buffer) {
            0 => return,
            taken => left = left.saturating_sub(taken),
        }
    }
}
