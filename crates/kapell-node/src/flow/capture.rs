//! What a command writes: shown, kept on disk, and remembered as far as somebody needs it.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kapell_backend::executor::{Output, Stream};
use kapell_core::seams::{Clock, Moment};
use kapell_core::workflow::{Console, StepIx, Workflow};
use kapell_store::frames::{FrameLog, Label};

use super::logger::ExecutionLogger;

/// How much of a stream is kept in memory where its text is wanted.
const MAX_KEPT: usize = 1 << 20;
/// How much of the end of a stream is remembered, to show it if the step fails.
const TAIL: usize = 8 << 10;

pub(super) type SharedLogger = Arc<Mutex<Box<dyn ExecutionLogger>>>;

/// A lock that a panic elsewhere does not take away.
pub(super) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where the output of a whole run goes.
pub(super) struct Sink {
    pub(super) workflow: Arc<Workflow>,
    pub(super) logger: SharedLogger,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) begun: Moment,
    /// None: nothing is kept on disk, or no longer.
    pub(super) frames: Mutex<Option<FrameLog>>,
    /// How much of one command's output goes to disk.
    pub(super) limit: u64,
    pub(super) problem: Mutex<Option<String>>,
}

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sink").field("frames", &self.frames).finish_non_exhaustive()
    }
}

/// Numbers of the streams in an output log.
pub mod streams {
    /// The chunk is the name of the source.
    pub const NAME: u32 = 0;
    pub const STDOUT: u32 = 1;
    pub const STDERR: u32 = 2;
}

impl Sink {
    fn record(&self, step: StepIx, stream: u32, chunk: &[u8]) {
        let mut frames = lock(&self.frames);
        let Some(log) = &mut *frames else { return };
        let elapsed = self.clock.now().since(self.begun).as_millis();
        let label = Label {
            source: u32::try_from(step.index()).unwrap_or(u32::MAX),
            stream,
            at_ms: u32::try_from(elapsed).unwrap_or(u32::MAX),
        };
        if let Err(error) = log.append(label, chunk) {
            lock(&self.problem).get_or_insert(format!("output is no longer kept: {error}"));
            *frames = None;
        }
    }
}

/// What is wanted of a command's output.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Wanted {
    pub(super) stdout: bool,
    pub(super) stderr: bool,
    pub(super) console: Console,
}

/// The output of one command.
#[derive(Debug)]
pub(super) struct Capture {
    step: StepIx,
    wanted: Wanted,
    sink: Arc<Sink>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    stdout_tail: Tail,
    stderr_tail: Tail,
    recorded: u64,
    left_out: u64,
    overflowed: bool,
}

/// What was remembered of a command's output.
#[derive(Debug, Default)]
pub(super) struct Captured {
    pub(super) stdout: String,
    pub(super) stderr: String,
    /// A stream whose text was wanted was too long to keep.
    pub(super) overflowed: bool,
    /// The last lines: of standard error, or of standard output if that is all there is.
    pub(super) tail: String,
}

impl Capture {
    pub(super) fn new(step: StepIx, wanted: Wanted, sink: Arc<Sink>) -> Self {
        Self { step, wanted, sink, state: Mutex::default() }
    }

    /// What the command has written so far. Whoever lingers may go on writing.
    pub(super) fn captured(&self) -> Captured {
        let mut state = lock(&self.state);
        if state.left_out > 0 {
            if state.recorded == 0 {
                let name = &self.sink.workflow.step(self.step).name;
                self.sink.record(self.step, streams::NAME, name.as_bytes());
            }
            let tail = state.stdout_tail.text() + &state.stderr_tail.text();
            let note = format!(
                "\n[… {} bytes left out, the last of them follow …]\n{tail}",
                state.left_out
            );
            self.sink.record(self.step, streams::STDERR, note.as_bytes());
        }
        let trimmed = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        let tail = state.stderr_tail.text();
        let tail = if tail.trim().is_empty() { state.stdout_tail.text() } else { tail };
        let captured = Captured {
            stdout: trimmed(&state.stdout),
            stderr: trimmed(&state.stderr),
            overflowed: state.overflowed,
            tail,
        };
        state.left_out = 0;
        captured
    }
}

impl Output for Capture {
    fn take(&self, stream: Stream, chunk: &[u8]) {
        let (shown, kept) = match stream {
            Stream::Stdout => (self.wanted.console.stdout, self.wanted.stdout),
            Stream::Stderr => (self.wanted.console.stderr, self.wanted.stderr),
        };
        if shown {
            let name = &self.sink.workflow.step(self.step).name;
            lock(&self.sink.logger).on_console(name, stream, chunk);
        }
        let mut state = lock(&self.state);
        let state = &mut *state;
        let (number, text, tail) = match stream {
            Stream::Stdout => (streams::STDOUT, &mut state.stdout, &mut state.stdout_tail),
            Stream::Stderr => (streams::STDERR, &mut state.stderr, &mut state.stderr_tail),
        };
        tail.push(chunk);
        if kept {
            let room = MAX_KEPT - text.len();
            text.extend_from_slice(&chunk[..chunk.len().min(room)]);
            state.overflowed |= chunk.len() > room;
        }
        let length = chunk.len() as u64;
        if state.recorded + length <= self.sink.limit {
            if state.recorded == 0 {
                let name = &self.sink.workflow.step(self.step).name;
                self.sink.record(self.step, streams::NAME, name.as_bytes());
            }
            state.recorded += length;
            self.sink.record(self.step, number, chunk);
        } else {
            state.left_out += length;
        }
    }

    fn remark(&self, text: &str) {
        let line = format!("kapell: {text}\n");
        let name = &self.sink.workflow.step(self.step).name;
        // Shown whatever is shown of the step: it tells why nothing else comes.
        lock(&self.sink.logger).on_console(name, Stream::Stderr, line.as_bytes());
        let mut state = lock(&self.state);
        if state.recorded == 0 {
            self.sink.record(self.step, streams::NAME, name.as_bytes());
        }
        state.recorded += line.len() as u64;
        self.sink.record(self.step, streams::STDERR, line.as_bytes());
    }
}

/// The last bytes of a stream.
#[derive(Debug, Default)]
struct Tail(Vec<u8>);

impl Tail {
    fn push(&mut self, chunk: &[u8]) {
        self.0.extend_from_slice(&chunk[chunk.len().saturating_sub(TAIL)..]);
        if self.0.len() > 2 * TAIL {
            self.0.drain(..self.0.len() - TAIL);
        }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0[self.0.len().saturating_sub(TAIL)..]).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_keeps_the_end_within_bounds() {
        let mut tail = Tail::default();
        for number in 0..100_000 {
            tail.push(format!("{number}\n").as_bytes());
            assert!(tail.0.len() <= 2 * TAIL);
        }
        assert!(tail.text().ends_with("99998\n99999\n"));
        tail.push(&vec![b'x'; 1 << 20]);
        assert_eq!(tail.text().len(), TAIL);
    }
}
