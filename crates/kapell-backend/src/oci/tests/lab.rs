//! A root file system of one program, and drivers that use it.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::containers::User;
use crate::image::{self, Images};
use crate::oci::{OciContainers, Settings};
use crate::testing::{Rig, is_root, skip};

/// None, and the test is reported as skipped, where such containers cannot run.
pub(super) fn rig(test: &str) -> Option<Rig> {
    rig_with(test, Settings::default())
}

pub(super) fn rig_with(test: &str, settings: Settings) -> Option<Rig> {
    rig_that_keeps(test, settings, image::Settings::CACHE_BYTES)
}

/// Of layers that nobody uses, it keeps this much.
pub(super) fn rig_that_keeps(test: &str, settings: Settings, cache_bytes: u64) -> Option<Rig> {
    if !is_root(test) {
        return None;
    }
    let Some(busybox) = busybox() else {
        skip(test, "needs a static busybox");
        return None;
    };
    for tool in ["runc", "nft", "ip"] {
        if !["/usr/sbin", "/usr/bin", "/sbin", "/bin"]
            .iter()
            .any(|dir| Path::new(dir).join(tool).exists())
        {
            skip(test, &format!("needs {tool}"));
            return None;
        }
    }
    let root = tempfile::tempdir().unwrap();
    fill(root.path(), &busybox);
    let user = || User::Id { uid: 300_001, gid: 300_001, own: true };
    Some(Rig::new(Some(format!("dir://{}", root.path().display())), user, move |dir| {
        // It is there as long as whoever may open the driver again.
        let _held = &root;
        Arc::new(open(dir, &settings, cache_bytes))
    }))
}

fn open(dir: &Path, settings: &Settings, cache_bytes: u64) -> OciContainers {
    let local_roots = vec![std::env::temp_dir()];
    let allowed = image::Settings { cache_bytes, local_roots, ..image::Settings::default() };
    let images = Images::open(&dir.with_file_name("images"), allowed).unwrap();
    OciContainers::open(dir, images, settings).unwrap()
}

pub(super) fn busybox() -> Option<PathBuf> {
    let all = ["/bin/busybox", "/usr/bin/busybox"].map(PathBuf::from);
    all.into_iter().find(|path| path.exists())
}

pub(super) fn fill(root: &Path, busybox: &Path) {
    for dir in ["bin", "etc", "root", "tmp", "srv/app"] {
        fs::create_dir_all(root.join(dir)).unwrap();
    }
    fs::set_permissions(root, Permissions::from_mode(0o755)).unwrap();
    fs::copy(busybox, root.join("bin/busybox")).unwrap();
    let list = std::process::Command::new(busybox).arg("--list").output().unwrap();
    for applet in String::from_utf8(list.stdout).unwrap().lines() {
        // It is there itself, or a test wants it not to be.
        let _there = symlink("busybox", root.join("bin").join(applet));
    }
    fs::write(root.join("etc/passwd"), "root:x:0:0::/root:/bin/sh\nweb:x:33:34::/srv:/bin/sh\n")
        .unwrap();
    fs::write(root.join("etc/group"), "root:x:0:\nwww:x:34:\nlog:x:9:web\n").unwrap();
    fs::write(root.join("etc/not-a-program"), "neither\n").unwrap();
}
