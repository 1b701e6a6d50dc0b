//! Here-documents of shell text: how one is announced and where it ends.

/// A here-document whose text begins after the current line.
#[derive(Debug)]
pub(super) struct HereDocument {
    end: String,
    /// Nothing in it is expanded.
    pub(super) literal: bool,
    strips_tabs: bool,
    /// How deep the command stands that reads it.
    pub(super) depth: usize,
}

impl HereDocument {
    /// Reads what follows `<<`, and how long that is. None if it is not plain where it ends.
    pub(super) fn announced_by(text: &str, depth: usize) -> Option<(Self, usize)> {
        let strips_tabs = text.starts_with('-');
        let word = text[usize::from(strips_tabs)..].trim_start_matches([' ', '\t']);
        let skipped = text.len() - word.len();
        let (end, literal, length) = end_word(word)?;
        Some((Self { end, literal, strips_tabs, depth }, skipped + length))
    }

    /// Where the line that ends it begins and ends, if it stands in `text[from..stop]`.
    pub(super) fn find_end(&self, text: &str, from: usize, stop: usize) -> Option<(usize, usize)> {
        let mut start = from;
        let mut continued = false;
        for line in text.get(from..stop)?.split_inclusive('\n') {
            let bare = line.strip_suffix('\n').unwrap_or(line);
            let told = if self.strips_tabs { bare.trim_start_matches('\t') } else { bare };
            if told == self.end {
                return (!continued).then_some((start, start + line.len()));
            }
            continued = !self.literal && bare.ends_with('\\');
            start += line.len();
        }
        None
    }
}

/// Reads the word that ends a here-document: the word, whether it was quoted, and its length.
fn end_word(word: &str) -> Option<(String, bool, usize)> {
    let mut end = String::new();
    let mut literal = false;
    let mut characters = word.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '\'' | '"' => {
                literal = true;
                loop {
                    match characters.next()?.1 {
                        '\\' if c == '"' => return None,
                        inner if inner == c => break,
                        inner => end.push(inner),
                    }
                }
            }
            '\\' => {
                literal = true;
                end.push(characters.next()?.1);
            }
            '$' | '`' => return None,
            c if c.is_whitespace() || ";&|<>()".contains(c) => {
                return (at > 0).then_some((end, literal, at));
            }
            c => end.push(c),
        }
    }
    (!word.is_empty()).then_some((end, literal, word.len()))
}
