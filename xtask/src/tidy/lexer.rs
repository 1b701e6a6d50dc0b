//! Telling code from comments and literals, so that rules see only what they judge.

/// A Rust file in two views. Both have the file's lines; what belongs elsewhere is blank.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Views {
    /// Code, with the text inside string and character literals blank.
    pub(crate) code: String,
    pub(crate) comments: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Code,
    Comment,
    Literal,
}

pub(crate) fn split(text: &str) -> Views {
    let views = Views { code: String::new(), comments: String::new() };
    let mut lexer = Lexer { chars: text.chars().collect(), at: 0, views };
    while lexer.at < lexer.chars.len() {
        lexer.token();
    }
    lexer.views
}

struct Lexer {
    chars: Vec<char>,
    at: usize,
    views: Views,
}

impl Lexer {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn take(&mut self, count: usize, part: Part) {
        for _ in 0..count {
            let Some(char) = self.peek(0) else { return };
            let blank = if char == '\n' { '\n' } else { ' ' };
            self.views.code.push(if part == Part::Code { char } else { blank });
            self.views.comments.push(if part == Part::Comment { char } else { blank });
            self.at += 1;
        }
    }

    fn token(&mut self) {
        match (self.peek(0), self.peek(1)) {
            (Some('/'), Some('/')) => self.line_comment(),
            (Some('/'), Some('*')) => self.block_comment(),
            (Some('"'), _) => self.string(),
            (Some('\''), _) => self.quote(),
            (Some(first), _) if is_word(first) => self.word(),
            _ => self.take(1, Part::Code),
        }
    }

    fn line_comment(&mut self) {
        while self.peek(0).is_some_and(|char| char != '\n') {
            self.take(1, Part::Comment);
        }
    }

    fn block_comment(&mut self) {
        let mut depth = 0;
        while let Some(char) = self.peek(0) {
            match (char, self.peek(1)) {
                ('/', Some('*')) => {
                    depth += 1;
                    self.take(2, Part::Comment);
                }
                ('*', Some('/')) => {
                    depth -= 1;
                    self.take(2, Part::Comment);
                }
                _ => self.take(1, Part::Comment),
            }
            if depth == 0 {
                return;
            }
        }
    }

    fn string(&mut self) {
        self.take(1, Part::Code);
        while let Some(char) = self.peek(0) {
            match char {
                '"' => return self.take(1, Part::Code),
                '\\' => self.take(2, Part::Literal),
                _ => self.take(1, Part::Literal),
            }
        }
    }

    /// A character literal or a lifetime: only the former has its second quote where it must be.
    fn quote(&mut self) {
        self.take(1, Part::Code);
        if self.peek(0) == Some('\\') {
            self.take(2, Part::Literal);
            while self.peek(0).is_some_and(|char| char != '\'') {
                self.take(1, Part::Literal);
            }
            self.take(1, Part::Code);
        } else if self.peek(1) == Some('\'') {
            self.take(1, Part::Literal);
            self.take(1, Part::Code);
        }
    }

    fn word(&mut self) {
        let start = self.at;
        while self.peek(0).is_some_and(is_word) {
            self.take(1, Part::Code);
        }
        let raw = matches!(&self.chars[start..self.at], ['r'] | ['b' | 'c', 'r']);
        let hashes = self.chars[self.at..].iter().take_while(|char| **char == '#').count();
        if raw && self.peek(hashes) == Some('"') {
            self.raw_string(hashes);
        }
    }

    fn raw_string(&mut self, hashes: usize) {
        self.take(hashes + 1, Part::Code);
        while let Some(char) = self.peek(0) {
            if char == '"' && (1..=hashes).all(|ahead| self.peek(ahead) == Some('#')) {
                return self.take(hashes + 1, Part::Code);
            }
            self.take(1, Part::Literal);
        }
    }
}

pub(crate) fn is_word(char: char) -> bool {
    char.is_alphanumeric() || char == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        split(text).code
    }

    #[test]
    fn blanks_comments_and_keeps_lines() {
        let views = split("a // one\nb /* two\n/* deep */ still */ c\n");
        assert_eq!(views.code, "a       \nb       \n                    c\n");
        assert_eq!(views.comments, "  // one\n  /* two\n/* deep */ still */  \n");
    }

    #[test]
    fn blanks_strings_of_every_kind() {
        assert_eq!(code(r#"f("a\"{", b"{")"#), r#"f("    ", b" ")"#);
        assert_eq!(code(r##"r#"a"{"# }"##), r##"r#"   "# }"##);
        assert_eq!(code(r#"br"\" }"#), r#"br" " }"#);
        assert_eq!(code("\"// not a comment\" x"), "\"                \" x");
        assert_eq!(code("\"two\nlines\""), "\"   \n     \"");
    }

    #[test]
    fn tells_characters_from_lifetimes() {
        assert_eq!(code("'{' '\\'' '\\u{7b}' b'\"'"), "' ' '  ' '      ' b' '");
        assert_eq!(code("fn f<'a>(x: &'a str)"), "fn f<'a>(x: &'a str)");
        assert_eq!(code("'_ 'static r#fn"), "'_ 'static r#fn");
    }
}
