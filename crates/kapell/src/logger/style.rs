//! Colour, where it is wanted.

use std::borrow::Cow;
use std::io::IsTerminal;

/// Whether to colour what is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Style {
    pub(crate) colour: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colour {
    Green,
    Red,
    Yellow,
    Blue,
    Dim,
    Bold,
}

impl Style {
    pub(crate) fn of_stdout() -> Self {
        Self::of(&std::io::stdout())
    }

    pub(crate) fn of_stderr() -> Self {
        Self::of(&std::io::stderr())
    }

    fn of(stream: &impl IsTerminal) -> Self {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { colour: stream.is_terminal() && !refused && !is_dumb() }
    }

    pub(crate) fn paint(self, colour: Colour, text: &str) -> String {
        if !self.colour || text.is_empty() {
            return text.to_owned();
        }
        let code = match colour {
            Colour::Green => "32",
            Colour::Red => "31",
            Colour::Yellow => "33",
            Colour::Blue => "34",
            Colour::Dim => "2",
            Colour::Bold => "1",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

/// Replaces what would move the cursor, and drops what changes the direction or width of text.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| (b' '..0x7f).contains(&byte)) {
        return Cow::Borrowed(text);
    }
    let kept = text.chars().filter_map(|c| match c {
        '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}' => Some(' '),
        '\u{061c}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}'
        | '\u{fe0f}'
        | '\u{feff}' => None,
        c if c.is_control() => Some('\u{fffd}'),
        c => Some(c),
    });
    Cow::Owned(kept.collect())
}

/// A terminal that can only print.
fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// Whether what stands on standard output can be drawn over.
pub(crate) fn can_redraw() -> bool {
    std::io::stdout().is_terminal() && !is_dumb()
}
