//! The syntax of one reference: `$1`, `${10}`, `$NAME`, `${NAME}`, `${NAME.json.path}`.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reference<'t> {
    Position(usize),
    Name(&'t str),
    Path(&'t str, &'t str),
}

/// Reads the reference that `text` begins with, and its length in bytes.
pub(super) fn parse(text: &str) -> Option<(Reference<'_>, usize)> {
    let after = text.strip_prefix('$')?;
    if let Some(inside) = after.strip_prefix('{') {
        // Not merely up to the brace: in `${${${…` that would be looked for each time anew.
        let end = inside.find(|c: char| !(c.is_ascii_alphanumeric() || "_-.[]".contains(c)))?;
        if !inside[end..].starts_with('}') {
            return None;
        }
        return braced(&inside[..end]).map(|reference| (reference, end + 3));
    }
    let digits = after.len() - after.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    if digits > 0 {
        return after[..digits]
            .parse()
            .ok()
            .map(|number| (Reference::Position(number), digits + 1));
    }
    let name = leading_name(after, |b| b.is_ascii_alphanumeric() || b == b'_');
    (!name.is_empty()).then_some((Reference::Name(name), name.len() + 1))
}

fn braced(inside: &str) -> Option<Reference<'_>> {
    if inside.bytes().all(|b| b.is_ascii_digit()) {
        return inside.parse().ok().map(Reference::Position);
    }
    let name = leading_name(inside, |b| b.is_ascii_alphanumeric() || b == b'_');
    if name.len() == inside.len() && !name.is_empty() {
        return Some(Reference::Name(name));
    }
    // A step's name may hold dashes, a variable's may not; only a path can follow a step.
    let name = leading_name(inside, |b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    let path = &inside[name.len()..];
    let is_path = path.len() > 1
        && matches!(path.as_bytes()[0], b'.' | b'[')
        && path.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.[]".contains(&b));
    let path = path.strip_prefix('.').unwrap_or(path);
    (is_path && !name.is_empty() && !path.is_empty()).then_some(Reference::Path(name, path))
}

fn leading_name(text: &str, inner: impl Fn(u8) -> bool) -> &str {
    let first = text.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    let length = if first { text.bytes().take_while(|&b| inner(b)).count() } else { 0 };
    &text[..length]
}
