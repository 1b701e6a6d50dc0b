//! What the shim reads of a process: texts that each end with a NUL byte. `kapell-shim/src/spec.rs` has the other side.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::Duration;

use super::groups::Membership;
use super::texts::{Reader, Texts};
use crate::containers::{Error, Exec};

/// All that runs in a container has these in its environment, and so is found again.
pub(crate) const CONTAINER_MARK: &str = "KAPELL_CONTAINER";
pub(crate) const PROCESS_MARK: &str = "KAPELL_PROCESS";
const MAGIC: &str = "kapell-spec-3";

/// A program for a shim.
#[derive(Debug)]
pub(crate) struct Order<'a> {
    pub(crate) boot: &'a str,
    /// Of its container.
    pub(crate) guid: &'a str,
    pub(crate) name: &'a str,
    pub(crate) program: &'a str,
    pub(crate) args: &'a [String],
    pub(crate) env: &'a [(String, String)],
    pub(crate) dir: Option<&'a Path>,
    /// Unless it runs as the agent does.
    pub(crate) user: Option<(u32, u32)>,
    /// When it has ended, whatever runs as its user is ended.
    pub(crate) own_user: bool,
    /// When it has ended, whatever is in its control group is ended.
    pub(crate) whole: bool,
    /// Its control group is its own, and not that of the container.
    pub(crate) own_group: bool,
    pub(crate) stop_grace: Duration,
    pub(crate) logs: Option<&'a Path>,
    pub(crate) log_bytes: u64,
    pub(crate) log_rate: Option<u64>,
    pub(crate) descriptors: Option<u64>,
    /// If there is one, `program` is a launcher: it ends when it has written the number of the real one to this
    /// file, and that is a child of the shim then.
    pub(crate) pid_file: Option<&'a Path>,
    pub(crate) groups: &'a Membership,
}

/// The order for a program beside the one that `spec` is about: with its directory, user, control groups and
/// environment, and `env` besides. None if `spec` is not whole.
pub(crate) fn beside(spec: &[u8], exec: &Exec) -> Option<Result<Vec<u8>, Error>> {
    let mut texts = Reader(spec.strip_suffix(b"end\0")?);
    let mut fixed = Vec::new();
    for _ in 0..FIXED {
        fixed.push(OsStr::from_bytes(texts.bytes()?));
    }
    for place in OF_ITS_OWN {
        fixed[place] = OsStr::new("");
    }
    fixed[PROGRAM] = OsStr::new(&exec.path);
    let joins = texts.list()?;
    let _args = texts.list()?;
    let name_of = |text: &OsStr| text.as_bytes().split(|byte| *byte == b'=').next().map(Vec::from);
    let own = exec.env.iter().map(|(name, value)| format!("{name}={value}"));
    let own: Vec<OsString> =
        own.chain([format!("{PROCESS_MARK}=exec")]).map(OsString::from).collect();
    let is_other = |text: &&OsStr| !own.iter().any(|each| name_of(each) == name_of(text));
    let inherited: Vec<&OsStr> = texts.list()?.into_iter().filter(is_other).collect();
    let env: Vec<&OsStr> =
        inherited.into_iter().chain(own.iter().map(OsString::as_os_str)).collect();
    let write = || {
        exec.env.iter().try_for_each(|(name, _)| check_variable(name))?;
        let mut order = Texts::default();
        for text in fixed {
            order.push("the program", text)?;
        }
        order.list("the control group", joins.into_iter())?;
        order.list("an argument", exec.args.iter())?;
        order.list("an environment variable", env.into_iter())?;
        order.push("", "end")?;
        Ok(order.0)
    };
    Some(write())
}

/// Refuses what is no name for an environment variable.
pub(crate) fn check_variable(name: &str) -> Result<(), Error> {
    if name.is_empty() || name.contains('=') {
        let text = format!("`{name}` is no name for an environment variable");
        return Err(Error::Unstartable(text));
    }
    Ok(())
}

/// How many texts stand before the lists, and where the program and those stand that are about one process only:
/// `own`, `whole`, its logs, a launcher's file, the group that ends with it.
const FIXED: usize = 16;
const PROGRAM: usize = 2;
const OF_ITS_OWN: [usize; 5] = [6, 7, 9, 13, 14];

/// What the agent reads again after a restart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Header {
    pub(crate) boot: String,
    pub(crate) program: String,
    pub(crate) dir: String,
    /// Empty if it is the agent's.
    pub(crate) user: String,
    /// Nobody else is this user.
    pub(crate) own_user: bool,
    /// All of its container ends with it.
    pub(crate) whole: bool,
    /// What it writes is kept.
    pub(crate) has_logs: bool,
}

impl Header {
    pub(crate) fn uid(&self) -> Option<u32> {
        self.user.parse().ok()
    }

    /// None if it is not whole.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut texts = Reader(bytes.strip_suffix(b"end\0")?);
        if texts.text()? != MAGIC {
            return None;
        }
        let (boot, program, dir) = (texts.text()?, texts.text()?, texts.text()?);
        let (user, _group) = (texts.text()?, texts.bytes()?);
        let (own_user, whole) = (texts.bytes()? == b"own", texts.bytes()? == b"whole");
        let (_grace, logs) = (texts.bytes()?, texts.bytes()?);
        Some(Self { boot, program, dir, user, own_user, whole, has_logs: !logs.is_empty() })
    }
}

impl Order<'_> {
    pub(crate) fn encode(&self) -> Result<Vec<u8>, Error> {
        let mut texts = Texts::default();
        texts.push("", MAGIC)?;
        texts.push("", self.boot)?;
        texts.push("the program", self.program)?;
        texts.path("the directory", self.dir.map(Path::as_os_str))?;
        texts.number(self.user.map(|(uid, _)| uid.into()));
        texts.number(self.user.map(|(_, gid)| gid.into()));
        texts.flag("own", self.own_user);
        texts.push(
            "",
            if self.whole {
                "whole"
            } else if self.own_group {
                "group"
            } else {
                ""
            },
        )?;
        texts.number(Some(u64::try_from(self.stop_grace.as_millis()).unwrap_or(u64::MAX)));
        texts.path("the directory of its logs", self.logs.map(Path::as_os_str))?;
        texts.number(Some(self.log_bytes));
        texts.number(self.log_rate);
        texts.number(self.descriptors);
        texts.path("the file of its number", self.pid_file.map(Path::as_os_str))?;
        let Membership { dir, oom, joins } = self.groups;
        texts.path("the control group", dir.as_ref().map(|path| path.as_os_str()))?;
        texts.path("the control group", oom.as_ref().map(|path| path.as_os_str()))?;
        texts.list("the control group", joins.iter())?;
        texts.list("an argument", self.args.iter())?;
        let environment = self.environment()?;
        let variables = environment.into_iter().map(|(name, value)| format!("{name}={value}"));
        texts.list("an environment variable", variables)?;
        texts.push("", "end")?;
        Ok(texts.0)
    }

    /// Of several variables with one name the last counts.
    fn environment(&self) -> Result<BTreeMap<&str, &str>, Error> {
        let mut all = BTreeMap::new();
        for (name, value) in self.env {
            check_variable(name)?;
            all.insert(name.as_str(), value.as_str());
        }
        all.insert(CONTAINER_MARK, self.guid);
        all.insert(PROCESS_MARK, self.name);
        Ok(all)
    }
}
