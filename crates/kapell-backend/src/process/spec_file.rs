//! What the shim reads: texts that each end with a NUL byte. `kapell-shim/src/spec.rs` has the other side.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use nix::unistd::{getegid, geteuid, getuid};

use crate::containers::{Error, Spec, User};

/// Every process of a container has this in its environment, and so is found again.
pub(super) const MARK: &str = "KAPELL_CONTAINER";
const MAGIC: &str = "kapell-spec-2";
const OWN: &str = "own";

/// What the agent reads again after a restart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) boot: String,
    pub(super) program: String,
    pub(super) dir: String,
    /// Empty if it is the agent's.
    pub(super) user: String,
    /// Nobody else is this user.
    pub(super) own_user: bool,
}

impl Header {
    pub(super) fn uid(&self) -> Option<u32> {
        self.user.parse().ok()
    }

    pub(super) fn of(spec: &Spec, boot: &str) -> Self {
        let dir = spec.dir.as_ref().map_or(String::new(), |dir| dir.display().to_string());
        let (user, own_user) = match spec.user {
            User::Same => (String::new(), false),
            User::Id { uid, own, .. } => (uid.to_string(), own),
        };
        Self { boot: boot.to_owned(), program: spec.path.clone(), dir, user, own_user }
    }

    /// None if it is not whole.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut texts = bytes.split(|byte| *byte == 0).map(|text| String::from_utf8_lossy(text));
        if texts.next()? != MAGIC || !bytes.ends_with(b"\0end\0") {
            return None;
        }
        let mut next = || texts.next().map(std::borrow::Cow::into_owned);
        let (boot, program, dir, user) = (next()?, next()?, next()?, next()?);
        let _group = next()?;
        Some(Self { boot, program, dir, user, own_user: next()? == OWN })
    }
}

/// The user to become, if it is another one.
pub(super) fn other_user(spec: &Spec) -> Result<Option<(u32, u32)>, Error> {
    let own = (geteuid().as_raw(), getegid().as_raw());
    match spec.user {
        User::Same => Ok(None),
        User::Id { uid, gid, .. } if own.0 == 0 => Ok(Some((uid, gid))),
        User::Id { uid, gid, .. } if (uid, gid) == own => Ok(None),
        User::Id { uid, gid, .. } => Err(Error::Unstartable(format!(
            "only root may run a container as user {uid} and group {gid}, and this agent is user {} and \
             group {}: run the agent as root, or the container as the agent's user",
            own.0, own.1
        ))),
    }
}

/// Whether everything that runs as its user is part of it. Never so for root and the agent.
fn has_own_user(spec: &Spec, user: Option<(u32, u32)>) -> bool {
    let agent = [geteuid().as_raw(), getuid().as_raw(), 0];
    matches!(spec.user, User::Id { own: true, .. })
        && user.is_some_and(|(uid, _)| !agent.contains(&uid))
}

pub(super) fn encode(
    spec: &Spec,
    logs: &Path,
    boot: &str,
    descriptors: Option<u64>,
) -> Result<Vec<u8>, Error> {
    let user = other_user(spec)?;
    let number = |value: Option<u64>| value.map_or(String::new(), |value| value.to_string());
    let mut texts = Texts::default();
    texts.push("", MAGIC)?;
    texts.push("", boot)?;
    texts.push("the program", &spec.path)?;
    texts.push("the directory", spec.dir.as_deref().map_or(OsStr::new(""), Path::as_os_str))?;
    texts.push("", number(user.map(|(uid, _)| uid.into())))?;
    texts.push("", number(user.map(|(_, gid)| gid.into())))?;
    texts.push("", if has_own_user(spec, user) { OWN } else { "" })?;
    texts.push("", spec.stop_grace.as_millis().to_string())?;
    texts.push("the directory of its logs", logs.as_os_str())?;
    texts.push("", spec.log_bytes.to_string())?;
    texts.push("", number(descriptors))?;
    texts.push("", spec.args.len().to_string())?;
    for argument in &spec.args {
        texts.push("an argument", argument)?;
    }
    let environment = environment(spec)?;
    texts.push("", environment.len().to_string())?;
    for (name, value) in environment {
        texts.push("an environment variable", format!("{name}={value}"))?;
    }
    texts.push("", "end")?;
    Ok(texts.0)
}

/// Of several variables with one name the last counts.
fn environment(spec: &Spec) -> Result<BTreeMap<&str, &str>, Error> {
    let mut all = BTreeMap::new();
    for (name, value) in &spec.env {
        if name.is_empty() || name.contains('=') {
            let text = format!("`{name}` is no name for an environment variable");
            return Err(Error::Unstartable(text));
        }
        all.insert(name.as_str(), value.as_str());
    }
    all.insert(MARK, &spec.guid);
    Ok(all)
}

#[derive(Debug, Default)]
struct Texts(Vec<u8>);

impl Texts {
    fn push(&mut self, what: &str, text: impl AsRef<OsStr>) -> Result<(), Error> {
        let bytes = text.as_ref().as_bytes();
        if bytes.contains(&0) {
            return Err(Error::Unstartable(format!("{what} of the container holds a NUL byte")));
        }
        self.0.extend_from_slice(bytes);
        self.0.push(0);
        Ok(())
    }
}
