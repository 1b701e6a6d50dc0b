//! What must be changed in a command before a shell gets it, and when no shell is needed at all.

use std::borrow::Cow;

use super::reference::{Reference, parse};
use super::{Error, Values, look_up};

/// A command for the shell, and the variables that must be exported for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewritten<'t> {
    pub text: Cow<'t, str>,
    pub variables: Vec<(String, String)>,
}

/// Makes a command mean to a POSIX shell what it means to us.
///
/// Nearly everything already does, since parameters are handed over as the shell's own. Two things
/// differ: `$10` is our tenth parameter but the shell's first and a zero, and `${name.path}` is
/// ours alone. Inside single quotes nothing is touched, as in any shell.
pub fn rewrite<'t>(text: &'t str, values: &dyn Values) -> Result<Rewritten<'t>, Error> {
    let untouched = Rewritten { text: Cow::Borrowed(text), variables: Vec::new() };
    let differs = text.contains('$') && (text.contains("${") || has_wide_position(text));
    if !differs {
        return Ok(untouched);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut variables = Vec::new();
    let mut scan = Scan::default();
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with('$')
            && scan.expands()
            && let Some((reference, length)) = parse(rest)
        {
            match reference {
                Reference::Position(number) if number > 9 => {
                    out.push_str(&format!("${{{number}}}"));
                }
                Reference::Path(name, path) if let Some(document) = values.document(name) => {
                    let variable = format!("KAPELL_VALUE_{}", variables.len() + 1);
                    out.push_str(&format!("${{{variable}}}"));
                    variables.push((variable, look_up(name, document, path)?));
                }
                Reference::Position(_) | Reference::Name(_) | Reference::Path(..) => {
                    out.push_str(&rest[..length]);
                }
            }
            at += length;
            continue;
        }
        let length = scan.step(rest);
        out.push_str(&rest[..length]);
        at += length;
    }
    if out == text {
        return Ok(untouched);
    }
    Ok(Rewritten { text: Cow::Owned(out), variables })
}

fn has_wide_position(text: &str) -> bool {
    text.as_bytes()
        .windows(3)
        .any(|w| w[0] == b'$' && w[1].is_ascii_digit() && w[2].is_ascii_digit())
}

/// Where in shell text we are: what quotes, comments and here-documents are open.
#[derive(Debug, Default)]
struct Scan {
    quote: Option<char>,
    /// Ends of here-documents announced on this line; true if their text is literal.
    announced: Vec<(String, bool)>,
    /// The here-document we are in.
    within: Option<(String, bool)>,
    /// The character before, for telling a comment from a `#` inside a word.
    before: char,
}

impl Scan {
    fn expands(&self) -> bool {
        match &self.within {
            Some((_, literal)) => !literal,
            None => self.quote != Some('\''),
        }
    }

    /// Steps over the next piece of text and returns its length in bytes.
    fn step(&mut self, rest: &str) -> usize {
        let c = rest.chars().next().unwrap_or('\n');
        let mut length = c.len_utf8();
        if c == '\n' {
            self.begin_line(&rest[1..]);
        } else if c == '\\' && self.expands() {
            length += rest[1..].chars().next().map_or(0, char::len_utf8);
        } else if self.within.is_none() {
            length = self.step_in_code(c, rest, length);
        }
        self.before = c;
        length
    }

    fn step_in_code(&mut self, c: char, rest: &str, length: usize) -> usize {
        match self.quote {
            Some(open) if open == c => self.quote = None,
            None if c == '\'' || c == '"' => self.quote = Some(c),
            None if c == '#'
                && (self.before.is_whitespace()
                    || matches!(self.before, '\0' | ';' | '&' | '|' | '(')) =>
            {
                return rest.find('\n').unwrap_or(rest.len());
            }
            None if rest.starts_with("<<<") => return 3,
            None if rest.starts_with("<<") => return 2 + self.announce(&rest[2..]),
            Some(_) | None => {}
        }
        length
    }

    /// Notes the here-document whose end is named next, and returns how much text names it.
    fn announce(&mut self, rest: &str) -> usize {
        let word = rest.trim_start_matches('-').trim_start_matches([' ', '\t']);
        let skipped = rest.len() - word.len();
        let end =
            word.find(|c: char| c.is_whitespace() || ";&|<>()".contains(c)).unwrap_or(word.len());
        let name = word[..end].replace(['\'', '"', '\\'], "");
        if name.is_empty() {
            return skipped;
        }
        self.announced.push((name, word[..end].contains(['\'', '"', '\\'])));
        skipped + end
    }

    fn begin_line(&mut self, line_and_more: &str) {
        if self.quote.is_some() {
            return;
        }
        if self.within.is_none() && !self.announced.is_empty() {
            self.within = Some(self.announced.remove(0));
        }
        if let Some((end, _)) = &self.within {
            let line = line_and_more.lines().next().unwrap_or("");
            if line.trim_start_matches('\t') == end {
                self.within = None;
                if !self.announced.is_empty() {
                    self.within = Some(self.announced.remove(0));
                }
            }
        }
    }
}

