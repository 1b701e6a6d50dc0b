//! What tests are compiled to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::command;
use crate::error::Result;
use crate::workspace::{Package, Workspace};

/// Compiles every target of every member. Asked for one by one, members would have their dependencies with as many sets
/// of features, and each of those sets compiled anew.
pub(crate) const BUILD: &[&str] = &["build", "--workspace", "--all-targets", "--locked"];

const LIST: &[&str] = &[
    "test",
    "--workspace",
    "--locked",
    "--no-run",
    "--quiet",
    "--message-format=json-render-diagnostics",
];

/// The test programs of each package, by its name.
#[derive(Debug, Default)]
pub(super) struct Programs(BTreeMap<String, Vec<Program>>);

#[derive(Debug, PartialEq, Eq)]
struct Program {
    path: PathBuf,
    /// Where tests expect to be started.
    dir: PathBuf,
}

impl Programs {
    /// None if something does not compile, which was said then.
    pub(super) fn build(workspace: &Workspace) -> Result<Option<Self>> {
        let mut cargo = command::cargo(&workspace.root);
        if !command::succeeds(cargo.args(BUILD))? {
            return Ok(None);
        }
        // All that it lists is there by now. It knows what is no test; the other compiles that as one nonetheless.
        let mut cargo = command::cargo(&workspace.root);
        cargo.args(LIST);
        let mut programs = Self::default();
        let ok = command::each_line(&mut cargo, |line| {
            if let Some((package, program)) = read(line, workspace) {
                programs.0.entry(package).or_default().push(program);
            }
        })?;
        Ok(ok.then_some(programs))
    }

    /// Runs the tests of some packages, a command a program.
    pub(super) fn commands(&self, packages: &[&str]) -> Vec<Command> {
        let programs = packages.iter().filter_map(|package| self.0.get(*package)).flatten();
        let command = |program: &Program| {
            let mut command = Command::new(&program.path);
            command.current_dir(&program.dir).env("CARGO_MANIFEST_DIR", &program.dir);
            command
        };
        programs.map(command).collect()
    }
}

/// What a line of cargo tells of a test program, and whose it is.
fn read(line: &[u8], workspace: &Workspace) -> Option<(String, Program)> {
    let said: Value = serde_json::from_slice(line).ok()?;
    if said["reason"] != "compiler-artifact" || said["profile"]["test"] != true {
        return None;
    }
    let path = PathBuf::from(said["executable"].as_str()?);
    let manifest = Path::new(said["manifest_path"].as_str()?);
    let is_own = |package: &&Package| workspace.root.join(&package.manifest) == manifest;
    let package = workspace.packages.iter().find(is_own)?;
    let dir = manifest.parent()?.to_owned();
    Some((package.name.clone(), Program { path, dir }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_programs_are_told_from_all_else_that_cargo_says() {
        let (name, manifest) = ("a".to_owned(), "crates/a/Cargo.toml".to_owned());
        let packages = vec![Package { name, manifest, dependencies: Vec::new() }];
        let workspace = Workspace { root: "/w".into(), target: "/t".into(), packages };
        let line = |test: bool, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/w/crates/a/Cargo.toml",
                    "profile":{{"test":{test}}},"executable":{executable}}}"#
            )
        };
        let found = read(line(true, r#""/t/a-1""#).as_bytes(), &workspace);
        let program = Program { path: "/t/a-1".into(), dir: "/w/crates/a".into() };
        assert_eq!(found, Some(("a".to_owned(), program)));
        assert_eq!(read(line(false, r#""/t/a""#).as_bytes(), &workspace), None);
        assert_eq!(read(line(true, "null").as_bytes(), &workspace), None);
        assert_eq!(read(b"warning: not an object", &workspace), None);
    }
}
