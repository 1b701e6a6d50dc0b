//! The place on the terminal that the tree is drawn to, again and again.

use std::fmt::Write as _;
use std::io::Write;

use unicode_width::UnicodeWidthChar as _;

use super::line::Fitted;

/// Terminals that know this show nothing until the frame is complete; others ignore it.
const BEGIN: &str = "\x1b[?2026h";
const END: &str = "\x1b[?2026l";
const HIDE_CURSOR: &str = "\x1b[?25l";
const SHOW_CURSOR: &str = "\x1b[?25h";
/// A character that is wider than we think must not push the rest of the frame down.
const NO_WRAP: &str = "\x1b[?7l";
const WRAP: &str = "\x1b[?7h";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) rows: usize,
    pub(super) cols: usize,
}

impl Size {
    pub(super) fn of_stdout() -> Self {
        let size = terminal_size::terminal_size_of(std::io::stdout());
        let (cols, rows) = size.map_or((80, 24), |(cols, rows)| (cols.0, rows.0));
        Self { rows: rows.into(), cols: cols.into() }
    }
}

/// Draws frames in place. Between two frames the cursor stands, hidden, at the start of the row
/// below the frame, so a frame may have one line less than the terminal has rows.
pub(super) struct Screen<W> {
    out: W,
    /// What stands there now, and the size it was drawn for.
    frame: Vec<Fitted>,
    drawn_at: Option<Size>,
    /// Rows of earlier frames that a shrinking terminal has moved out of reach, directly above the
    /// frame. They come back when it grows.
    stale: Vec<String>,
    hidden: bool,
}

impl<W: Write> Screen<W> {
    pub(super) const fn new(out: W) -> Self {
        Self { out, frame: Vec::new(), drawn_at: None, stale: Vec::new(), hidden: false }
    }

    /// Puts another frame in the place of the last one, and `above` between it and what was there
    /// before. `above` is empty or ends a line.
    pub(super) fn draw(&mut self, size: Size, above: &[u8], frame: Vec<Fitted>) {
        let mut bytes = self.erase(size).into_bytes();
        bytes.extend_from_slice(above);
        if !above.is_empty() {
            self.stale.clear();
        }
        bytes.extend_from_slice(NO_WRAP.as_bytes());
        for line in &frame {
            bytes.extend_from_slice(line.sent.as_bytes());
            bytes.push(b'\n');
        }
        bytes.extend_from_slice(WRAP.as_bytes());
        bytes.extend_from_slice(END.as_bytes());
        self.frame = frame;
        self.drawn_at = Some(size);
        self.send(&bytes);
    }

    /// Writes above the frame that stands there. If it no longer fits, the next one will.
    pub(super) fn put_above(&mut self, size: Size, above: &[u8]) {
        let fits = self.drawn_at == Some(size);
        let frame = if fits { self.frame.clone() } else { Vec::new() };
        self.draw(size, above, frame);
    }

    /// Writes text for good where the frame was, and ends drawing.
    pub(super) fn leave(&mut self, size: Size, above: &[u8], last: &str) {
        let mut bytes = self.erase(size).into_bytes();
        bytes.extend_from_slice(above);
        bytes.extend_from_slice(last.as_bytes());
        bytes.extend_from_slice(SHOW_CURSOR.as_bytes());
        bytes.extend_from_slice(END.as_bytes());
        self.frame.clear();
        self.hidden = false;
        self.send(&bytes);
    }

    /// Writes below everything that is there, without a frame.
    pub(super) fn append(&mut self, bytes: &[u8]) {
        self.send(bytes);
    }

    /// Gives the cursor back. What was drawn stays.
    pub(super) fn release(&mut self) {
        if std::mem::take(&mut self.hidden) {
            self.send(SHOW_CURSOR.as_bytes());
        }
        self.frame.clear();
    }

    fn erase(&mut self, size: Size) -> String {
        let mut text = String::from(BEGIN);
        if !std::mem::replace(&mut self.hidden, true) {
            text.push_str(HIDE_CURSOR);
        }
        // Also wipes what the terminal echoes of keys, like ^C.
        text.push('\r');
        let rows = self.rows_to_erase(size);
        if rows > 0 {
            write!(text, "\x1b[{rows}A").expect("writing to a String cannot fail");
        }
        text.push_str("\x1b[J");
        text
    }

    /// How far up the first row is that has to go. Where the terminal does not bring rows back, the
    /// frame starts at the top of the screen, and going further up does nothing.
    fn rows_to_erase(&mut self, size: Size) -> usize {
        let mut rows: Vec<String> =
            self.frame.iter().flat_map(|line| wrapped(&line.seen, size.cols)).collect();
        let back = size.rows.saturating_sub(self.drawn_at.map_or(size.rows, |at| at.rows));
        let mut count = rows.len();
        let mut returned = 0;
        while let Some(row) = self.stale.pop() {
            returned += wrapped(&row, size.cols).len();
            if returned > back {
                self.stale.push(row);
                break;
            }
            count += wrapped(&row, size.cols).len();
        }
        let lost = rows.len().saturating_sub(size.rows.saturating_sub(1));
        self.stale.extend(rows.drain(..lost));
        count
    }

    fn send(&mut self, bytes: &[u8]) {
        // Nobody may be looking; that is no reason for the workflow to fail.
        let _written = self.out.write_all(bytes).and_then(|()| self.out.flush());
    }
}

