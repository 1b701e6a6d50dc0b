//! Images that need no registry: nothing but busybox.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::command;
use crate::error::{Result, failed};

/// The image for the containers of tests.
pub(super) const BUSYBOX: &str = "localhost/busybox:1.35";
/// What holds the network of a pod.
pub(super) const PAUSE: &str = "localhost/pause:1";

/// Both images, as an archive below `dir`.
pub(super) fn make(dir: &Path) -> Result<PathBuf> {
    let work = dir.join("image");
    let root = work.join("root");
    fill(&root)?;
    let layer = work.join("layer.tar");
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0"]);
    command::output(tar.arg("-C").arg(&root).arg("-cf").arg(&layer).arg("."))?;
    let sum = command::output(Command::new("sha256sum").arg(&layer))?;
    let sum = sum.split(' ').next().unwrap_or_default();
    for (file, text) in texts(std::env::consts::ARCH, sum) {
        fs::write(work.join(file), text.to_string())?;
    }
    let archive = dir.join("images.tar");
    let mut tar = Command::new("tar");
    tar.arg("-C").arg(&work).arg("-cf").arg(&archive);
    tar.args(["manifest.json", "busybox.json", "pause.json", "layer.tar"]);
    command::output(&mut tar)?;
    fs::remove_dir_all(&work)?;
    Ok(archive)
}

/// What an archive has besides its layer, whose checksum is `sum`.
fn texts(machine: &str, sum: &str) -> [(&'static str, Value); 3] {
    let architecture = match machine {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let config = |command: &[&str]| {
        json!({
            "architecture": architecture,
            "os": "linux",
            "config": {"Env": ["PATH=/bin"], "Cmd": command},
            "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{sum}")]},
        })
    };
    let image = |config: &str, tag: &str| json!({"Config": config, "RepoTags": [tag], "Layers": ["layer.tar"]});
    [
        ("busybox.json", config(&["sh"])),
        ("pause.json", config(&["sleep", "2147483647"])),
        ("manifest.json", json!([image("busybox.json", BUSYBOX), image("pause.json", PAUSE)])),
    ]
}

fn fill(root: &Path) -> Result<()> {
    for name in ["bin", "etc", "tmp", "proc", "sys", "dev", "root", "var"] {
        fs::create_dir_all(root.join(name))?;
    }
    fs::set_permissions(root.join("tmp"), fs::Permissions::from_mode(0o1777))?;
    let users = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n";
    fs::write(root.join("etc/passwd"), users)?;
    fs::write(root.join("etc/group"), "root:x:0:\nnobody:x:65534:\n")?;
    let busybox = command::find("busybox").ok_or_else(|| failed("no busybox here"))?;
    fs::copy(&busybox, root.join("bin/busybox"))?;
    let applets = command::output(Command::new(&busybox).arg("--list"))?;
    for applet in applets.lines().filter(|applet| *applet != "busybox") {
        symlink("busybox", root.join("bin").join(applet))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_images_are_one_layer_under_fixed_names() {
        let [(_, busybox), (_, pause), (_, manifest)] = texts("x86_64", "abc");
        assert_eq!(busybox["architecture"], "amd64");
        assert_eq!(busybox["rootfs"], pause["rootfs"]);
        assert_eq!(busybox["rootfs"]["diff_ids"][0], "sha256:abc");
        assert_eq!(manifest[0]["RepoTags"][0], "localhost/busybox:1.35");
        assert_eq!(manifest[1]["Config"], "pause.json");
    }
}
