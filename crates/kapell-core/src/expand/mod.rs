//! Parameters, variables and outputs inside the texts of a workflow.
//!
//! In arguments a value is put in as text. In a shell command it never becomes program text: the
//! shell gets it as a positional parameter or an exported variable, so quotes and semicolons in it
//! are data.

mod here;
mod json;
mod look;
mod reference;
mod scan;
mod shell;

use std::borrow::Cow;

pub use json::look_up;
pub use look::{Look, looks_in_shell, looks_in_text};
use reference::{Reference, parse};
pub use shell::{Rewritten, plain_words, rewrite};

/// What names stand for at the moment a step starts.
pub trait Values {
    /// Parameter number `number`, counted from 1.
    fn position(&self, number: usize) -> Option<&str>;
    /// A variable: output, named parameter or environment.
    fn variable(&self, name: &str) -> Option<Cow<'_, str>>;
    /// The JSON text that `${name.path}` looks into: an output variable, else a step's output.
    fn document(&self, name: &str) -> Option<&str>;
}

/// Why a reference has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("`${{{name}.{path}}}`: `{name}` is not JSON: {problem}")]
    NotJson { name: String, path: String, problem: String },
    #[error("`${{{name}.{path}}}`: {problem}")]
    NoSuchPath { name: String, path: String, problem: String },
}

/// Replaces every defined reference in `text` by its value; `\$` is a plain dollar sign.
///
/// What is not defined stays as it is.
pub fn substitute<'t>(text: &'t str, values: &dyn Values) -> Result<Cow<'t, str>, Error> {
    if !text.contains('$') {
        return Ok(Cow::Borrowed(text));
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        let (before, from) = rest.split_at(at);
        if let Some(before) = before.strip_suffix('\\') {
            out.push_str(before);
            out.push('$');
            rest = &from[1..];
            continue;
        }
        out.push_str(before);
        let Some((reference, length)) = parse(from) else {
            out.push('$');
            rest = &from[1..];
            continue;
        };
        match value_of(reference, values)? {
            Some(value) => out.push_str(&value),
            None => out.push_str(&from[..length]),
        }
        rest = &from[length..];
    }
    out.push_str(rest);
    Ok(Cow::Owned(out))
}

fn value_of<'v>(
    reference: Reference<'_>,
    values: &'v dyn Values,
) -> Result<Option<Cow<'v, str>>, Error> {
    match reference {
        Reference::Position(number) => Ok(values.position(number).map(Cow::Borrowed)),
        Reference::Name(name) => Ok(values.variable(name)),
        Reference::Path(name, path) => match values.document(name) {
            Some(text) => look_up(name, text, path).map(|value| Some(Cow::Owned(value))),
            None => Ok(None),
        },
    }
}

/// Every name that `text` refers to, in whichever form.
pub fn names(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        rest = &rest[at..];
        let (name, length) = match parse(rest) {
            Some((Reference::Name(name) | Reference::Path(name, _), length)) => {
                (Some(name), length)
            }
            Some((Reference::Position(_), length)) => (None, length),
            None => (None, 1),
        };
        names.extend(name);
        rest = &rest[length..];
    }
    names
}

/// The names that `text` looks into as JSON: `build` for `${build.version}`.
pub fn quoted_names(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        rest = &rest[at..];
        match parse(rest) {
            Some((Reference::Path(name, _), length)) => {
                names.push(name);
                rest = &rest[length..];
            }
            Some((Reference::Position(_) | Reference::Name(_), length)) => rest = &rest[length..],
            None => rest = &rest[2..],
        }
    }
    names
}

#[cfg(test)]
pub(crate) mod testing {
    use super::{Cow, Values};

    /// Values from a list of pairs; numbers are positions, `{` begins a document.
    #[derive(Debug)]
    pub(crate) struct Fixed(pub(crate) Vec<(&'static str, &'static str)>);

    impl Fixed {
        fn get(&self, name: &str) -> Option<&str> {
            self.0.iter().find(|(key, _)| *key == name).map(|(_, value)| *value)
        }
    }

    impl Values for Fixed {
        fn position(&self, number: usize) -> Option<&str> {
            self.get(&number.to_string())
        }
        fn variable(&self, name: &str) -> Option<Cow<'_, str>> {
            self.get(name).map(Cow::Borrowed)
        }
        fn document(&self, name: &str) -> Option<&str> {
            self.get(name)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::testing::Fixed;
    use super::*;

    fn values() -> Fixed {
        Fixed(vec![
            ("1", "one"),
            ("10", "ten"),
            ("v", "V"),
            ("evil", "'; rm -rf \"$1\""),
            ("build", r#"{"version": "1.2", "n": [3, {"x": true}]}"#),
            ("build-app", r#"{"id": 7}"#),
        ])
    }

    fn shown(text: &str) -> String {
        substitute(text, &values()).unwrap().into_owned()
    }

    #[test]
    fn positions_are_read_as_whole_numbers() {
        assert_eq!(shown("$1 ${1} $10 ${10} $2 $0"), "one one ten ten $2 $0");
        assert_eq!(shown("$1st"), "onest");
    }

    #[test]
    fn names_are_read_to_their_end() {
        assert_eq!(shown("$v ${v}x $vx ${vx} $"), "V Vx $vx ${vx} $");
        assert_eq!(shown("${v:-x} ${v%y} $(v) $$"), "${v:-x} ${v%y} $(v) $$");
    }

    #[test]
    fn values_are_not_expanded_again() {
        assert_eq!(shown("$evil"), "'; rm -rf \"$1\"");
    }

    #[test]
    fn paths_reach_into_json() {
        assert_eq!(shown("${build.version} ${build.n.0} ${build.n[1].x}"), "1.2 3 true");
        assert_eq!(shown("${build-app.id} ${nothing.id}"), "7 ${nothing.id}");
        assert_eq!(shown("${build.n}"), r#"[3,{"x":true}]"#);
    }

    #[test]
    fn a_path_that_leads_nowhere_says_so() {
        let error = substitute("${build.sha}", &values()).unwrap_err();
        assert_eq!(error.to_string(), "`${build.sha}`: there is no `sha`; there are version, n");
        let error = substitute("${v.x}", &values()).unwrap_err();
        assert!(error.to_string().contains("`v` is not JSON"), "{error}");
    }

    #[test]
    fn a_backslash_keeps_the_dollar_sign() {
        assert_eq!(shown(r"\$1 \${v}"), "$1 ${v}");
    }

    #[test]
    fn all_names_are_found() {
        assert_eq!(names("a $b ${c} ${d.e} $1 $$ $(f) \"$g\""), ["b", "c", "d", "g"]);
    }

    #[test]
    fn quoted_names_are_found() {
        assert_eq!(quoted_names("a ${b.c} $d ${e} ${f-g.h.i} ${j:-k.l}"), ["b", "f-g"]);
    }
}
