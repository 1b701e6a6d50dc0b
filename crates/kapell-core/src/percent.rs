//! `%41` and the like in URLs.

/// Why a text cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    #[error("a `%` is not followed by two hexadecimal digits")]
    Escape,
    #[error("it is not UTF-8")]
    NotText,
}

/// Undoes `%41`; a `+` stays one.
pub fn decode(text: &str) -> Result<String, Wrong> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let escaped =
            digit().zip(digit()).and_then(|(high, low)| u8::try_from(high << 4 | low).ok());
        bytes.push(escaped.ok_or(Wrong::Escape)?);
    }
    String::from_utf8(bytes).map_err(|_| Wrong::NotText)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_undone_and_what_is_none_is_told() {
        assert_eq!(decode("a%41%c3%A4+/").as_deref(), Ok("aAä+/"));
        for cut in ["%", "%4", "%4g", "%+1"] {
            assert_eq!(decode(cut), Err(Wrong::Escape), "{cut}");
        }
        assert_eq!(decode("%ff"), Err(Wrong::NotText));
    }
}
