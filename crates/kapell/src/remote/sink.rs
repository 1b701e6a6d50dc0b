//! Where log lines go.

use std::io::{self, IsTerminal as _};

use kapell_backend::executor::Stream as Fd;
use kapell_core::log::{Frame, Stream};
use kapell_node::stdio;

use super::filter::Filter;
use super::text::time;

/// The longest line that is held back until its end.
const LONGEST: usize = 64 << 10;

/// How lines are dressed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Dress {
    /// Before each line, with its colour.
    pub(crate) prefix: String,
    pub(crate) timestamps: bool,
}

/// One stream of a container on its way to one of ours.
#[derive(Debug)]
struct Lane {
    filter: Option<Filter>,
    /// The line that has not ended yet, with what stands before it.
    line: Vec<u8>,
}

/// Writes the frames of one container.
#[derive(Debug)]
pub(crate) struct Sink {
    dress: Dress,
    out: Lane,
    err: Lane,
    /// Whether standard error of the container goes to ours; all goes to standard output otherwise.
    apart: bool,
}

impl Sink {
    pub(crate) fn new(dress: Dress, apart: bool) -> Self {
        let lane = |is_terminal: bool| Lane {
            filter: is_terminal.then(Filter::default),
            line: Vec::new(),
        };
        let out = io::stdout().is_terminal();
        let err = if apart { io::stderr().is_terminal() } else { out };
        Self { dress, out: lane(out), err: lane(err), apart }
    }

    /// An error means that nobody reads any more.
    pub(crate) fn take(&mut self, frame: &Frame) -> io::Result<()> {
        let (lane, fd) = match frame.stream {
            Stream::Out => (&mut self.out, Fd::Stdout),
            Stream::Err if self.apart => (&mut self.err, Fd::Stderr),
            Stream::Err => (&mut self.err, Fd::Stdout),
            Stream::Note => {
                let text = String::from_utf8_lossy(&frame.bytes);
                let text = crate::logger::style::clean(text.trim_end());
                return stdio::write_all(Fd::Stderr, format!("kapell: {text}\n").as_bytes());
            }
        };
        let filtered = lane.filter.as_mut().map(|filter| filter.pass(&frame.bytes));
        let bytes = filtered.as_deref().unwrap_or(&frame.bytes);
        if self.dress.prefix.is_empty() && !self.dress.timestamps {
            return stdio::write_all(fd, bytes);
        }
        let head = head(&self.dress, frame);
        let mut text = Vec::new();
        for part in bytes.split_inclusive(|&byte| byte == b'\n') {
            if lane.line.is_empty() {
                lane.line.extend_from_slice(head.as_bytes());
            }
            lane.line.extend_from_slice(part);
            let has_ended = part.ends_with(b"\n");
            if has_ended || lane.line.len() > LONGEST {
                text.append(&mut lane.line);
                text.extend((!has_ended).then_some(b'\n'));
            }
        }
        if text.is_empty() { Ok(()) } else { stdio::write_all(fd, &text) }
    }

    /// Writes what has no end of line.
    pub(crate) fn end(&mut self) -> io::Result<()> {
        for lane in [&mut self.out, &mut self.err] {
            if !lane.line.is_empty() {
                lane.line.push(b'\n');
                stdio::write_all(Fd::Stdout, &std::mem::take(&mut lane.line))?;
            }
        }
        Ok(())
    }
}

fn head(dress: &Dress, frame: &Frame) -> String {
    if dress.timestamps {
        format!("{}{} ", dress.prefix, time(frame.at))
    } else {
        dress.prefix.clone()
    }
}
