//! Finds the references in shell text that the shell itself would expand.
//!
//! The scan knows quotes, comments, substitutions and here-documents, each within the others. It
//! gives no answer when the text does not add up: then either the text or the scan is wrong.

use std::collections::VecDeque;

use super::here::HereDocument;
use super::reference::{Reference, parse};

/// A reference and where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found<'t> {
    pub(super) at: usize,
    pub(super) length: usize,
    pub(super) reference: Reference<'t>,
}

/// All references that a POSIX shell would expand, or None if the text could not be understood.
pub(super) fn references(text: &str) -> Option<Vec<Found<'_>>> {
    let mut scan = Scan {
        text,
        at: 0,
        limit: usize::MAX,
        stack: vec![Context::Code(Code::Top, 0)],
        announced: VecDeque::new(),
        in_word: false,
        backticks: 0,
        found: Vec::new(),
    };
    while scan.at < text.len() {
        scan.step()?;
    }
    let ended = matches!(*scan.stack, [Context::Code(Code::Top, _)]) && scan.announced.is_empty();
    ended.then_some(scan.found)
}

/// What surrounds a place in the text.
#[derive(Debug, Clone, Copy)]
enum Context {
    /// Commands, and how many `case` are open in them: their patterns end in lone `)`.
    Code(Code, u32),
    Double,
    Brace {
        quoted: bool,
        single: Single,
    },
    /// `$((`, and how many further parentheses are open in it.
    Sum(u32),
    /// The text of a here-document that is expanded.
    Body {
        end: usize,
        after: usize,
        outer_limit: usize,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Code {
    Top,
    Group,
    Substitution,
    Backtick,
}

/// What a single quote means inside `${…}`.
#[derive(Debug, Clone, Copy)]
enum Single {
    Quotes,
    Literal,
    Unsure,
}

struct Scan<'t> {
    text: &'t str,
    at: usize,
    /// Where the innermost here-document ends.
    limit: usize,
    stack: Vec<Context>,
    announced: VecDeque<HereDocument>,
    in_word: bool,
    backticks: usize,
    found: Vec<Found<'t>>,
}

impl Scan<'_> {
    fn byte(&self, further: usize) -> u8 {
        self.text.as_bytes().get(self.at + further).copied().unwrap_or(0)
    }

    /// Steps over the next piece of text; None if it makes no sense.
    fn step(&mut self) -> Option<()> {
        if self.at >= self.limit {
            return self.end_body();
        }
        let top = *self.stack.last()?;
        let c = self.byte(0);
        match c {
            b'\\' => {
                self.at += 2;
                self.in_word = true;
                return Some(());
            }
            b'$' => return self.dollar(top),
            b'`' => return self.backtick(top),
            _ => {}
        }
        match top {
            Context::Code(code, cases) => self.step_in_code(c, code, cases),
            Context::Double if c == b'"' => self.close(),
            Context::Brace { .. } if c == b'}' => self.close(),
            Context::Brace { .. } | Context::Sum(_) if c == b'"' => self.open(Context::Double, 1),
            Context::Brace { single, .. } if c == b'\'' => match single {
                Single::Quotes => self.skip_single(),
                Single::Literal => self.skip(1),
                Single::Unsure => None,
            },
            Context::Sum(depth) => self.step_in_sum(c, depth),
            Context::Double | Context::Brace { .. } | Context::Body { .. } => self.skip(1),
        }
    }

    #[expect(clippy::unnecessary_wraps, reason = "every kind of step has the same form")]
    fn skip(&mut self, length: usize) -> Option<()> {
        self.at += length;
        self.in_word = true;
        Some(())
    }

    #[expect(clippy::unnecessary_wraps, reason = "every kind of step has the same form")]
    fn open(&mut self, context: Context, length: usize) -> Option<()> {
        self.stack.push(context);
        self.at += length;
        self.in_word = false;
        Some(())
    }

