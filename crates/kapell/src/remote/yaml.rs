//! Data as YAML.

use serde_json::Value;

/// One document, ending in a new line.
pub(crate) fn emit(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Array(items) if !items.is_empty() => list(&mut out, items, 0),
        Value::Object(entries) if !entries.is_empty() => map(&mut out, entries, 0, false),
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => {
            out.push_str(&scalar(value));
            out.push('\n');
        }
    }
    out
}

fn list(out: &mut String, items: &[Value], depth: usize) {
    for item in items {
        out.push_str(&"  ".repeat(depth));
        out.push('-');
        below(out, item, depth, true);
    }
}

/// What stands behind a `-` or a `:`. Entries go on in the same line behind a `-`.
fn below(out: &mut String, value: &Value, depth: usize, in_list: bool) {
    match value {
        Value::Object(entries) if !entries.is_empty() => {
            out.push(if in_list { ' ' } else { '\n' });
            map(out, entries, depth + 1, in_list);
        }
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            list(out, items, depth + 1);
        }
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => {
            out.push(' ');
            out.push_str(&scalar(value));
            out.push('\n');
        }
    }
}

/// `begun`: the first entry goes on in a line that is there.
fn map(out: &mut String, entries: &serde_json::Map<String, Value>, depth: usize, begun: bool) {
    for (at, (key, value)) in entries.iter().enumerate() {
        if at > 0 || !begun {
            out.push_str(&"  ".repeat(depth));
        }
        out.push_str(&text(key));
        out.push(':');
        below(out, value, depth, false);
    }
}

fn scalar(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(is) => is.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(string) => text(string),
        Value::Array(_) => "[]".to_owned(),
        Value::Object(_) => "{}".to_owned(),
    }
}

/// Text as it is where nobody can take it for something else, in quotes otherwise.
fn text(string: &str) -> String {
    // All versions of YAML together know these as truth values, nothing or merging.
    const WORDS: [&str; 10] = ["true", "false", "yes", "no", "on", "off", "null", "y", "n", "nan"];
    let begins_well = string.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/' || c == '_');
    let goes_on_well = |c: char| c.is_ascii_alphanumeric() || "/_.-+@".contains(c);
    let is_word = WORDS.iter().any(|word| word.eq_ignore_ascii_case(string));
    if begins_well && string.chars().all(goes_on_well) && !is_word {
        return string.to_owned();
    }
    let mut out = String::from('"');
    for c in string.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}') => {
                out.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
