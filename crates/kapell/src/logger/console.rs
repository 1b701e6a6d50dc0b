//! What steps write to the console, line by line.

use std::collections::BTreeMap;

use kapell_backend::executor::Stream;
use kapell_core::workflow::Workflow;
use kapell_node::stdio;

/// A line that is longer is not waited for, so that one without an end does not fill the memory.
const MAX_LINE: usize = 64 << 10;

/// Writes whole lines, so that those of several steps do not mix; what has no end yet waits for it.
#[derive(Debug, Default)]
pub(super) struct Console {
    /// Standard output and standard error of each step.
    partial: BTreeMap<String, [Vec<u8>; 2]>,
    /// Several steps write, so that each line tells whose it is.
    named: bool,
    /// A line that was too long to wait for has no end yet.
    open: bool,
}

impl Console {
    pub(super) fn of(workflow: &Workflow) -> Self {
        let writes = workflow
            .steps
            .iter()
            .map(|step| step.options.console)
            .filter(|console| console.stdout || console.stderr);
        Self { named: writes.count() > 1, ..Self::default() }
    }

    pub(super) fn take(&mut self, node: &str, stream: Stream, chunk: &[u8]) {
        let out = self.collect(node, stream, chunk);
        write(stream, &out);
    }

    /// What can be written now.
    fn collect(&mut self, node: &str, stream: Stream, chunk: &[u8]) -> Vec<u8> {
        let partial = match self.partial.get_mut(node) {
            Some(partial) => partial,
            None => self.partial.entry(node.to_owned()).or_default(),
        };
        let partial = &mut partial[at(stream)];
        partial.extend_from_slice(chunk);
        // The part that was there before has no end.
        let known = partial.len() - chunk.len();
        let whole = chunk.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| known + end + 1);
        let mut out = Vec::with_capacity(whole);
        for line in partial[..whole].split_inclusive(|&byte| byte == b'\n') {
            put(&mut out, self.named, node, line);
        }
        partial.drain(..whole);
        if whole > 0 && stream == Stream::Stdout {
            self.open = false;
        }
        if partial.len() > MAX_LINE {
            let line = std::mem::take(partial);
            put(&mut out, self.named, node, &line);
            if self.named {
                out.push(b'\n');
            } else {
                self.open |= stream == Stream::Stdout;
            }
        }
        out
    }

    /// Something happened to a step: its lines so far are over.
    pub(super) fn end(&mut self, node: &str) {
        for (stream, line) in self.rest(node) {
            write(stream, &line);
        }
    }

    pub(super) fn end_all(&mut self) {
        let nodes: Vec<String> = self.partial.keys().cloned().collect();
        for node in nodes {
            self.end(&node);
        }
    }

    fn rest(&mut self, node: &str) -> Vec<(Stream, Vec<u8>)> {
        let partial = self.partial.remove(node).unwrap_or_default();
        let mut rest = Vec::new();
        for (stream, line) in [Stream::Stdout, Stream::Stderr].into_iter().zip(partial) {
            if !line.is_empty() {
                let mut out = Vec::with_capacity(line.len() + 1);
                put(&mut out, self.named, node, &line);
                out.push(b'\n');
                self.open &= stream != Stream::Stdout;
                rest.push((stream, out));
            }
        }
        rest
    }

    /// What must stand before a line of ours on standard output.
    pub(super) fn before_line(&mut self) -> &'static str {
        if std::mem::take(&mut self.open) { "\n" } else { "" }
    }
}

const fn at(stream: Stream) -> usize {
    match stream {
        Stream::Stdout => 0,
        Stream::Stderr => 1,
    }
}

fn put(out: &mut Vec<u8>, named: bool, node: &str, line: &[u8]) {
    if named {
        out.extend_from_slice(node.as_bytes());
        out.extend_from_slice(b" | ");
    }
    out.extend_from_slice(line);
}

fn write(stream: Stream, bytes: &[u8]) {
    // Nobody may be reading; that is no reason for the workflow to fail.
    let _written = stdio::write_all(stream, bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn console(named: bool) -> Console {
        Console { named, ..Console::default() }
    }

    #[test]
    fn a_line_waits_for_its_end() {
        let mut console = console(true);
        assert_eq!(console.collect("a", Stream::Stdout, b"one\ntw"), b"a | one\n");
        assert_eq!(console.collect("b", Stream::Stdout, b"from b"), b"");
        assert_eq!(console.collect("a", Stream::Stderr, b"complaint"), b"");
        assert_eq!(console.collect("a", Stream::Stdout, b"o\n\nx"), b"a | two\na | \n");
        let rest = console.rest("a");
        assert_eq!(
            rest,
            [(Stream::Stdout, b"a | x\n".to_vec()), (Stream::Stderr, b"a | complaint\n".to_vec())]
        );
        assert_eq!(console.rest("a"), []);
    }

    #[test]
    fn a_single_step_comes_as_it_is() {
        let mut console = console(false);
        assert_eq!(console.collect("a", Stream::Stdout, b"\xff\r\nx"), b"\xff\r\n");
        assert_eq!(console.rest("a"), [(Stream::Stdout, b"x\n".to_vec())]);
    }

    #[test]
    fn a_line_without_an_end_is_not_waited_for() {
        let mut console = console(false);
        let long = vec![b'x'; MAX_LINE + 1];
        assert_eq!(console.collect("a", Stream::Stdout, &long), long, "and nothing is put in");
        assert_eq!(console.before_line(), "\n");
        assert_eq!(console.before_line(), "");
        assert_eq!(console.collect("a", Stream::Stdout, &long), long);
        assert_eq!(console.collect("a", Stream::Stdout, b"\n"), b"\n");
        assert_eq!(console.before_line(), "");
        console.named = true;
        let lines = [b"a | ", &long[..], b"\n"].concat();
        assert_eq!(console.collect("a", Stream::Stdout, &long), lines);
    }
}
