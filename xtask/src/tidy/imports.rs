use super::token::{Token, closing, tokens};

/// One path that a `use` brings in, written out, with the line of its last part.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Import {
    pub(crate) path: String,
    pub(crate) line: usize,
}

/// Every imported path of masked code, so that `use std::{fs, io}` hides nothing.
pub(crate) fn imports(code: &str) -> Vec<Import> {
    let tokens = tokens(code);
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        if token.text == "use" {
            let rest = &tokens[at + 1..];
            let end = rest.iter().position(|token| token.text == ";").unwrap_or(rest.len());
            expand(&rest[..end], "", &mut found);
        }
    }
    found
}

fn expand(tree: &[Token<'_>], prefix: &str, found: &mut Vec<Import>) {
    let mut path = prefix.to_owned();
    let mut line = None;
    let mut at = 0;
    while let Some(token) = tree.get(at) {
        match token.text {
            "{" => {
                let end = closing(tree, at).unwrap_or(tree.len());
                expand(&tree[at + 1..end], &path, found);
                (line, at) = (None, end);
            }
            "," => {
                found.extend(line.take().map(|line| Import { path: path.clone(), line }));
                prefix.clone_into(&mut path);
            }
            // What it is called here does not matter, only what it is.
            "as" => at += 1,
            text => {
                path.push_str(text);
                line = Some(token.line);
            }
        }
        at += 1;
    }
    found.extend(line.map(|line| Import { path, line }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_out_every_branch() {
        let found =
            imports("use a::b;\nuse std::{fs, io::{self, Read as _},\n net::*};\nlet x = 1;");
        let found: Vec<_> = found.iter().map(|each| (each.path.as_str(), each.line)).collect();
        let want = [
            ("a::b", 1),
            ("std::fs", 2),
            ("std::io::self", 2),
            ("std::io::Read", 2),
            ("std::net::*", 3),
        ];
        assert_eq!(found, want);
    }
}
