//! Where texts look into an output: `${build.version}`.

use super::reference::{Reference, parse};
use super::scan::references;

/// One look into an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look<'t> {
    pub name: &'t str,
    /// All of it as it was written.
    pub text: &'t str,
    /// With a dot after the name. Without, `${list[0]}` may as well be the shell's own.
    pub dotted: bool,
}

impl<'t> Look<'t> {
    fn new(name: &'t str, text: &'t str) -> Self {
        Self { name, text, dotted: text[2 + name.len()..].starts_with('.') }
    }
}

/// Every look that a POSIX shell would come upon, so none in single quotes or comments.
///
/// None at all in text that could not be understood.
pub fn looks_in_shell(text: &str) -> Vec<Look<'_>> {
    if !text.contains("${") {
        return Vec::new();
    }
    let found = references(text).unwrap_or_default().into_iter();
    found
        .filter_map(|it| match it.reference {
            Reference::Path(name, _) => Some(Look::new(name, &text[it.at..it.at + it.length])),
            Reference::Position(_) | Reference::Name(_) => None,
        })
        .collect()
}

/// Every look in text that no shell gets, where only a backslash quotes.
pub fn looks_in_text(text: &str) -> Vec<Look<'_>> {
    let mut looks = Vec::new();
    let mut at = 0;
    while let Some(further) = text[at..].find("${") {
        let begin = at + further;
        at = begin + 2;
        if text[..begin].ends_with('\\') {
            continue;
        }
        if let Some((Reference::Path(name, _), length)) = parse(&text[begin..]) {
            looks.push(Look::new(name, &text[begin..begin + length]));
            at = begin + length;
        }
    }
    looks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts<'t>(looks: &[Look<'t>]) -> Vec<&'t str> {
        looks.iter().map(|look| look.text).collect()
    }

    #[test]
    fn a_shell_looks_only_where_it_expands() {
        let text = "a \"${b.c}\" '${d.e}' # ${f.g}\n${x:-h.i} ${x%.txt} \\${j.k} ${l[0]}";
        let looks = looks_in_shell(text);
        assert_eq!(texts(&looks), ["${b.c}", "${l[0]}"]);
        assert_eq!((looks[0].dotted, looks[1].dotted), (true, false));
        assert!(looks_in_shell("echo ${b.c} 'open").is_empty());
    }

    #[test]
    fn other_text_looks_wherever_no_backslash_stands() {
        let looks = looks_in_text(r"'${a.b}' \${c.d} ${e} ${f-g.h}");
        assert_eq!(texts(&looks), ["${a.b}", "${f-g.h}"]);
    }
}
