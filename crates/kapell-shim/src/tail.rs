//! The last line of a stream, found by looking at the end of what is read, not at all of it.

/// As many bytes of the line are told.
pub(crate) const LONGEST: usize = 200;
const KEPT: usize = 512;

/// The end of a stream, without the empty lines after it.
pub(crate) struct Tail {
    bytes: Vec<u8>,
}

impl Tail {
    pub(crate) const fn new() -> Self {
        Self { bytes: Vec::new() }
    }

    pub(crate) fn push(&mut self, chunk: &[u8]) {
        let text = chunk.trim_ascii_end();
        if !text.is_empty() {
            let end = &text[text.len().saturating_sub(KEPT)..];
            let room = KEPT - end.len();
            if self.bytes.len() > room {
                self.bytes.drain(..self.bytes.len() - room);
            }
            self.bytes.extend_from_slice(end);
        }
        // One line end stands for all the empty lines; a space may be within a line.
        let rest = &chunk[text.len()..];
        let mark = if rest.contains(&b'\n') { b'\n' } else { b' ' };
        if !rest.is_empty() && self.bytes.last().is_some_and(|last| *last != b'\n') {
            self.bytes.push(mark);
        }
    }

    /// The last line that is not empty, its end if it is long; nothing if there is none.
    pub(crate) fn last_line(&self) -> &[u8] {
        let text = self.bytes.trim_ascii_end();
        let line = text.rsplit(|byte| matches!(byte, b'\n' | b'\r')).next().unwrap_or_default();
        &line[line.len().saturating_sub(LONGEST)..]
    }
}
