//! Parameters: what the file declares, what the caller gives, and what results.

use crate::source::{Span, closest};

/// What a file declares: positional defaults, and named parameters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Params {
    pub positional: Vec<String>,
    /// Name and default; without a default a value must be given.
    pub named: Vec<(String, Option<String>)>,
    /// Where each of `named` stands in the file.
    pub spans: Vec<Span>,
}

/// Parameters of one run, complete.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Bound {
    pub positional: Vec<String>,
    pub named: Vec<(String, String)>,
}

/// Why the given values do not fit the declared parameters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unbound {
    #[error("parameter `{name}` has no value: give one with `-p {name}=VALUE`")]
    Missing { name: String },
    #[error("there is no parameter `{name}`{}", hint(.declared, .closest.as_deref()))]
    Unknown { name: String, declared: Vec<String>, closest: Option<String> },
}

fn hint(declared: &[String], closest: Option<&str>) -> String {
    match (closest, declared) {
        (Some(closest), _) => format!(": did you mean `{closest}`?"),
        (None, []) => ": the file declares no named parameters".to_owned(),
        (None, declared) => format!(": the file declares {}", declared.join(", ")),
    }
}

impl Params {
    /// Puts the caller's values over the file's defaults. Reports everything that is wrong.
    pub fn bind(
        &self,
        positional: &[String],
        named: &[(String, String)],
    ) -> Result<Bound, Vec<Unbound>> {
        let mut wrong = Vec::new();
        for (name, _) in named {
            if !self.named.iter().any(|(declared, _)| declared == name) {
                let declared: Vec<_> = self.named.iter().map(|(name, _)| name.clone()).collect();
                let closest = closest(name, declared.iter().map(String::as_str)).map(str::to_owned);
                wrong.push(Unbound::Unknown { name: name.clone(), declared, closest });
            }
        }
        let mut bound = Bound::default();
        for (name, default) in &self.named {
            let given = named.iter().rev().find(|(given, _)| given == name).map(|(_, value)| value);
            match given.or(default.as_ref()) {
                Some(value) => bound.named.push((name.clone(), value.clone())),
                None => wrong.push(Unbound::Missing { name: name.clone() }),
            }
        }
        bound.positional = positional.to_vec();
        bound.positional.extend(self.positional.iter().skip(positional.len()).cloned());
        if wrong.is_empty() { Ok(bound) } else { Err(wrong) }
    }
}

/// Splits `a "b c" d` at spaces, keeping what is in quotes together.
pub(super) fn split_words(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' | '\n' => words.extend(word.take()),
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        end if end == c => break,
                        '\\' if c == '"' => word.push(chars.next()?),
                        inside => word.push(inside),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(chars.next()?),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(words: &[&str]) -> Vec<String> {
        words.iter().map(|&word| word.to_owned()).collect()
    }

    #[test]
    fn given_values_replace_defaults_by_position() {
        let params = Params { positional: own(&["a", "b"]), named: vec![], spans: vec![] };
        assert_eq!(params.bind(&own(&["x"]), &[]).unwrap().positional, own(&["x", "b"]));
        let three = own(&["x", "y", "z"]);
        assert_eq!(params.bind(&three, &[]).unwrap().positional, three);
    }

    #[test]
    fn a_named_parameter_without_value_is_refused() {
        let named = vec![("target".to_owned(), None), ("mode".to_owned(), Some("fast".to_owned()))];
        let params = Params { positional: vec![], named, spans: vec![] };
        let wrong = params.bind(&[], &[("mod".to_owned(), "x".to_owned())]).unwrap_err();
        let text: Vec<_> = wrong.iter().map(ToString::to_string).collect();
        assert_eq!(
            text,
            [
                "there is no parameter `mod`: did you mean `mode`?",
                "parameter `target` has no value: give one with `-p target=VALUE`",
            ]
        );
        let bound = params.bind(&[], &[("target".to_owned(), "t".to_owned())]).unwrap();
        assert_eq!(bound.named[1], ("mode".to_owned(), "fast".to_owned()));
    }

    #[test]
    fn words_are_split_at_spaces_outside_quotes() {
        assert_eq!(split_words(r#"a "b c" 'd e' f\ g"#), Some(own(&["a", "b c", "d e", "f g"])));
        assert_eq!(split_words("'open"), None);
        assert_eq!(split_words("''"), Some(own(&[""])));
    }
}