    fn close(&mut self) -> Option<()> {
        self.stack.pop();
        self.skip(1)
    }

    fn dollar(&mut self, top: Context) -> Option<()> {
        let rest = &self.text[self.at..];
        if let Some((reference, length)) = parse(rest) {
            self.found.push(Found { at: self.at, length, reference });
            return self.skip(length);
        }
        let quoted = match top {
            Context::Code(..) => false,
            Context::Brace { quoted, .. } => quoted,
            Context::Double | Context::Sum(_) | Context::Body { .. } => true,
        };
        match self.byte(1) {
            b'(' if self.byte(2) == b'(' => self.open(Context::Sum(0), 3),
            b'(' => self.open(Context::Code(Code::Substitution, 0), 2),
            b'{' => {
                let (single, length) = begin_of_brace(&rest[2..], quoted);
                self.open(Context::Brace { quoted, single }, 2 + length)
            }
            b'\'' if !quoted => self.skip_escaped_single(),
            b'#' | b'$' | b'?' | b'!' | b'@' | b'*' | b'-' => self.skip(2),
            _ => self.skip(1),
        }
    }

    fn backtick(&mut self, top: Context) -> Option<()> {
        if let Context::Code(Code::Backtick, _) = top {
            if self.announced.iter().any(|doc| doc.depth == self.stack.len()) {
                return None;
            }
            self.backticks -= 1;
            return self.close();
        }
        // Shells disagree about a command in backticks within something within backticks.
        if self.backticks > 0 {
            return None;
        }
        self.backticks += 1;
        self.open(Context::Code(Code::Backtick, 0), 1)
    }

    fn step_in_code(&mut self, c: u8, code: Code, cases: u32) -> Option<()> {
        match c {
            b'\'' => self.skip_single(),
            b'"' => self.open(Context::Double, 1),
            b'#' if !self.in_word => self.skip_comment(),
            b'(' if !self.in_word && self.byte(1) == b'(' => self.open(Context::Sum(0), 2),
            b'(' => self.open(Context::Code(Code::Group, 0), 1),
            b')' if cases > 0 => self.separator(),
            b')' => self.end_group(code),
            b'<' if self.text[self.at..].starts_with("<<<") => self.skip(3),
            b'<' if self.byte(1) == b'<' => self.announce(),
            b'\n' => self.begin_line(),
            b' ' | b'\t' | b';' | b'&' | b'|' | b'<' | b'>' => self.separator(),
            b'c' | b'e' if !self.in_word => {
                self.count_case(code, cases);
                self.skip(1)
            }
            _ => self.skip(1),
        }
    }

    #[expect(clippy::unnecessary_wraps, reason = "every kind of step has the same form")]
    fn separator(&mut self) -> Option<()> {
        self.at += 1;
        self.in_word = false;
        Some(())
    }

    /// Notes a word that opens or closes a `case`. One too many only makes the scan unsure.
    fn count_case(&mut self, code: Code, cases: u32) {
        let rest = &self.text[self.at..];
        let ends = |after: &str| !after.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        let counted = if rest.strip_prefix("case").is_some_and(|r| r.starts_with([' ', '\t', '\n']))
        {
            cases + 1
        } else if rest.strip_prefix("esac").is_some_and(ends) {
            let before = self.text[..self.at].trim_end_matches([' ', '\t']);
            let begins = before.ends_with(['\n', ';', '&', ')']) || before.ends_with("in");
            cases.saturating_sub(u32::from(begins))
        } else {
            return;
        };
        if let Some(top) = self.stack.last_mut() {
            *top = Context::Code(code, counted);
        }
    }

    fn end_group(&mut self, code: Code) -> Option<()> {
        let depth = self.stack.len();
        match code {
            Code::Top | Code::Backtick => return None,
            Code::Substitution if self.announced.iter().any(|doc| doc.depth == depth) => {
                return None;
            }
            Code::Substitution => return self.close(),
            Code::Group => {}
        }
        for doc in self.announced.iter_mut().filter(|doc| doc.depth == depth) {
            doc.depth -= 1;
        }
        self.stack.pop();
        self.separator()
    }

