//! `docs/coverage.md`: which test proves which requirement.

use super::problem::Problem;
use super::token::{closing, tokens};

pub(crate) const PAGE: &str = "docs/coverage.md";
const RULE: &str = "coverage";

/// A test that exists: the file it stands in and its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Test {
    pub(crate) file: String,
    pub(crate) name: String,
}

/// Rows of the page's tables, and how many name no test yet.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rows {
    pub(crate) all: usize,
    pub(crate) open: usize,
}

/// Every test that the page names must exist in the crate that it names.
pub(crate) fn check(page: &str, tests: &[Test]) -> Vec<Problem> {
    let mut found = Vec::new();
    for (line, number) in page.lines().zip(1..) {
        for reference in references(line) {
            if !exists(reference, tests) {
                let text = format!("no test `{reference}`");
                found.push(Problem::new(PAGE, number, RULE, text));
            }
        }
    }
    found
}

/// Tests that a macro `on_each_…! { … }` makes: it is given their names.
pub(crate) fn made_by_macros(code: &str) -> Vec<String> {
    let tokens = tokens(code);
    let mut found = Vec::new();
    for (at, call) in tokens.windows(3).enumerate() {
        let [name, bang, open] = call else { continue };
        if !name.text.starts_with("on_each_") || bang.text != "!" || open.text != "{" {
            continue;
        }
        let end = closing(&tokens, at + 2).unwrap_or(tokens.len());
        let words = tokens[at + 3..end].iter().filter(|token| token.is_word());
        found.extend(words.map(|token| token.text.to_owned()));
    }
    found
}

fn references(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2).filter(|token| is_reference(token))
}

/// `area::…::name`, all in lower case.
fn is_reference(token: &str) -> bool {
    let mut parts = token.split("::");
    let plain = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '_';
    let first = parts.next().unwrap_or_default();
    let rest: Vec<&str> = parts.collect();
    !first.is_empty()
        && first.chars().all(|char| plain(char) || char == '-')
        && !rest.is_empty()
        && rest.iter().all(|part| !part.is_empty() && part.chars().all(plain))
}

fn exists(reference: &str, tests: &[Test]) -> bool {
    let area = reference.split("::").next().unwrap_or_default();
    let name = reference.rsplit("::").next().unwrap_or_default();
    let dashed = area.replace('_', "-");
    let homes = if area == "xtask" {
        vec!["xtask/".to_owned()]
    } else {
        vec![format!("crates/{area}/"), format!("crates/{dashed}/")]
    };
    tests.iter().any(|test| {
        test.name == name && homes.iter().any(|home| test.file.starts_with(home.as_str()))
    })
}

pub(crate) fn rows(page: &str) -> Rows {
    let lines: Vec<&str> = page.lines().map(str::trim).collect();
    let mut rows = Rows::default();
    for (index, line) in lines.iter().enumerate() {
        let before_rule = lines.get(index + 1).is_some_and(|next| is_rule(next));
        if !line.starts_with('|') || is_rule(line) || before_rule {
            continue;
        }
        rows.all += 1;
        rows.open += usize::from(is_open(line));
    }
    rows
}

/// The line of dashes below a table's head.
fn is_rule(line: &str) -> bool {
    line.starts_with('|') && line.contains('-') && line.chars().all(|char| "|-: ".contains(char))
}

fn is_open(row: &str) -> bool {
    let row = row.replace("\\|", " ");
    let inner = row.strip_suffix('|').unwrap_or(&row);
    let last = inner.rsplit('|').next().unwrap_or_default().trim();
    matches!(last, "" | "-" | "–" | "—" | "TODO")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_macro_is_given_the_names_of_its_tests() {
        let code = "on_each_store! {\n  a: a_file, a_etcd;\n}\nother! { b }";
        assert_eq!(made_by_macros(code), ["a", "a_file", "a_etcd"]);
    }

    fn tests() -> Vec<Test> {
        let test = |file: &str, name: &str| Test { file: file.to_owned(), name: name.to_owned() };
        vec![
            test("crates/kapell-core/src/plan.rs", "orders_steps"),
            test("crates/kapell/tests/cli.rs", "runs"),
            test("xtask/src/main.rs", "helps"),
        ]
    }

    #[test]
    fn every_named_test_exists_in_the_crate_that_is_named() {
        let page = "| a | `kapell-core::plan::orders_steps`, `kapell_core::orders_steps` |\n\
                    | b | `kapell::cli::runs` `xtask::helps` and `--flag`, `Rust::Type` |\n\
                    | c | `kapell::cli::orders_steps`, `kapell-core::gone` |\n";
        let found: Vec<_> = check(page, &tests()).iter().map(ToString::to_string).collect();
        let want = [
            "docs/coverage.md:3: coverage: no test `kapell::cli::orders_steps`",
            "docs/coverage.md:3: coverage: no test `kapell-core::gone`",
        ];
        assert_eq!(found, want);
    }

    #[test]
    fn counts_rows_and_open_ends() {
        let page = "# Title\n\n| what | test |\n|---|:--|\n| a | `x::y` |\n| b | |\n| c | – |\n\
                    | d | TODO |\n| e \\| f | - |\n\ntext | not a row\n";
        assert_eq!(rows(page), Rows { all: 5, open: 4 });
    }
}
