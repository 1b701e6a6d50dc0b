//! A terminal as a person has it: a pseudo-terminal with a screen behind it.

use std::cell::RefCell;
use std::io::{Read as _, Write};
use std::num::NonZeroU16;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

/// Longer than anything takes here, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
const SCROLLBACK: usize = 1_000;
/// What starts every frame.
const FRAME: &[u8] = b"\x1b[?2026h";

/// A terminal in which a command runs.
pub(crate) struct Terminal {
    master: Box<dyn MasterPty + Send>,
    keys: RefCell<Box<dyn Write + Send>>,
    child: Box<dyn Child + Send + Sync>,
    chunks: Receiver<Vec<u8>>,
    parser: vt100::Parser,
    /// Everything that was ever written.
    pub(crate) raw: Vec<u8>,
}

fn size(rows: u16, cols: u16) -> PtySize {
    PtySize { rows, cols, pixel_width: 0, pixel_height: 0 }
}

fn parser(rows: u16, cols: u16) -> vt100::Parser {
    let some = |number| NonZeroU16::new(number).expect("a terminal has rows and columns");
    vt100::Parser::new(some(rows), some(cols), SCROLLBACK)
}

impl Terminal {
    /// Runs a shell command in `dir`, on a terminal of this size.
    pub(crate) fn run(
        dir: &Path,
        script: &str,
        env: &[(&str, &str)],
        (rows, cols): (u16, u16),
    ) -> Self {
        let pair = native_pty_system().openpty(size(rows, cols)).expect("a pseudo-terminal");
        let mut command = CommandBuilder::new("sh");
        command.args(["-c", script]);
        command.cwd(dir);
        for name in ["NO_COLOR", "KAPELL_CONFIG", "KAPELL_LOGGER", "XDG_CONFIG_HOME"] {
            command.env_remove(name);
        }
        command.env("TERM", "xterm-256color");
        command.env("HOME", dir);
        command.env("KAPELL_STATE_DIR", dir.join("state"));
        command.env("KAPELL", env!("CARGO_BIN_EXE_kapell"));
        for (name, value) in env {
            command.env(name, value);
        }
        let child = pair.slave.spawn_command(command).expect("sh starts");
        let mut reader = pair.master.try_clone_reader().expect("what it writes");
        let (send, chunks) = channel();
        // Ends with the last process that has the terminal open.
        std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(length @ 1..) = reader.read(&mut chunk) {
                if send.send(chunk[..length].to_vec()).is_err() {
                    return;
                }
            }
        });
        let keys = RefCell::new(pair.master.take_writer().expect("a keyboard"));
        Self {
            master: pair.master,
            keys,
            child,
            chunks,
            parser: parser(rows, cols),
            raw: Vec::new(),
        }
    }

    fn process(&mut self, chunk: &[u8]) {
        self.raw.extend_from_slice(chunk);
        self.parser.process(chunk);
    }

    /// Waits until the rows of the screen show what is wanted.
    #[track_caller]
    pub(crate) fn until(&mut self, what: &str, shows: impl Fn(&[String]) -> bool) {
        self.until_it(what, |terminal| shows(&terminal.rows()));
    }

    /// Waits until the terminal is as it is wanted.
    #[track_caller]
    pub(crate) fn until_it(&mut self, what: &str, shows: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        // Between frames only: the middle of one is nothing that a person sees.
        while !(self.is_between_frames() && shows(self)) {
            match self.chunks.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(chunk) => self.process(&chunk),
                Err(RecvTimeoutError::Timeout) => {
                    panic!("{what} never came:\n{}", self.rows().join("\n"))
                }
                Err(RecvTimeoutError::Disconnected) => {
                    panic!("it ended before {what}:\n{}", self.rows().join("\n"))
                }
            }
        }
    }

    /// Waits for a number of further frames, and checks the screen after each.
    #[track_caller]
    pub(crate) fn frames(&mut self, number: usize, check: impl Fn(&[String])) {
        for _ in 0..number {
            let before = self.drawn();
            let deadline = Instant::now() + PATIENCE;
            while self.drawn() == before || !self.is_between_frames() {
                let left = deadline.saturating_duration_since(Instant::now());
                let chunk = self.chunks.recv_timeout(left).expect("another frame");
                self.process(&chunk);
            }
            check(&self.everything());
        }
    }

    fn drawn(&self) -> usize {
        self.raw.windows(FRAME.len()).filter(|window| *window == FRAME).count()
    }

    fn is_between_frames(&self) -> bool {
        let last = |mark: &[u8]| self.raw.windows(mark.len()).rposition(|window| window == mark);
        last(FRAME) <= last(b"\x1b[?2026l")
    }

    /// What the screen shows, without trailing blanks and empty rows.
    pub(crate) fn rows(&self) -> Vec<String> {
        trimmed(self.parser.screen().rows(0, u16::MAX))
    }

    /// What the screen shows, after all that has scrolled away.
    pub(crate) fn everything(&mut self) -> Vec<String> {
        trimmed(self.lines().into_iter().map(|(row, _)| row))
    }

    /// All rows there are, and whether each goes on in the next.
    fn lines(&mut self) -> Vec<(String, bool)> {
        let screen = self.parser.screen_mut();
        let mut lines = Vec::new();
        for offset in (1..=screen.scrollback_len()).rev() {
            screen.set_scrollback(offset);
            let row = screen.rows(0, u16::MAX).next().expect("a first row");
            lines.push((row, screen.row_wrapped(0)));
        }
        screen.set_scrollback(0);
        let rows: Vec<String> = screen.rows(0, u16::MAX).collect();
        lines.extend(rows.into_iter().zip(0..).map(|(row, at)| (row, screen.row_wrapped(at))));
        lines
    }

    pub(crate) fn screen(&self) -> &vt100::Screen {
        self.parser.screen()
    }

    /// Whether the row that holds this text or a later one is too long for the screen.
    pub(crate) fn wraps_below(&self, text: &str) -> bool {
        let screen = self.parser.screen();
        let rows = screen.rows(0, u16::MAX).zip(0..).skip_while(|(row, _)| !row.contains(text));
        rows.into_iter().any(|(_, at)| screen.row_wrapped(at))
    }

    /// Resizes the terminal like those in use do: lines that are too long are wrapped, and rows
    /// that scrolled away come back when there is room.
    pub(crate) fn resize(&mut self, rows: u16, cols: u16) {
        let cursor = self.parser.screen().cursor_position();
        let first = self.parser.screen().scrollback_len();
        let mut lines = self.lines();
        lines.truncate(first + usize::from(cursor.0) + 1);
        let mut text = String::new();
        for (row, goes_on) in &lines {
            text.push_str(row.trim_end());
            text.push_str(if *goes_on { "" } else { "\r\n" });
        }
        let mut resized = parser(rows, cols);
        if self.parser.screen().hide_cursor() {
            resized.process(b"\x1b[?25l");
        }
        // The cursor stays in the row it was in, which is an empty one.
        resized.process(text.trim_end_matches("\r\n").as_bytes());
        resized.process(b"\r\n");
        self.parser = resized;
        self.master.resize(size(rows, cols)).expect("the terminal is resized");
    }

    /// Types on the keyboard.
    pub(crate) fn types(&self, keys: &[u8]) {
        let mut keyboard = self.keys.borrow_mut();
        keyboard.write_all(keys).and_then(|()| keyboard.flush()).expect("it is read");
    }

    /// Reads until the end, and answers the exit code.
    #[track_caller]
    pub(crate) fn end(&mut self) -> u32 {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.chunks.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(chunk) => self.process(&chunk),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    panic!("it never ended:\n{}", self.rows().join("\n"))
                }
            }
        }
        self.child.wait().expect("it has ended").exit_code()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Nothing is left to end after a test that went well.
        let _killed = self.child.kill();
        let _reaped = self.child.wait();
    }
}

fn trimmed(rows: impl Iterator<Item = String>) -> Vec<String> {
    let mut rows: Vec<String> = rows.map(|row| row.trim_end().to_owned()).collect();
    while rows.last().is_some_and(String::is_empty) {
        rows.pop();
    }
    rows
}
