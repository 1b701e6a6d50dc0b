//! Lines of a log, each with its time.

use std::fmt;
use std::pin::Pin;

use futures_util::{AsyncBufRead, AsyncBufReadExt as _};
use kapell_core::seams::Timestamp;

use super::Error;

/// A longer line comes in parts.
const LONGEST: usize = 16 * 1024;

/// What a container wrote, as it comes.
pub struct Lines {
    what: String,
    body: Pin<Box<dyn AsyncBufRead + Send>>,
    /// That of the line whose parts are being read.
    at: Option<Timestamp>,
    head: Vec<u8>,
}

/// A line, or a part of one that is very long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub at: Timestamp,
    pub bytes: Vec<u8>,
}

impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lines").field("what", &self.what).finish_non_exhaustive()
    }
}

impl Lines {
    /// Reads a log of which `what` says, where it breaks, what was tried.
    pub fn new(what: &str, body: impl AsyncBufRead + Send + 'static) -> Self {
        Self { what: what.to_owned(), body: Box::pin(body), at: None, head: Vec::new() }
    }

    /// Of somebody who writes nothing.
    pub fn none() -> Self {
        Self::new("", futures_util::io::empty())
    }

    /// The next one; none at the end. May be given up and asked again: nothing is lost.
    pub async fn next(&mut self) -> Result<Option<Line>, Error> {
        loop {
            let what = &self.what;
            let chunk = self.body.fill_buf().await.map_err(|error| Error::broken(what, &error))?;
            if chunk.is_empty() {
                return Ok(self.take());
            }
            let room = LONGEST.saturating_sub(self.head.len()).max(1);
            let end = chunk.iter().take(room).position(|byte| *byte == b'\n');
            let length = end.map_or(chunk.len().min(room), |end| end + 1);
            self.head.extend_from_slice(&chunk[..length]);
            self.body.as_mut().consume_unpin(length);
            if end.is_some() || self.head.len() >= LONGEST {
                return Ok(self.take());
            }
        }
    }

    fn take(&mut self) -> Option<Line> {
        if self.head.is_empty() {
            return None;
        }
        let mut bytes = std::mem::take(&mut self.head);
        let at = match self.at {
            Some(at) => at,
            None => split_time(&mut bytes),
        };
        self.at = (bytes.last() != Some(&b'\n')).then_some(at);
        Some(Line { at, bytes })
    }
}

/// Takes the time off that stands before a line.
fn split_time(bytes: &mut Vec<u8>) -> Timestamp {
    let space = bytes.iter().take(64).position(|byte| *byte == b' ');
    let time = space.and_then(|space| std::str::from_utf8(&bytes[..space]).ok());
    let Some(at) = time.and_then(kapell_core::kubernetes::moment) else { return Timestamp(0) };
    bytes.drain(..=space.unwrap_or_default());
    at
}
