//! Texts that go into records, kept short.

/// How long a reason is at most, in bytes.
const LONGEST_REASON: usize = 1024;
/// How long a task's result is at most, in bytes.
const LONGEST_RESULT: usize = 10 * 1024;
/// How much of a record a task's result may take, once escaped.
const LARGEST_RESULT: usize = 40 * 1024;

const TRUNCATED: &str = "(truncated)";

/// A reason that fits into a record, and says so if it was cut.
pub(crate) fn reason(text: &str) -> String {
    if text.len() <= LONGEST_REASON {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(LONGEST_REASON - TRUNCATED.len());
    format!("{}{TRUNCATED}", &text[..end])
}

/// The part of a task's result that fits into a record.
pub(super) fn result(text: &str) -> String {
    let mut written = 0;
    let mut end = 0;
    for (at, letter) in text.char_indices() {
        written += match letter {
            '"' | '\\' => 2,
            '\0'..='\x1f' => 6,
            _ => letter.len_utf8(),
        };
        let next = at + letter.len_utf8();
        if next > LONGEST_RESULT || written > LARGEST_RESULT {
            break;
        }
        end = next;
    }
    text[..end].to_owned()
}
