//! The programs of a cluster, built from their modules.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::super::cache::Cache;
use crate::command;
use crate::error::{Result, failed};

const MINOR: u32 = 34;
const PATCH: u32 = 4;
const ETCD: &str = "go.etcd.io/etcd/server/v3";
const CONTROL: [&str; 4] =
    ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet"];
/// Where programs read what version they are; without it all say `v0.0.0-master`.
const STAMP: &str = "k8s.io/component-base/version";
const NO_GO: &str = "no `go` here: Kubernetes is built by Go 1.24 or later, install it";

fn version() -> String {
    format!("1.{MINOR}.{PATCH}")
}

/// Where the programs are kept.
pub(super) fn directory(cache: &Cache) -> PathBuf {
    cache.path(&format!("kubernetes-{}", version()))
}

pub(super) fn is_built(cache: &Cache) -> bool {
    directory(cache).is_dir()
}

pub(super) fn require_go() -> Result<()> {
    command::find("go").map(drop).ok_or_else(|| failed(NO_GO))
}

/// Builds all programs and keeps them, or changes nothing.
pub(super) fn build(cache: &Cache) -> Result<()> {
    eprintln!("backends: building Kubernetes {}: minutes, this once", version());
    let part = cache.fresh("kubernetes.part")?;
    let module = format!("k8s.io/kubernetes@v{}", version());
    let told = command::output(go(&part).args(["mod", "download", "-json", &module]))?;
    fs::write(part.join("go.mod"), manifest(&fs::read_to_string(manifest_of(&told)?)?))?;
    let kept = cache.fresh("kubernetes.kept")?;
    let mut build = go(&part);
    build.args(["build", "-trimpath", "-ldflags", &stamps(), "-o"]).arg(&kept).arg(ETCD);
    build.args(CONTROL.map(|name| format!("k8s.io/kubernetes/cmd/{name}")));
    if !command::succeeds(&mut build)? {
        return Err(failed("go could not build Kubernetes, see above"));
    }
    // A program has the name of the directory that it is built from.
    fs::rename(kept.join("server"), kept.join("etcd"))?;
    fs::rename(&kept, directory(cache))?;
    fs::remove_dir_all(&part)?;
    Ok(())
}

fn go(dir: &Path) -> Command {
    let mut go = Command::new("go");
    go.current_dir(dir).env("GOFLAGS", "-mod=mod -buildvcs=false").env("GOWORK", "off");
    // No other toolchain is fetched for it, and a collector that runs less often builds sooner.
    go.env("GOTOOLCHAIN", "local").env("CGO_ENABLED", "0").env("GOGC", "400");
    go
}

/// Where a download has put the module's own manifest.
fn manifest_of(told: &str) -> Result<PathBuf> {
    let told: Value = serde_json::from_str(told).unwrap_or_default();
    let path = told["GoMod"].as_str().map(PathBuf::from);
    path.ok_or_else(|| failed(format!("go downloaded no Kubernetes: {told}")))
}

/// A module that has Kubernetes as a dependency and everything else in the versions that Kubernetes names.
///
/// Parts of it are replaced there by directories next to it, which a download does not bring: they are published as
/// modules of their own, a minor version each.
fn manifest(theirs: &str) -> String {
    let line = |line: &str| {
        if line.starts_with("module ") {
            return "module kapell.test/kubernetes\n".to_owned();
        }
        match line.split_once("=> ./staging/src/") {
            Some((left, part)) => format!("{left}=> {part} v0.{MINOR}.{PATCH}\n"),
            None => format!("{line}\n"),
        }
    };
    let lines: String = theirs.lines().map(line).collect();
    format!("{lines}require k8s.io/kubernetes v{}\n", version())
}

fn stamps() -> String {
    let stamps = [
        ("gitVersion", format!("v{}", version())),
        ("gitMajor", "1".to_owned()),
        ("gitMinor", MINOR.to_string()),
        ("gitTreeState", "clean".to_owned()),
    ];
    let stamps = stamps.map(|(name, value)| format!("-X {STAMP}.{name}={value}"));
    format!("-s -w {}", stamps.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_kubernetes_are_taken_as_modules_of_their_own() {
        let theirs = "module k8s.io/kubernetes\n\ngo 1.24.0\n\nrequire a.b/c v1.2.3\n\n\
                      replace (\n\tk8s.io/api => ./staging/src/k8s.io/api\n)\n";
        let ours = "module kapell.test/kubernetes\n\ngo 1.24.0\n\nrequire a.b/c v1.2.3\n\n\
                    replace (\n\tk8s.io/api => k8s.io/api v0.34.4\n)\nrequire k8s.io/kubernetes v1.34.4\n";
        assert_eq!(manifest(theirs), ours);
    }

    #[test]
    fn programs_know_their_version() {
        let stamps = stamps();
        assert!(stamps.starts_with("-s -w -X k8s.io/component-base/version.gitVersion=v1.34.4 "));
        assert!(stamps.contains("version.gitMinor=34 "), "{stamps}");
    }

    #[test]
    fn a_download_that_brought_nothing_is_an_error_with_what_was_said() {
        assert_eq!(manifest_of(r#"{"GoMod": "/m/go.mod"}"#).unwrap(), Path::new("/m/go.mod"));
        let error = manifest_of(r#"{"Error": "no route"}"#).unwrap_err().to_string();
        assert!(error.contains("no route"), "{error}");
    }
}
