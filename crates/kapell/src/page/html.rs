//! Text that is safe to show: whatever is not written in this program is escaped.

use std::fmt::{self, Display, Write as _};

/// A piece of a page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Html(String);

impl Html {
    /// Adds what stands in the source of this program.
    pub(super) fn raw(&mut self, text: &'static str) {
        self.0.push_str(text);
    }

    /// Adds what comes from elsewhere.
    pub(super) fn text(&mut self, value: &(impl Display + ?Sized)) {
        // Writing to a String cannot fail.
        let _ = write!(Escaped(&mut self.0), "{value}");
    }

    pub(super) fn nest(&mut self, piece: &Self) {
        self.0.push_str(&piece.0);
    }

    pub(crate) fn into_string(self) -> String {
        self.0
    }
}

struct Escaped<'a>(&'a mut String);

impl fmt::Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for char in text.chars() {
            match char {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                // Turns the text around it, or shows nothing: a name could look like another.
                '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => self.0.push('\u{fffd}'),
                other if other.is_control() && other != '\n' && other != '\t' => {
                    self.0.push('\u{fffd}');
                }
                other => self.0.push(other),
            }
        }
        Ok(())
    }
}

/// Adds parts to a piece: a literal as it stands, `(value)` escaped, `{piece}` as it is.
macro_rules! html {
    ($out:expr; $($part:tt)*) => {{ $( html!(@ $out, $part); )* }};
    (@ $out:expr, ($value:expr)) => { $out.text(&$value) };
    (@ $out:expr, {$piece:expr}) => { $out.nest(&$piece) };
    (@ $out:expr, $raw:literal) => { $out.raw($raw) };
}
pub(super) use html;
