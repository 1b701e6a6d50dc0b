//! Every example of README.md works.
//!
//! A block ```` ```yaml ```` that begins with `# file: NAME` is written to a directory. The lines
//! `$ …` of a block ```` ```console ```` or ```` ```sh ```` are executed there, in the order of the
//! page; a line `# exit N` after one says how it ends, else it succeeds. Blocks about `cargo`
//! concern whoever builds.

use std::fs;
use std::path::Path;

use crate::bench::Bench;

struct Block {
    line: usize,
    language: String,
    text: Vec<String>,
}

fn blocks(page: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut open = false;
    for (line, text) in page.lines().enumerate() {
        match text.trim_start().strip_prefix("```") {
            Some(_) if open => open = false,
            Some(language) => {
                open = true;
                let language = language.trim().to_owned();
                found.push(Block { line: line + 1, language, text: Vec::new() });
            }
            None if open => found.last_mut().expect("a block").text.push(text.to_owned()),
            None => {}
        }
    }
    found
}

/// Commands of a block and the exit code that each must have.
fn commands(block: &Block) -> Vec<(String, i32)> {
    let mut found: Vec<(String, i32)> = Vec::new();
    for line in &block.text {
        if let Some(command) = line.strip_prefix("$ ") {
            found.push((command.to_owned(), 0));
        } else if let (Some(code), Some(last)) = (line.strip_prefix("# exit "), found.last_mut()) {
            last.1 = code.trim().parse().expect("an exit code");
        } else if let Some(last) = found.last_mut().filter(|(text, _)| text.ends_with('\\')) {
            last.0 = format!("{}\n{line}", last.0);
        }
    }
    if block.language == "sh" && found.is_empty() {
        let lines = block.text.iter().filter(|line| !line.trim().is_empty());
        found.extend(lines.filter(|line| !line.starts_with('#')).map(|line| (line.clone(), 0)));
    }
    found
}

/// Runs a page; tells how many files and commands it had.
fn run(page: &str) -> (usize, usize) {
    let bench = Bench::new();
    let kapell = Path::new(env!("CARGO_BIN_EXE_kapell"));
    let bin = kapell.parent().expect("a directory").display();
    let path = format!("{bin}:{}", std::env::var("PATH").unwrap_or_default());
    let (mut files, mut ran) = (0, 0);
    for block in blocks(page) {
        if block.text.iter().any(|line| line.contains("cargo")) {
            continue;
        }
        let name = block.text.first().and_then(|line| line.strip_prefix("# file: "));
        if let (Some(name), "yaml" | "sh" | "json") = (name, block.language.as_str()) {
            bench.write(name.trim(), block.text.join("\n") + "\n");
            files += 1;
            continue;
        }
        if !matches!(block.language.as_str(), "console" | "sh") {
            continue;
        }
        for (command, code) in commands(&block) {
            let mut shell = bench.command("sh");
            shell.args(["-c", &command]).env("PATH", &path);
            let done = bench.run_command(shell);
            let (stdout, stderr) = (&done.stdout, &done.stderr);
            let about = format!("line {}: $ {command}\n{stdout}\n{stderr}", block.line);
            assert_eq!(done.code(), code, "{about}");
            ran += 1;
        }
    }
    (files, ran)
}

#[test]
fn every_example_of_the_readme_works() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let page = fs::read_to_string(&path).expect("README.md");
    let (files, ran) = run(&page);
    assert!(files > 0 && ran > 0, "the page has {files} files and {ran} commands");
    // A workflow that nobody runs could be wrong.
    for block in blocks(&page).iter().filter(|block| block.language == "yaml") {
        let named = block.text.first().is_some_and(|line| line.starts_with("# file: "));
        assert!(named, "line {}: a YAML block needs `# file: NAME`", block.line);
    }
}

#[test]
fn a_page_is_read_as_it_is_meant() {
    let page = "
text
```yaml
# file: flow.yaml
steps: [{name: a, command: exit 1}]
```
```console
$ cargo build
```
```console
$ kapell workflow validate \\
    flow.yaml
flow.yaml: ok
$ kapell process flow.yaml
# exit 1
```
```sh
kapell workflow list
```
```rust
never();
```
";
    assert_eq!(run(page), (1, 3));
}
