//! A line of coloured text that fits the screen and cannot leave its place on it.

use unicode_width::UnicodeWidthChar as _;

use super::super::style::{Colour, Style, clean};

/// Text in pieces of one colour each, without anything that moves the cursor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Line(Vec<(Option<Colour>, String)>);

/// A line as it is sent to the terminal, and what is to be seen of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fitted {
    pub(super) sent: String,
    pub(super) seen: String,
}

impl Line {
    pub(super) fn plain(self, text: &str) -> Self {
        self.with(None, text)
    }

    pub(super) fn paint(self, colour: Colour, text: &str) -> Self {
        self.with(Some(colour), text)
    }

    fn with(mut self, colour: Option<Colour>, text: &str) -> Self {
        if !text.is_empty() {
            self.0.push((colour, clean(text).into_owned()));
        }
        self
    }

    /// Cuts the line to `cols` columns; an ellipsis says that it was longer.
    pub(super) fn fit(&self, cols: usize, style: Style) -> Fitted {
        let whole: usize = self.0.iter().map(|(_, text)| width(text)).sum();
        let mut left = if whole <= cols { whole } else { cols.saturating_sub(1) };
        let mut fitted = Fitted { sent: String::new(), seen: String::new() };
        for (colour, text) in &self.0 {
            let (text, rest) = text.split_at(prefix(text, left));
            left -= width(text);
            fitted.add(*colour, text, style);
            if !rest.is_empty() {
                break;
            }
        }
        if whole > cols && cols > 0 {
            fitted.add(None, "…", style);
        }
        fitted
    }
}

impl Fitted {
    fn add(&mut self, colour: Option<Colour>, text: &str, style: Style) {
        self.seen.push_str(text);
        match colour {
            Some(colour) => self.sent.push_str(&style.paint(colour, text)),
            None => self.sent.push_str(text),
        }
    }
}

pub(super) fn width(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// How many bytes of `text` fit into `cols` columns.
fn prefix(text: &str, cols: usize) -> usize {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += c.width().unwrap_or(0);
        if used > cols {
            return at;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Style = Style { colour: false };
    const COLOURED: Style = Style { colour: true };

    #[test]
    fn a_line_is_cut_to_the_width() {
        let line = Line::default().paint(Colour::Green, "✓").plain(" fetch 日本 ").plain("end");
        let seen = |cols| line.fit(cols, PLAIN).seen;
        assert_eq!(seen(80), "✓ fetch 日本 end");
        assert_eq!(seen(16), "✓ fetch 日本 end");
        assert_eq!(seen(15), "✓ fetch 日本 e…");
        assert_eq!(seen(12), "✓ fetch 日…");
        // A wide character is not cut in half.
        assert_eq!(seen(10), "✓ fetch …");
        assert_eq!(seen(1), "…");
        assert_eq!(seen(0), "");
        for cols in 0..20 {
            assert!(width(&seen(cols)) <= cols, "{cols}");
        }
    }

    #[test]
    fn colours_are_closed_where_a_line_is_cut() {
        let line = Line::default().paint(Colour::Red, "failed").plain(" late");
        assert_eq!(line.fit(4, COLOURED).sent, "\x1b[31mfai\x1b[0m…");
        assert_eq!(line.fit(80, COLOURED).sent, "\x1b[31mfailed\x1b[0m late");
        assert_eq!(line.fit(80, PLAIN).sent, "failed late");
    }

    #[test]
    fn control_characters_cannot_leave_their_line() {
        let evil = "a\x1b[2Jb\nc\rd\te\u{9b}f\u{7f}g\u{202e}h\u{2028}i";
        let line = Line::default().plain(evil);
        assert_eq!(line.fit(80, PLAIN).sent, "a\u{fffd}[2Jb c d e\u{fffd}f\u{fffd}gh i");
    }
}
