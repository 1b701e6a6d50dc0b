//! What steps write to the console, made fit to stand above the tree.

use std::collections::BTreeMap;

use kapell_backend::executor::Stream;

/// A line that is longer is broken, so that one without an end does not fill the memory.
const MAX_LINE: usize = 8 << 10;
const RESET: &[u8] = b"\x1b[0m";
const ESCAPE: u8 = 0x1b;

/// Collects whole lines; what has no end yet waits for it, source by source.
#[derive(Debug, Default)]
pub(super) struct Console {
    /// Standard output and standard error of each step.
    partial: BTreeMap<String, [Vec<u8>; 2]>,
    ready: Vec<u8>,
    coloured: bool,
}

impl Console {
    pub(super) fn take(&mut self, node: &str, stream: Stream, chunk: &[u8]) {
        let partial = match self.partial.get_mut(node) {
            Some(partial) => partial,
            None => self.partial.entry(node.to_owned()).or_default(),
        };
        let partial = match stream {
            Stream::Stdout => &mut partial[0],
            Stream::Stderr => &mut partial[1],
        };
        let whole = chunk.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let (whole, rest) = chunk.split_at(whole);
        for line in whole.split_inclusive(|&byte| byte == b'\n') {
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            self.coloured |= if partial.is_empty() {
                calm(line, &mut self.ready)
            } else {
                partial.extend_from_slice(line);
                calm(&std::mem::take(partial), &mut self.ready)
            };
            self.ready.push(b'\n');
        }
        partial.extend_from_slice(rest);
        if partial.len() > MAX_LINE {
            self.coloured |= calm(&std::mem::take(partial), &mut self.ready);
            self.ready.push(b'\n');
        }
    }

    /// A step has ended: so has its last line.
    pub(super) fn end(&mut self, node: &str) {
        for partial in self.partial.remove(node).into_iter().flatten() {
            if !partial.is_empty() {
                self.coloured |= calm(&partial, &mut self.ready);
                self.ready.push(b'\n');
            }
        }
    }

    pub(super) fn end_all(&mut self) {
        let nodes: Vec<String> = self.partial.keys().cloned().collect();
        for node in nodes {
            self.end(&node);
        }
    }

    /// How much could be written.
    pub(super) const fn waiting(&self) -> usize {
        self.ready.len()
    }

    /// The lines that were complete since the last call.
    pub(super) fn drain(&mut self) -> Vec<u8> {
        let mut lines = std::mem::take(&mut self.ready);
        if std::mem::take(&mut self.coloured) {
            lines.extend_from_slice(RESET);
        }
        lines
    }
}

/// Adds a line to `out` without what would move the cursor away or change the terminal. Colours
/// stay; true if there were any.
pub(super) fn calm(line: &[u8], out: &mut Vec<u8>) -> bool {
    // 0xc2 leads the control characters beyond ASCII.
    let harmless = |byte: &u8| *byte >= b' ' && *byte != 0xc2 && *byte != 0x7f;
    if line.iter().all(harmless) {
        out.extend_from_slice(line);
        return false;
    }
    let mut coloured = false;
    let mut rest = line;
    while let Some((&byte, after)) = rest.split_first() {
        rest = match byte {
            ESCAPE => {
                let after = &rest[escape_length(rest)..];
                let sequence = &rest[..rest.len() - after.len()];
                if sequence.starts_with(b"\x1b[") && sequence.ends_with(b"m") {
                    out.extend_from_slice(sequence);
                    coloured = true;
                }
                after
            }
            0xc2 if after.first().is_some_and(|byte| (0x80..0xa0).contains(byte)) => &after[1..],
            b'\t' | b'\r' | 0x08 => {
                out.push(byte);
                after
            }
            0..b' ' | 0x7f => after,
            _ => {
                out.push(byte);
                after
            }
        };
    }
    coloured
}

/// How long the escape sequence is that `bytes` starts with.
fn escape_length(bytes: &[u8]) -> usize {
    let ends = |from: usize, last: &dyn Fn(u8) -> bool| {
        let found = bytes[from..].iter().position(|&byte| last(byte));
        found.map_or(bytes.len(), |at| from + at + 1)
    };
    match bytes.get(1) {
        None => 1,
        Some(b'[') => ends(2, &|byte| (0x40..0x7f).contains(&byte)),
        // Titles, links and the like: up to BEL or ESC \.
        Some(b']' | b'P' | b'X' | b'^' | b'_') => {
            let end = ends(2, &|byte| byte == 0x07 || byte == ESCAPE);
            let closing = bytes[..end].ends_with(&[ESCAPE]) && bytes.get(end) == Some(&b'\\');
            end + usize::from(closing)
        }
        Some(_) => ends(1, &|byte| !(0x20..0x30).contains(&byte)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drained(console: &mut Console) -> String {
        String::from_utf8(console.drain()).unwrap()
    }

    #[test]
    fn a_line_waits_for_its_end() {
        let mut console = Console::default();
        console.take("a", Stream::Stdout, b"one\ntw");
        console.take("b", Stream::Stdout, b"from b");
        console.take("a", Stream::Stderr, b"complaint");
        assert_eq!(drained(&mut console), "one\n");
        console.take("a", Stream::Stdout, b"o\n\nthree");
        assert_eq!(drained(&mut console), "two\n\n");
        console.end("a");
        assert_eq!(drained(&mut console), "three\ncomplaint\n");
        console.end_all();
        assert_eq!(drained(&mut console), "from b\n");
        assert!(console.partial.is_empty());
    }

    #[test]
    fn a_line_without_an_end_is_broken() {
        let mut console = Console::default();
        for _ in 0..1_000 {
            console.take("a", Stream::Stdout, &[b'x'; 1_000]);
            assert!(console.partial["a"][0].len() <= MAX_LINE);
        }
        assert!(console.drain().len() > 900_000);
    }

    #[test]
    fn colours_stay_and_end_before_the_tree() {
        let mut console = Console::default();
        console.take("a", Stream::Stdout, b"\x1b[1;31mred\n");
        assert_eq!(drained(&mut console), "\x1b[1;31mred\n\x1b[0m");
        console.take("a", Stream::Stdout, b"plain \x1b[3");
        assert_eq!(drained(&mut console), "");
        console.take("a", Stream::Stdout, b"2mgreen\n");
        assert_eq!(drained(&mut console), "plain \x1b[32mgreen\n\x1b[0m");
    }

    #[test]
    fn what_would_garble_the_screen_is_left_out() {
        let mut console = Console::default();
        let evil = "a\x1b[2J\x1b[10;5Hb\x1b]0;title\x07c\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\ \
                    \x1b(0d\x1b7e\x07\u{9b}f\u{e9}\u{a0}\tg\rh\x1b";
        console.take("a", Stream::Stdout, evil.as_bytes());
        console.end("a");
        assert_eq!(drained(&mut console), "abclink def\u{e9}\u{a0}\tg\rh\n");
    }
}
