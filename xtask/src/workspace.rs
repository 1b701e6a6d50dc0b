use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::command;
use crate::error::{Result, failed};

/// The workspace as `cargo metadata` sees it.
#[derive(Debug)]
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    pub(crate) target: PathBuf,
    pub(crate) packages: Vec<Package>,
}

/// One member of the workspace.
#[derive(Debug)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// Path of its `Cargo.toml`, relative to the root.
    pub(crate) manifest: String,
    pub(crate) dependencies: Vec<Dependency>,
}

/// A line of a manifest's dependency tables.
#[derive(Debug)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) dev: bool,
}

impl Workspace {
    pub(crate) fn load() -> Result<Self> {
        let mut cargo = command::cargo(Path::new("."));
        cargo.args(["metadata", "--format-version", "1", "--no-deps"]);
        Self::parse(&command::output(&mut cargo)?)
            .ok_or_else(|| failed("cannot read the answer of cargo metadata"))
    }

    fn parse(json: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(json).ok()?;
        let root = PathBuf::from(value["workspace_root"].as_str()?);
        let target = PathBuf::from(value["target_directory"].as_str()?);
        let packages = value["packages"].as_array()?.iter().map(|each| package(&root, each));
        let packages = packages.collect::<Option<_>>()?;
        Some(Self { root, target, packages })
    }
}

fn package(root: &Path, value: &Value) -> Option<Package> {
    let manifest = Path::new(value["manifest_path"].as_str()?);
    let manifest = manifest.strip_prefix(root).unwrap_or(manifest);
    let dependencies = value["dependencies"].as_array()?.iter().map(|each| {
        Some(Dependency { name: each["name"].as_str()?.to_owned(), dev: each["kind"] == "dev" })
    });
    Some(Package {
        name: value["name"].as_str()?.to_owned(),
        manifest: manifest.to_string_lossy().into_owned(),
        dependencies: dependencies.collect::<Option<_>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_parts_of_metadata_that_count() {
        let json = r#"{"workspace_root": "/w", "target_directory": "/t", "packages": [{
            "name": "a", "manifest_path": "/w/crates/a/Cargo.toml", "dependencies": [
                {"name": "b", "kind": null}, {"name": "c", "kind": "dev"}]}]}"#;
        let workspace = Workspace::parse(json).unwrap();
        assert_eq!(workspace.target, Path::new("/t"));
        let package = &workspace.packages[0];
        assert_eq!(package.manifest, "crates/a/Cargo.toml");
        let found: Vec<_> =
            package.dependencies.iter().map(|each| (each.name.as_str(), each.dev)).collect();
        assert_eq!(found, [("b", false), ("c", true)]);
    }
}
