//! A root file system of one program.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

const APPLETS: [&str; 4] = ["sh", "true", "sleep", "httpd"];

/// What containers here see as `/`.
#[derive(Debug, Clone)]
pub(crate) struct Root {
    pub(crate) dir: PathBuf,
    busybox: PathBuf,
}

impl Root {
    /// Says why not, where containers with a root of their own cannot run.
    pub(crate) fn make(dir: &Path) -> anyhow::Result<Self> {
        if !nix::unistd::geteuid().is_root() {
            bail!("only root can run them");
        }
        for tool in ["runc", "nft", "ip"] {
            find(tool)?;
        }
        let root = Self { dir: dir.to_owned(), busybox: find("busybox")? };
        root.copy_to(dir)?;
        Ok(root)
    }

    /// Makes another one like it.
    pub(crate) fn copy_to(&self, dir: &Path) -> anyhow::Result<()> {
        for name in ["bin", "etc", "tmp", "work"] {
            fs::create_dir_all(dir.join(name))?;
        }
        fs::set_permissions(dir, Permissions::from_mode(0o755))?;
        fs::copy(&self.busybox, dir.join("bin/busybox"))?;
        for applet in APPLETS {
            symlink("busybox", dir.join("bin").join(applet))?;
        }
        fs::write(dir.join("etc/passwd"), "root:x:0:0::/:/bin/sh\n")?;
        Ok(fs::write(dir.join("etc/group"), "root:x:0:\n")?)
    }

    pub(crate) fn url(&self) -> String {
        format!("dir://{}", self.dir.display())
    }
}

fn find(tool: &str) -> anyhow::Result<PathBuf> {
    let mut places = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"].map(Path::new).into_iter();
    let found = places.find(|dir| dir.join(tool).exists());
    found.map(|dir| dir.join(tool)).with_context(|| format!("there is no {tool}"))
}
