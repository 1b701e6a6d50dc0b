//! JSON is YAML, but for one thing.

use std::borrow::Cow;

use serde::de::IgnoredAny;

/// The text as YAML takes it: a letter that JSON writes by two escapes, as `\ud83d\ude00`, is written by one.
pub(super) fn as_yaml(text: &str) -> Cow<'_, str> {
    let halves = text.as_bytes().windows(3).any(|it| matches!(it, [b'\\', b'u', b'd' | b'D']));
    // In YAML that is not JSON it may stand where nothing is an escape.
    if !halves || serde_json::from_str::<IgnoredAny>(text).is_err() {
        return Cow::Borrowed(text);
    }
    let mut made = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        made += &rest[..at];
        let escape = &rest[at..];
        let taken = match letter(escape) {
            Some(letter) => {
                made += &format!("\\U{:08X}", u32::from(letter));
                12
            }
            None => {
                made += &escape[..2];
                2
            }
        };
        rest = &escape[taken..];
    }
    made += rest;
    Cow::Owned(made)
}

/// The letter of which both halves stand there.
fn letter(escape: &str) -> Option<char> {
    let half = |at: usize| {
        let digits = escape.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let mut letters = char::decode_utf16([half(0)?, half(6)?]);
    let letter = letters.next()?.ok()?;
    letters.next().is_none().then_some(letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_halves_become_one_letter() {
        for (json, yaml) in [
            (r#"["\ud83d\ude00"]"#, r#"["\U0001F600"]"#),
            (r#"["a\\ud83d\uD83D\uDE00\n"]"#, r#"["a\\ud83d\U0001F600\n"]"#),
            (r#"["\u00e4\ud7ff"]"#, r#"["\u00e4\ud7ff"]"#),
            (r"a: '\ud83d\ude00'", r"a: '\ud83d\ude00'"),
        ] {
            assert_eq!(as_yaml(json), yaml);
        }
    }
}