/// Words that a shell runs itself or gives a meaning of their own.
const SHELL_WORDS: &[&str] = &[
    ".",
    ":",
    "[",
    "[[",
    "alias",
    "bg",
    "bind",
    "break",
    "builtin",
    "caller",
    "case",
    "cd",
    "command",
    "compgen",
    "complete",
    "compopt",
    "continue",
    "coproc",
    "declare",
    "dirs",
    "disown",
    "do",
    "done",
    "echo",
    "elif",
    "else",
    "enable",
    "esac",
    "eval",
    "exec",
    "exit",
    "export",
    "false",
    "fc",
    "fg",
    "fi",
    "for",
    "function",
    "getopts",
    "hash",
    "help",
    "history",
    "if",
    "in",
    "jobs",
    "kill",
    "let",
    "local",
    "logout",
    "mapfile",
    "popd",
    "printf",
    "pushd",
    "pwd",
    "read",
    "readarray",
    "readonly",
    "return",
    "select",
    "set",
    "shift",
    "shopt",
    "source",
    "suspend",
    "test",
    "then",
    "time",
    "times",
    "trap",
    "true",
    "type",
    "typeset",
    "ulimit",
    "umask",
    "unalias",
    "unset",
    "until",
    "wait",
    "while",
];

/// The words of a command that any shell would only split at spaces and execute.
///
/// None if the outcome could differ in any way; when in doubt there is a shell.
pub fn plain_words(text: &str) -> Option<Vec<&str>> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"_./:@%+,- ".contains(&b) || b == b'=';
    let text = text.trim_matches([' ', '\n']);
    if !text.bytes().all(plain) {
        return None;
    }
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let first = words.first()?;
    let special = first.contains('=') || first.starts_with('-') || SHELL_WORDS.contains(first);
    (!special).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::super::testing::Fixed;
    use super::*;

    fn rewritten(text: &str) -> String {
        let values = Fixed(vec![("build", r#"{"v": "a b"}"#)]);
        rewrite(text, &values).unwrap().text.into_owned()
    }

    #[test]
    fn most_commands_stay_as_they_are() {
        for text in ["echo $1 ${HOME}", "awk '{print $1}'", "echo ${x:-y.z} $((1+2))", "echo '$10'"]
        {
            assert_eq!(rewritten(text), text);
        }
    }

    #[test]
    fn the_tenth_parameter_is_the_tenth() {
        assert_eq!(rewritten("echo $10 \"$11\" $1"), "echo ${10} \"${11}\" $1");
    }

    #[test]
    fn a_path_becomes_a_variable() {
        let values = Fixed(vec![("build", r#"{"v": "a b"}"#)]);
        let got = rewrite("echo \"${build.v}\" '${build.v}' ${other.v}", &values).unwrap();
        assert_eq!(got.text, "echo \"${KAPELL_VALUE_1}\" '${build.v}' ${other.v}");
        assert_eq!(got.variables, [("KAPELL_VALUE_1".to_owned(), "a b".to_owned())]);
    }

    #[test]
    fn apostrophes_that_quote_nothing_are_seen_through() {
        let text = "# don't\necho ${build.v}";
        assert_eq!(rewritten(text), "# don't\necho ${KAPELL_VALUE_1}");
        let text = "echo \"it's ${build.v}\" \\' ${build.v}";
        assert_eq!(rewritten(text), "echo \"it's ${KAPELL_VALUE_1}\" \\' ${KAPELL_VALUE_2}");
        let text = "cat <<EOF\nit's ${build.v}\nEOF\necho '${build.v}'";
        assert_eq!(rewritten(text), "cat <<EOF\nit's ${KAPELL_VALUE_1}\nEOF\necho '${build.v}'");
        let text = "cat <<'EOF'\n${build.v}\nEOF\necho ${build.v}";
        assert_eq!(rewritten(text), "cat <<'EOF'\n${build.v}\nEOF\necho ${KAPELL_VALUE_1}");
    }

    #[test]
    fn an_escaped_dollar_sign_is_no_reference() {
        assert_eq!(rewritten(r"echo \${build.v} \$10"), r"echo \${build.v} \$10");
    }

    #[test]
    fn plain_words_need_no_shell() {
        assert_eq!(plain_words("/bin/true"), Some(vec!["/bin/true"]));
        assert_eq!(plain_words(" make -j5  all "), Some(vec!["make", "-j5", "all"]));
        for text in [
            "echo hi", "cd /tmp", "A=1 b", "a | b", "a $1", "a 'b'", "exit 3", "", "a\nb", "ls ~",
            "a*", "while",
        ] {
            assert_eq!(plain_words(text), None, "{text}");
        }
    }
}
