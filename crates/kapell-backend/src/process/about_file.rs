//! What an agent must know again of a container: the file `about`. It is written last and removed first.

use std::path::PathBuf;

use nix::unistd::{getegid, geteuid, getuid};

use super::texts::{Reader, Texts};
use crate::containers::{Error, Limits, Spec, User};

const MAGIC: &[u8] = b"kapell-about-1";
const END: &[u8] = b"end\0";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct About {
    /// Which start of the machine saw it made.
    pub(crate) boot: String,
    /// None if it is the agent's.
    pub(crate) user: Option<(u32, u32)>,
    /// Whatever runs as its user is part of it.
    pub(crate) own_user: bool,
    pub(crate) sole: bool,
    pub(crate) logs: PathBuf,
    pub(crate) log_bytes: u64,
    pub(crate) log_rate: Option<u64>,
    pub(crate) limits: Limits,
    pub(crate) tag: Vec<u8>,
}

impl About {
    pub(crate) fn new(spec: &Spec, boot: &str) -> Result<Self, Error> {
        let logs = std::path::absolute(&spec.logs);
        let user = other_user(&spec.user)?;
        Ok(Self {
            boot: boot.to_owned(),
            user,
            own_user: is_own(&spec.user, user),
            sole: spec.sole,
            logs: logs.map_err(super::trouble::io("find", &spec.logs))?,
            log_bytes: spec.log_bytes,
            log_rate: spec.log_rate,
            limits: spec.limits,
            tag: spec.tag.clone(),
        })
    }

    pub(crate) fn encode(&self) -> Result<Vec<u8>, Error> {
        let mut texts = Texts(MAGIC.to_vec());
        texts.0.push(0);
        texts.push("", &self.boot)?;
        texts.number(self.user.map(|(uid, _)| uid.into()));
        texts.number(self.user.map(|(_, gid)| gid.into()));
        texts.flag("own", self.own_user);
        texts.flag("sole", self.sole);
        texts.push("the directory of its logs", &self.logs)?;
        texts.number(Some(self.log_bytes));
        texts.number(self.log_rate);
        let Limits { memory_mb, cpu_millis, pids } = self.limits;
        for limit in [memory_mb, cpu_millis, pids] {
            texts.number(limit.map(u64::from));
        }
        texts.0.extend_from_slice(&self.tag);
        texts.0.extend_from_slice(END);
        Ok(texts.0)
    }

    /// None if it is not whole.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut texts = Reader(bytes.strip_suffix(END)?);
        if texts.bytes()? != MAGIC {
            return None;
        }
        let boot = texts.text()?;
        let user = texts.number()?.0.zip(texts.number()?.0);
        let (own_user, sole) = (texts.bytes()? == b"own", texts.bytes()? == b"sole");
        let (logs, log_bytes, log_rate) = (texts.path()?, texts.number()?.0?, texts.number()?.0);
        let limits = Limits {
            memory_mb: texts.number()?.0,
            cpu_millis: texts.number()?.0,
            pids: texts.number()?.0,
        };
        let tag = texts.0.to_vec();
        Some(Self { boot, user, own_user, sole, logs, log_bytes, log_rate, limits, tag })
    }
}

/// The user to become, if it is another one.
pub(crate) fn other_user(user: &User) -> Result<Option<(u32, u32)>, Error> {
    let own = (geteuid().as_raw(), getegid().as_raw());
    match user {
        User::Same => Ok(None),
        User::Id { uid, gid, .. } if own.0 == 0 => Ok(Some((*uid, *gid))),
        User::Id { uid, gid, .. } if (*uid, *gid) == own => Ok(None),
        User::Id { uid, gid, .. } => Err(Error::Unstartable(format!(
            "only root may run a container as user {uid} and group {gid}, and this agent is user {} and \
             group {}: run the agent as root, or the container as the agent's user",
            own.0, own.1
        ))),
        User::Named(name) => Err(Error::Unstartable(format!(
            "cannot run as `{name}`: only a container with a root of its own knows users by name"
        ))),
    }
}

/// Whether everything that runs as its user is part of it. Never so for root and the agent.
pub(crate) fn is_own(user: &User, other: Option<(u32, u32)>) -> bool {
    let agent = [geteuid().as_raw(), getuid().as_raw(), 0];
    matches!(user, User::Id { own: true, .. })
        && other.is_some_and(|(uid, _)| !agent.contains(&uid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_half_of_it_is_nothing() {
        let about = About {
            boot: "b".to_owned(),
            user: Some((1, 2)),
            own_user: true,
            sole: false,
            logs: PathBuf::from("/logs"),
            log_bytes: 5,
            log_rate: None,
            limits: Limits { memory_mb: Some(7), cpu_millis: None, pids: Some(9) },
            tag: b"a\0tag\0end\0".to_vec(),
        };
        let bytes = about.encode().unwrap();
        assert_eq!(About::parse(&bytes), Some(about));
        assert_eq!(About::parse(&bytes[..30]), None);
        assert_eq!(About::parse(b""), None);
    }
}