/// The rows of a line on a terminal that has wrapped it to `cols` columns.
fn wrapped(line: &str, cols: usize) -> Vec<String> {
    let mut rows = vec![String::new()];
    let mut used = 0;
    for c in line.chars() {
        let width = c.width().unwrap_or(0);
        if used + width > cols && used > 0 {
            rows.push(String::new());
            used = 0;
        }
        used += width;
        rows.last_mut().expect("there is always one").push(c);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(texts: &[&str]) -> Vec<Fitted> {
        texts.iter().map(|text| Fitted { sent: (*text).into(), seen: (*text).into() }).collect()
    }

    fn text(out: &mut Vec<u8>) -> String {
        String::from_utf8(std::mem::take(out)).unwrap()
    }

    #[test]
    fn rows_are_counted_as_the_terminal_wraps_them() {
        let frame = ["1234567890", "", "日本日本"];
        let rows = |cols| frame.iter().map(|line| wrapped(line, cols).len()).sum::<usize>();
        assert_eq!(rows(80), 3);
        assert_eq!(rows(10), 3);
        assert_eq!(rows(9), 4);
        assert_eq!(rows(5), 2 + 1 + 2);
        // A wide character that does not fit leaves a column empty.
        assert_eq!(rows(3), 4 + 1 + 4);
        assert_eq!(rows(1), 10 + 1 + 4);
        assert_eq!(wrapped("1234567890", 4), ["1234", "5678", "90"]);
    }

    #[test]
    fn a_frame_takes_the_place_of_the_last_one() {
        let size = Size { rows: 24, cols: 80 };
        let mut screen = Screen::new(Vec::new());
        screen.draw(size, b"", lines(&["one", "two"]));
        let first = "\x1b[?2026h\x1b[?25l\r\x1b[J\x1b[?7lone\ntwo\n\x1b[?7h\x1b[?2026l";
        assert_eq!(text(&mut screen.out), first);
        screen.draw(size, b"said\n", lines(&["three"]));
        let second = "\x1b[?2026h\r\x1b[2A\x1b[Jsaid\n\x1b[?7lthree\n\x1b[?7h\x1b[?2026l";
        assert_eq!(text(&mut screen.out), second);
        screen.leave(size, b"", "end\n");
        assert_eq!(text(&mut screen.out), "\x1b[?2026h\r\x1b[1A\x1b[Jend\n\x1b[?25h\x1b[?2026l");
    }

    #[test]
    fn after_a_shrink_the_wrapped_frame_is_erased() {
        let mut screen = Screen::new(Vec::new());
        screen.draw(Size { rows: 24, cols: 80 }, b"", lines(&["1234567890", "12345"]));
        screen.out.clear();
        screen.draw(Size { rows: 24, cols: 4 }, b"", Vec::new());
        assert!(text(&mut screen.out).contains("\r\x1b[5A\x1b[J"), "3 rows and 2 rows");
    }

    /// How far up the next frame starts if the terminal has this size now.
    fn up(screen: &mut Screen<Vec<u8>>, rows: usize, cols: usize, frame: &[&str]) -> usize {
        screen.out.clear();
        screen.draw(Size { rows, cols }, b"", lines(frame));
        let text = text(&mut screen.out);
        let number = text.split("\r\x1b[").nth(1).and_then(|rest| rest.split('A').next());
        number.and_then(|number| number.parse().ok()).unwrap_or(0)
    }

    #[test]
    fn rows_that_a_terminal_brings_back_are_erased() {
        let mut screen = Screen::new(Vec::new());
        assert_eq!(up(&mut screen, 24, 80, &["1", "2", "3", "4", "5", "6"]), 0);
        // Two of six rows are out of reach now.
        assert_eq!(up(&mut screen, 5, 80, &["a", "b", "c", "d"]), 6);
        assert_eq!(up(&mut screen, 5, 80, &["a", "b", "c", "d"]), 4);
        assert_eq!(up(&mut screen, 6, 80, &["a", "b", "c", "d"]), 5);
        assert_eq!(up(&mut screen, 24, 80, &["a", "b", "c", "d"]), 5);
        assert_eq!(up(&mut screen, 30, 80, &["a", "b", "c", "d"]), 4);
    }

    #[test]
    fn text_goes_above_the_frame() {
        let size = Size { rows: 24, cols: 80 };
        let mut screen = Screen::new(Vec::new());
        screen.draw(size, b"", lines(&["one", "two"]));
        screen.out.clear();
        screen.put_above(size, b"said\n");
        let drawn = "\x1b[2A\x1b[Jsaid\n\x1b[?7lone\ntwo\n\x1b[?7h";
        assert!(text(&mut screen.out).contains(drawn));
        screen.put_above(Size { rows: 24, cols: 2 }, b"more\n");
        assert!(text(&mut screen.out).contains("\x1b[4A\x1b[Jmore\n\x1b[?7l\x1b[?7h"));
    }

    #[test]
    fn the_cursor_is_given_back_once() {
        let mut screen = Screen::new(Vec::new());
        screen.release();
        assert_eq!(text(&mut screen.out), "", "it was never taken");
        screen.draw(Size { rows: 24, cols: 80 }, b"", lines(&["one"]));
        screen.out.clear();
        screen.release();
        screen.release();
        assert_eq!(text(&mut screen.out), "\x1b[?25h");
    }
}
