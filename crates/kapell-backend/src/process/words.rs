//! The last words of a program, made fit to be shown in one line.

/// At most so many bytes.
const LONGEST: usize = 200;

/// Valid text without control characters and colours; its end, if it is long.
pub(crate) fn clean(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut clean = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter == '\u{1b}' && letters.next_if_eq(&'[').is_some() {
            // A colour or the like ends with its first letter.
            while letters.next().is_some_and(|each| !('@'..='~').contains(&each)) {}
        } else if letter == '\t' {
            clean.push(' ');
        } else if !letter.is_control() {
            clean.push(letter);
        }
    }
    let mut start = clean.len().saturating_sub(LONGEST);
    while !clean.is_char_boundary(start) {
        start += 1;
    }
    clean[start..].trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_text_in_one_line() {
        assert_eq!(clean(b"\x1b[1;31merror\x1b[0m:\tno\x07 \xff way "), "error: no \u{fffd} way");
        let long = clean("ä".repeat(300).as_bytes());
        assert_eq!((long.len(), long.chars().count()), (200, 100));
        assert!(clean(&[0xff; 200]).len() <= 200);
    }
}
