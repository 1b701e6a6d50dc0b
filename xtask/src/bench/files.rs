//! The same graph written for kapell, make and ninja.

use std::fmt::{Display, Write as _};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::mode::Mode;
use super::shape::Shape;
use crate::error::Result;

pub(crate) const WORKFLOW: &str = "flow.yaml";

/// A directory with one graph in every language.
#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) dir: PathBuf,
    pub(crate) shape: Shape,
    pub(crate) mode: Mode,
}

impl Files {
    pub(crate) fn write(below: &Path, shape: Shape, mode: Mode) -> Result<Self> {
        let dir = below.join(format!("{}x{}-{}", shape.waves, shape.width, mode.name()));
        fs::create_dir_all(&dir)?;
        fs::write(dir.join(WORKFLOW), workflow(shape, mode))?;
        fs::write(dir.join("Makefile"), makefile(shape, mode))?;
        fs::write(dir.join("build.ninja"), ninja(shape, mode))?;
        Ok(Self { dir, shape, mode })
    }
}

fn list(steps: impl Iterator<Item = impl Display>, between: &str) -> String {
    let mut text = String::new();
    for step in steps {
        if !text.is_empty() {
            text.push_str(between);
        }
        let _ = write!(text, "s{step}");
    }
    text
}

fn workflow(shape: Shape, mode: Mode) -> String {
    let mut text = String::from("steps:\n");
    for step in 0..shape.steps() {
        push_step(&mut text, step, mode, &list(shape.before(step), ", "));
    }
    text
}

fn push_step(text: &mut String, step: usize, mode: Mode, depends: &str) {
    // Quoted, since a plain scalar may not begin with a colon and a space.
    let _ = writeln!(text, "  - name: s{step}\n    command: \"{}\"", mode.command());
    if !depends.is_empty() {
        let _ = writeln!(text, "    depends: [{depends}]");
    }
}

fn makefile(shape: Shape, mode: Mode) -> String {
    let all = list(0..shape.steps(), " ");
    let mut text = format!(".PHONY: all {all}\nall: {}\n", list(shape.last(), " "));
    for step in 0..shape.steps() {
        let before = list(shape.before(step), " ");
        let _ = writeln!(text, "s{step}: {before}\n\t@{}", mode.command());
    }
    text
}

fn ninja(shape: Shape, mode: Mode) -> String {
    let mut text = format!("rule run\n  command = {}\n", mode.command());
    for step in 0..shape.steps() {
        let before = list(shape.before(step), " ");
        let bar = if before.is_empty() { "" } else { " | " };
        let _ = writeln!(text, "build s{step}: run{bar}{before}");
    }
    text
}

/// A large graph for validation: every step waits for ten random ones of the 500 before it.
/// Returns the number of edges.
pub(crate) fn tangle(file: &mut impl Write, steps: usize) -> io::Result<usize> {
    const EDGES: usize = 10;
    const REACH: usize = 500;
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut edges = 0;
    let mut text = String::from("steps:\n");
    for step in 0..steps {
        let first = step.saturating_sub(REACH);
        let mut before: Vec<usize> = Vec::with_capacity(EDGES);
        while before.len() < EDGES.min(step - first) {
            // xorshift: the same file every time, without a dependency.
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let reach = u64::try_from(step - first).unwrap_or(1);
            let chosen = first + usize::try_from(random % reach).unwrap_or(0);
            if !before.contains(&chosen) {
                before.push(chosen);
            }
        }
        edges += before.len();
        push_step(&mut text, step, Mode::Plain, &list(before.iter(), ", "));
        file.write_all(text.as_bytes())?;
        text.clear();
    }
    Ok(edges)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_one_graph_in_three_languages() {
        let shape = Shape::layers(2, 2);
        assert!(
            workflow(shape, Mode::Shell).ends_with(
                "  - name: s3\n    command: \": && /bin/true\"\n    depends: [s0, s1]\n"
            )
        );
        let want = ".PHONY: all s0 s1 s2 s3\nall: s2 s3\ns0: \n\t@/bin/true\n";
        assert!(makefile(shape, Mode::Plain).starts_with(want));
        let want = "rule run\n  command = /bin/true\nbuild s0: run\nbuild s1: run\nbuild s2: run | s0 s1\n";
        assert!(ninja(shape, Mode::Plain).starts_with(want));
    }

    #[test]
    fn a_tangle_has_ten_different_edges_a_step() {
        let written = || {
            let mut file = Vec::new();
            let edges = tangle(&mut file, 1000).unwrap();
            (String::from_utf8(file).unwrap(), edges)
        };
        let (text, edges) = written();
        assert_eq!(edges, 990 * 10 + 45);
        let last = text.lines().last().unwrap().trim_start_matches("    depends: [");
        let mut names: Vec<&str> = last.trim_end_matches(']').split(", ").collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 10);
        assert_eq!(written(), (text, edges));
    }
}
