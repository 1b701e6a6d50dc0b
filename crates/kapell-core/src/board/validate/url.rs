//! What kinds of URLs and paths there are.

/// What stands before the first colon of a URL, if it can be a scheme.
pub(crate) fn scheme(url: &str) -> Option<&str> {
    let (scheme, _) = url.split_once(':')?;
    let mut letters = scheme.bytes();
    let fits = letters.next()?.is_ascii_alphabetic()
        && letters.all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'.' | b'-'));
    fits.then_some(scheme)
}

pub(crate) fn is_http(url: &str) -> bool {
    let rest = after(url, "http://").or_else(|| after(url, "https://"));
    is_clean(url)
        && rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['/', '?', '#', ':']))
}

/// Nothing of the URL is repeated.
pub(super) const NO_CREDENTIALS: &str = "must not hold a user or a password, which everybody could read who reads this: \
     let a program fetch or send it, with a secret in its environment";

/// Whether somebody is named before the host, as in `https://user:password@host/path`.
pub(crate) fn has_credentials(url: &str) -> bool {
    let rest = after(url, "http://").or_else(|| after(url, "https://"));
    let authority = rest.and_then(|rest| rest.split(['/', '?', '#', '\\']).next());
    authority.is_some_and(|authority| authority.contains('@'))
}

/// A file of the cell: `file:///path`.
pub(super) fn is_file(url: &str) -> bool {
    is_clean(url)
        && after(url, "file:///").is_some_and(|path| !path.is_empty() && stays_below(path))
}

/// What is asked of a server.
pub(super) fn is_path(path: &str) -> bool {
    path.starts_with('/') && is_clean(path)
}

/// A path that leads nowhere but below where it begins.
pub(super) fn is_relative(path: &str) -> bool {
    !path.starts_with('/') && stays_below(path)
}

fn stays_below(path: &str) -> bool {
    path.split('/').all(|part| part != "..")
}

/// What follows a beginning, however that is spelt.
fn after<'a>(url: &'a str, beginning: &str) -> Option<&'a str> {
    let head = url.get(..beginning.len())?;
    head.eq_ignore_ascii_case(beginning).then(|| &url[beginning.len()..])
}

fn is_clean(text: &str) -> bool {
    !text.contains(|letter: char| letter.is_whitespace() || letter.is_control())
}
