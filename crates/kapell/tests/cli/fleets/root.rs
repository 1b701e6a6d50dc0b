//! A root with little in it, for work that brings its own.

use std::os::unix::fs::symlink;
use std::path::Path;

use tempfile::TempDir;

use crate::platform::fleet::open_dir;

const BUSYBOX: &str = "/bin/busybox";
const TOOLS: [&str; 9] = ["sh", "echo", "cat", "sleep", "httpd", "id", "ls", "true", "setsid"];

/// As long as it is held, cells may be told of it.
pub(crate) struct Root(TempDir);

impl Root {
    /// Makes one; the reason if this machine cannot run such work.
    pub(crate) fn make() -> Result<Self, &'static str> {
        if !nix::unistd::geteuid().is_root() {
            return Err("only root can run such containers");
        }
        if ["/usr/sbin/runc", "/usr/bin/runc"].iter().all(|path| !Path::new(path).exists()) {
            return Err("there is no runc");
        }
        if !Path::new(BUSYBOX).exists() {
            return Err("there is no busybox");
        }
        let made = Self(tempfile::tempdir().expect("a directory"));
        let root = made.0.path().join("root");
        for dir in ["bin", "tmp", "etc", "proc", "sys", "dev"] {
            std::fs::create_dir_all(root.join(dir)).expect("a directory");
        }
        std::fs::copy(BUSYBOX, root.join("bin/busybox")).expect("a copy");
        for tool in TOOLS {
            symlink("busybox", root.join("bin").join(tool)).expect("a link");
        }
        open_dir(&root);
        Ok(made)
    }

    /// What cells are started with to run work with this root.
    pub(crate) fn arguments(&self) -> [&str; 3] {
        ["--oci", "--image-root", self.0.path().to_str().expect("text")]
    }

    pub(crate) fn url(&self) -> String {
        format!("dir://{}", self.0.path().join("root").display())
    }
}