    fn step_in_sum(&mut self, c: u8, depth: u32) -> Option<()> {
        let deeper = match c {
            b'(' => depth + 1,
            b')' if depth > 0 => depth - 1,
            b')' if self.byte(1) == b')' => {
                self.stack.pop();
                return self.skip(2);
            }
            // No sum, but commands in parentheses, or something that is neither.
            b')' | b'\'' => return None,
            b'#' if self.text[..self.at].ends_with([' ', '\t', '\n', ';']) => return None,
            _ => depth,
        };
        *self.stack.last_mut()? = Context::Sum(deeper);
        self.skip(1)
    }

    fn skip_single(&mut self) -> Option<()> {
        let inside = &self.text[self.at + 1..];
        let length = inside.find('\'')?;
        if self.backticks > 0 && inside[..length].contains('`') {
            return None;
        }
        self.skip(length + 2)
    }

    fn skip_escaped_single(&mut self) -> Option<()> {
        let mut length = 2;
        loop {
            match self.byte(length) {
                b'\'' => return self.skip(length + 1),
                b'\\' => length += 2,
                _ if self.at + length >= self.text.len() => return None,
                b'`' if self.backticks > 0 => return None,
                _ => length += 1,
            }
        }
    }

    fn skip_comment(&mut self) -> Option<()> {
        let rest = &self.text[self.at..];
        let length = rest.find('\n').unwrap_or(rest.len());
        if self.backticks > 0 && rest[..length].contains('`') {
            return None;
        }
        self.at += length;
        Some(())
    }

    /// Notes the here-document whose end is named next.
    fn announce(&mut self) -> Option<()> {
        if self.backticks > 0 {
            return None;
        }
        let depth = self.stack.len();
        let (doc, length) = HereDocument::announced_by(&self.text[self.at + 2..], depth)?;
        self.announced.push_back(doc);
        self.skip(2 + length)
    }

    fn begin_line(&mut self) -> Option<()> {
        self.separator();
        if self.announced.iter().any(|doc| doc.depth != self.stack.len()) {
            return None;
        }
        self.begin_bodies()
    }

    /// Goes into the next here-document that was announced, past those that are literal.
    fn begin_bodies(&mut self) -> Option<()> {
        while let Some(doc) = self.announced.pop_front() {
            let stop = self.limit.min(self.text.len());
            let (end, after) = doc.find_end(self.text, self.at, stop)?;
            if !doc.literal {
                self.stack.push(Context::Body { end, after, outer_limit: self.limit });
                self.limit = end;
                return Some(());
            }
            self.at = after;
        }
        Some(())
    }

    fn end_body(&mut self) -> Option<()> {
        let Some(Context::Body { end, after, outer_limit }) = self.stack.pop() else { return None };
        if self.at != end {
            return None;
        }
        self.at = after;
        self.limit = outer_limit;
        self.in_word = false;
        self.begin_bodies()
    }
}

/// What a single quote means in the `${` before `inside`, and how much of it is the plain name.
fn begin_of_brace(inside: &str, quoted: bool) -> (Single, usize) {
    let name = inside.bytes().take_while(|&b| b.is_ascii_alphanumeric() || b == b'_').count();
    let special = name == 0 && inside.starts_with(['@', '*', '#', '?', '$', '!', '-']);
    let length = name + usize::from(special);
    let single = match inside.as_bytes().get(length) {
        _ if !quoted => Single::Quotes,
        Some(b'%' | b'#') => Single::Quotes,
        Some(b':' | b'-' | b'+' | b'=' | b'?') => Single::Literal,
        Some(_) | None => Single::Unsure,
    };
    (single, length)
}
