//! The directory `oci` of a container.
//!
//! `layers/N`, `root` and `user` are mounted over, out of sight of all but the container; `upper` has what it
//! changed of its files, `work` is the kernel's; `etc` has files that it is shown; `state` is `runc`'s.
//! `config.json` and `launch` tell how to start it, `init` its first process, `about` all else.

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write as _};
use std::net::Ipv4Addr;
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, chown,
};
use std::path::{Component, Path, PathBuf};

use super::bundle::Shown;
use super::layers::Layers;
use super::record::Record;
use super::slot::Ids;
use super::users::Account;
use crate::containers::Error;
use crate::process::trouble;

/// Its name in the home of its container.
pub(super) const DIR: &str = "oci";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place(PathBuf);

impl Place {
    /// In the home of its container.
    pub(super) fn new(home: &Path) -> Self {
        Self(home.join(DIR))
    }

    pub(super) fn dir(&self) -> &Path {
        &self.0
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Makes it, all but what tells how to start it.
    pub(super) fn make(&self, layers: &[PathBuf], ids: Ids) -> Result<(), Error> {
        make_dir(&self.0, 0o711)?;
        for name in ["layers", "root", "etc", "state", "upper", "work"] {
            make_dir(&self.file(name), 0o711)?;
        }
        for at in 0..layers.len() {
            make_dir(&self.file("layers").join(at.to_string()), 0o711)?;
        }
        let mode = layers.first().and_then(|top| fs::metadata(top).ok());
        let upper = self.file("upper");
        // The kernel takes the mode of `/` from here.
        set_mode(&upper, mode.map_or(0o755, |about| about.mode() & 0o7777))?;
        // What is mounted there takes its mode from here, which images do not always have right.
        let tmp = upper.join("tmp");
        make_dir(&tmp, 0o1777)?;
        for dir in [tmp, upper, self.file("work")] {
            chown(&dir, Some(ids.base), Some(ids.base)).map_err(trouble::io("give away", &dir))?;
        }
        self.write("user", b"")
    }

    /// For us alone: it may tell what a program's environment is.
    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let path = self.file(name);
        let open =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path);
        open.and_then(|mut file| file.write_all(bytes)).map_err(trouble::io("write", &path))
    }

    /// Says that all of it is there.
    pub(super) fn finish(&self, record: &Record) -> Result<(), Error> {
        let (draft, path) = (self.file("about.draft"), self.file("about"));
        fs::write(&draft, record.encode()).map_err(trouble::io("write", &draft))?;
        fs::rename(&draft, &path).map_err(trouble::io("write", &path))
    }

    /// None if it was never done.
    pub(super) fn record(&self) -> Option<Record> {
        Record::parse(&fs::read(self.file("about")).ok()?)
    }

    /// What a container is shown of the machine's names.
    pub(super) fn write_names(
        &self,
        hostname: &str,
        address: Option<Ipv4Addr>,
    ) -> Result<(), Error> {
        let own = address.map_or(String::new(), |address| format!("{address} {hostname}\n"));
        let hosts = format!("127.0.0.1 localhost\n::1 localhost\n{own}");
        let resolver = resolver(address.is_none());
        for (name, text) in
            [("hostname", format!("{hostname}\n")), ("hosts", hosts), ("resolv.conf", resolver)]
        {
            let path = self.file("etc").join(name);
            fs::write(&path, text).map_err(trouble::io("write", &path))?;
            set_mode(&path, 0o644)?;
        }
        Ok(())
    }

    pub(super) fn names(&self) -> [(PathBuf, &'static str); 3] {
        let etc = self.file("etc");
        [
            (etc.join("hostname"), "/etc/hostname"),
            (etc.join("hosts"), "/etc/hosts"),
            (etc.join("resolv.conf"), "/etc/resolv.conf"),
        ]
    }

    /// Sees to it that `dir` is there, and returns it without any link in it. What is missing belongs to
    /// `owner`; what the image has keeps its owner.
    pub(super) fn make_inside(
        &self,
        layers: Layers<'_>,
        dir: &Path,
        owner: &Account,
        ids: Ids,
    ) -> Result<PathBuf, Error> {
        let failed = |source| Error::Io {
            what: format!("cannot look for `{}` in the image", dir.display()),
            source,
        };
        let (mut inside, mut outside) = (PathBuf::from("/"), self.file("upper"));
        for part in dir.components() {
            let Component::Normal(name) = part else { continue };
            let found = layers.find(&inside.join(name)).map_err(failed)?;
            let (mode, uid, gid) = match &found {
                Some(entry) if entry.path.parent() == Some(&*inside) && entry.about.is_dir() => {
                    let about = &entry.about;
                    (about.mode() & 0o7777, ids.base + about.uid(), ids.base + about.gid())
                }
                // A link to elsewhere: from there on.
                Some(entry) if entry.about.is_dir() => {
                    let rest = dir.strip_prefix(&inside).unwrap_or(dir);
                    let rest: PathBuf = rest.components().skip(1).collect();
                    return self.make_inside(layers, &entry.path.join(rest), owner, ids);
                }
                Some(_) => {
                    let text = format!("`{}` is not a directory in the image", dir.display());
                    return Err(Error::Unstartable(text));
                }
                None => (0o755, ids.base + owner.uid, ids.base + owner.gid),
            };
            inside.push(name);
            outside.push(name);
            match DirBuilder::new().mode(0o700).create(&outside) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                result => {
                    result.map_err(trouble::io("make", &outside))?;
                    chown(&outside, Some(uid), Some(gid))
                        .map_err(trouble::io("give away", &outside))?;
                    set_mode(&outside, mode)?;
                }
            }
        }
        Ok(inside)
    }

    /// Makes it fit to be started, whatever was started in it before.
    pub(super) fn reset(&self, ids: Ids) -> Result<(), Error> {
        for name in ["state", "work"] {
            let dir = self.file(name);
            if fs::remove_dir(&dir).is_err() {
                fs::remove_dir_all(&dir).map_err(trouble::io("remove", &dir))?;
            }
            make_dir(&dir, 0o711)?;
        }
        let work = self.file("work");
        chown(&work, Some(ids.base), Some(ids.base)).map_err(trouble::io("give away", &work))
    }
}

