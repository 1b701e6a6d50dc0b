//! Checks that neither the compiler nor clippy makes.

mod arrows;
mod banned;
mod coverage;
mod excuse;
mod function;
mod imports;
mod lexer;
mod limits;
mod paths;
mod problem;
mod token;

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::command;
use crate::error::{Error, Result, failed};
use crate::workspace::Workspace;
use coverage::Test;
use problem::Problem;

const REQUIRED: &[&str] = &[
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "LICENSE",
    coverage::PAGE,
    "docs/benchmarks.md",
    "docs/soak.md",
];

/// Written by cargo, so nobody's style.
const GENERATED: &[&str] = &["Cargo.lock"];

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let files = files(&workspace.root)?;
    let mut problems = missing(&files);
    problems.extend(dependencies(workspace)?);
    let mut tests = Vec::new();
    for file in &files {
        let Some(text) = text_of(&workspace.root.join(file)) else { continue };
        problems.extend(paths::check(file, &text));
        if Path::new(file).extension().is_some_and(|extension| extension == "rs") {
            problems.extend(rust(file, &text, &mut tests));
        }
    }
    if let Some(page) = text_of(&workspace.root.join(coverage::PAGE)) {
        problems.extend(coverage::check(&page, &tests));
        let rows = coverage::rows(&page);
        println!("coverage: {} rows, {} open", rows.all, rows.open);
    }
    report(problems, files.len())
}

fn rust(file: &str, text: &str, tests: &mut Vec<Test>) -> Vec<Problem> {
    let views = lexer::split(text);
    let functions = function::functions(&views.code);
    for function in functions.iter().filter(|function| function.is_test) {
        tests.push(Test { file: file.to_owned(), name: function.name.clone() });
    }
    for name in coverage::made_by_macros(&views.code) {
        tests.push(Test { file: file.to_owned(), name });
    }
    let mut problems = limits::check(file, text, &functions);
    problems.extend(banned::check(file, &views));
    problems
}

fn report(mut problems: Vec<Problem>, files: usize) -> Result<()> {
    problems.sort();
    problems.dedup();
    for problem in &problems {
        println!("{problem}");
    }
    if problems.is_empty() {
        println!("tidy: {files} files, no problems");
        return Ok(());
    }
    println!("tidy: {files} files, {} problems", problems.len());
    Err(Error::Reported)
}

/// What is tracked or would be, in order, without what was deleted.
fn files(root: &Path) -> Result<Vec<String>> {
    let mut git = Command::new("git");
    git.current_dir(root).args(["ls-files", "-co", "--exclude-standard", "-z"]);
    let list = command::output(&mut git)?;
    let mut files: Vec<String> = list
        .split('\0')
        .filter(|file| !file.is_empty() && !GENERATED.contains(file))
        .filter(|file| root.join(file).is_file())
        .map(str::to_owned)
        .collect();
    files.sort();
    files.dedup();
    Ok(files)
}

fn text_of(path: &Path) -> Option<String> {
    let text = String::from_utf8(fs::read(path).ok()?).ok()?;
    (!text.contains('\0')).then_some(text)
}

fn missing(files: &[String]) -> Vec<Problem> {
    let absent = |name: &&&str| !files.iter().any(|file| file == **name);
    let problem = |name: &&str| Problem::new(name, 1, "required", "this file must exist");
    REQUIRED.iter().filter(absent).map(problem).collect()
}

fn dependencies(workspace: &Workspace) -> Result<Vec<Problem>> {
    let mut found = Vec::new();
    for package in &workspace.packages {
        let path = workspace.root.join(&package.manifest);
        let manifest = fs::read_to_string(&path)
            .map_err(|error| failed(format!("{}: {error}", path.display())))?;
        found.extend(arrows::check(package, &manifest));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_every_required_file_that_is_missing() {
        let files: Vec<String> = REQUIRED[1..].iter().map(|name| (*name).to_owned()).collect();
        let found: Vec<_> = missing(&files).iter().map(ToString::to_string).collect();
        assert_eq!(found, ["README.md:1: required: this file must exist"]);
    }

    #[test]
    fn the_words_that_tidy_looks_for_do_not_trip_it() {
        let mut tests = Vec::new();
        assert_eq!(rust("xtask/src/tidy/banned.rs", include_str!("banned.rs"), &mut tests), []);
        assert_eq!(rust("xtask/src/tidy/paths.rs", include_str!("paths.rs"), &mut tests), []);
        assert_eq!(paths::check("paths.rs", include_str!("paths.rs")), []);
        assert!(tests.iter().any(|test| test.name == "tests_do_not_sleep_without_an_excuse"));
    }
}
