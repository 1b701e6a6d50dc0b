//! Builds the shim, a small static program, so that it can be embedded.

use std::env;
use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const STATIC: &str = "-C target-feature=+crt-static -C relocation-model=static";

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(variable("CARGO_MANIFEST_DIR")?).join("../..").canonicalize()?;
    let shim = root.join("crates/kapell-shim");
    for path in [shim.join("src"), shim.join("Cargo.toml"), root.join("Cargo.lock")] {
        say(&format!("rerun-if-changed={}", path.display()));
    }
    let program = build_smallest(&shim.join("Cargo.toml"))?;
    say(&format!("rustc-env=KAPELL_SHIM={}", program.display()));
    say(&format!("rustc-env=KAPELL_SHIM_HASH={:016x}", hash(&fs::read(&program)?)));
    Ok(())
}

fn say(what: &str) {
    println!("cargo::{what}");
}

fn variable(name: &str) -> Result<OsString, String> {
    env::var_os(name).ok_or_else(|| format!("cargo did not set {name}"))
}

/// With musl if that is installed, else with the C library of the target; static if that can be linked.
fn build_smallest(manifest: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let target = variable("TARGET")?.into_string().map_err(|_| "TARGET is no text")?;
    let musl = target.replace("-linux-gnu", "-linux-musl");
    let mut problems = String::new();
    for (target, flags) in [(&musl, STATIC), (&target, STATIC), (&target, "")] {
        if !is_installed(target)? {
            continue;
        }
        match build(manifest, target, flags)? {
            Ok(program) => return Ok(program),
            Err(problem) => {
                say(&format!("warning=the shim could not be built for {target} with `{flags}`"));
                problems += &problem;
            }
        }
    }
    Err(format!("the shim could not be built:\n{problems}").into())
}

fn is_installed(target: &str) -> Result<bool, Box<dyn Error>> {
    let asked = Command::new(variable("RUSTC")?)
        .args(["--print", "target-libdir", "--target", target])
        .output()?;
    let dir = String::from_utf8_lossy(&asked.stdout).trim().to_owned();
    Ok(asked.status.success() && Path::new(&dir).is_dir())
}

fn build(
    manifest: &Path,
    target: &str,
    flags: &str,
) -> Result<Result<PathBuf, String>, Box<dyn Error>> {
    let dir = PathBuf::from(variable("OUT_DIR")?).join("shim");
    let built = Command::new(variable("CARGO")?)
        .args(["build", "--release", "--target", target, "--manifest-path"])
        .arg(manifest)
        .arg("--target-dir")
        .arg(&dir)
        .env("RUSTFLAGS", flags)
        .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "s")
        .env("CARGO_PROFILE_RELEASE_LTO", "fat")
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "1")
        .env("CARGO_PROFILE_RELEASE_PANIC", "abort")
        .env("CARGO_PROFILE_RELEASE_STRIP", "symbols")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        // Clippy and others take the compiler's place for members of a workspace, but not for this build.
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .env_remove("CLIPPY_ARGS")
        .output()?;
    if built.status.success() {
        return Ok(Ok(dir.join(target).join("release/kapell-shim")));
    }
    Ok(Err(String::from_utf8_lossy(&built.stderr).into_owned()))
}

/// FNV-1a.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