/// As `config.json` has them.
pub(super) fn shown<'a>(files: &'a [(PathBuf, &'static str)]) -> Vec<Shown<'a>> {
    files.iter().map(|(file, at)| Shown { file, at }).collect()
}

/// Every directory on the way must let others pass: root of a container is nobody on the machine.
pub(super) fn check_way(dir: &Path) -> Result<(), Error> {
    for dir in dir.ancestors() {
        let about = fs::metadata(dir).map_err(trouble::io("look at", dir))?;
        if about.mode() & 0o001 == 0 {
            return Err(Error::Io {
                what: format!(
                    "containers cannot get to their files: others may not pass through `{0}` (try `chmod \
                     o+x {0}`, or use another directory)",
                    dir.display()
                ),
                source: ErrorKind::PermissionDenied.into(),
            });
        }
    }
    Ok(())
}

/// What to ask for names. A resolver that listens on this machine only is out of reach of containers with a
/// network of their own.
fn resolver(host_network: bool) -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let text = read("/etc/resolv.conf");
    if host_network {
        return text;
    }
    let text = without_loopback(&text);
    if text.contains("nameserver") {
        return text;
    }
    without_loopback(&read("/run/systemd/resolve/resolv.conf"))
}

fn without_loopback(text: &str) -> String {
    let is_far = |line: &&str| {
        let server = line.trim().strip_prefix("nameserver").map(str::trim);
        !server.is_some_and(|server| server.starts_with("127.") || server == "::1")
    };
    text.lines().filter(is_far).map(|line| format!("{line}\n")).collect()
}

pub(super) fn make_dir(dir: &Path, mode: u32) -> Result<(), Error> {
    match DirBuilder::new().mode(mode).create(dir) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        result => result.map_err(trouble::io("make", dir)),
    }?;
    set_mode(dir, mode)
}

fn set_mode(path: &Path, mode: u32) -> Result<(), Error> {
    let set: io::Result<()> = fs::set_permissions(path, Permissions::from_mode(mode));
    set.map_err(trouble::io("open", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resolvers_of_this_machine_are_left_out() {
        let text = "search a\nnameserver 127.0.0.53\nnameserver ::1\n nameserver 10.0.0.1\n";
        assert_eq!(without_loopback(text), "search a\n nameserver 10.0.0.1\n");
    }
}
