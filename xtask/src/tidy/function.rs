use super::token::{Token, closing, tokens};

/// A function as it stands in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) line: usize,
    /// From the line of its `fn` to that of its closing brace, both counted.
    pub(crate) lines: usize,
    pub(crate) is_test: bool,
    /// Carries `#[expect(clippy::too_many_lines, reason = …)]`.
    pub(crate) may_be_long: bool,
}

/// Every function with a body in masked code, nested ones and those inside macros too.
pub(crate) fn functions(code: &str) -> Vec<Function> {
    let tokens = tokens(code);
    let mut found = Vec::new();
    let mut attributes: Vec<&[Token<'_>]> = Vec::new();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        match token.text {
            "#" if tokens.get(at + 1).is_some_and(|next| next.text == "[") => {
                let end = closing(&tokens, at + 1).unwrap_or(tokens.len() - 1);
                attributes.push(&tokens[at + 2..end.max(at + 2)]);
                at = end;
            }
            "{" | "}" | ";" => attributes.clear(),
            "fn" if tokens.get(at + 1).is_some_and(Token::is_word) => {
                found.extend(function(&tokens, at, &attributes));
                attributes.clear();
            }
            _ => {}
        }
        at += 1;
    }
    found
}

fn function(tokens: &[Token<'_>], at: usize, attributes: &[&[Token<'_>]]) -> Option<Function> {
    let end = closing(tokens, body(tokens, at)?)?;
    Some(Function {
        name: tokens[at + 1].text.to_owned(),
        line: tokens[at].line,
        lines: tokens[end].line - tokens[at].line + 1,
        is_test: attributes.iter().any(|attribute| is_test(attribute)),
        may_be_long: attributes.iter().any(|attribute| may_be_long(attribute)),
    })
}

/// The first brace outside of the signature's own brackets; a semicolon means there is no body.
fn body(tokens: &[Token<'_>], start: usize) -> Option<usize> {
    let mut at = start;
    loop {
        match tokens.get(at)?.text {
            "(" | "[" => at = closing(tokens, at)?,
            "{" => return Some(at),
            ";" => return None,
            _ => {}
        }
        at += 1;
    }
}

fn is_test(attribute: &[Token<'_>]) -> bool {
    let path = attribute.iter().take_while(|token| token.text != "(");
    path.last().is_some_and(|token| token.text == "test")
}

fn may_be_long(attribute: &[Token<'_>]) -> bool {
    let has = |word| attribute.iter().any(|token| token.text == word);
    attribute.first().is_some_and(|token| token.text == "expect")
        && has("too_many_lines")
        && has("reason")
}

#[cfg(test)]
mod tests {
    use super::super::lexer::split;
    use super::*;

    fn scan(text: &str) -> Vec<Function> {
        functions(&split(text).code)
    }

    #[test]
    fn measures_from_fn_to_closing_brace() {
        let text = "struct A;\n/// doc }\npub(crate) async fn a<T>(x: [u8; 3]) -> T\nwhere\n    T: X,\n{\n    \"}\"; '}';\n}\n";
        let found = scan(text);
        assert_eq!((found[0].name.as_str(), found[0].line, found[0].lines), ("a", 3, 6));
    }

    #[test]
    fn sees_nested_functions_and_skips_those_without_a_body() {
        let found = scan("trait A { fn a(&self); }\nfn b(f: fn(u8)) {\n fn c() {}\n}\n");
        let names: Vec<_> = found.iter().map(|each| (each.name.as_str(), each.lines)).collect();
        assert_eq!(names, [("b", 3), ("c", 1)]);
    }

    #[test]
    fn knows_tests_of_every_kind() {
        let text = "#[cfg(test)] mod t {\n #[test] fn a() {}\n #[tokio::test(start_paused = true)]\n async fn b() {}\n proptest! { #[test] fn c(x in 0..9, y in s({ 1 })) { } }\n fn d() {} }";
        let found: Vec<_> = scan(text).into_iter().map(|each| (each.name, each.is_test)).collect();
        let want = [("a", true), ("b", true), ("c", true), ("d", false)];
        assert_eq!(found, want.map(|(name, is_test)| (name.to_owned(), is_test)));
    }

    #[test]
    fn only_an_expectation_with_a_reason_excuses_length() {
        let long = |text| scan(text)[0].may_be_long;
        assert!(long("#[expect(clippy::too_many_lines, reason = \"a table\")]\nfn a() {}"));
        assert!(!long("#[expect(clippy::too_many_lines)]\nfn a() {}"));
        assert!(!long("#[allow(clippy::too_many_lines, reason = \"a table\")]\nfn a() {}"));
        assert!(!long(
            "#[expect(clippy::too_many_lines, reason = \"x\")]\nconst A: u8 = 1;\nfn a() {}"
        ));
    }
}
