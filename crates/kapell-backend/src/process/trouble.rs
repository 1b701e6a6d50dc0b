//! What went wrong, in words.

use std::io;
use std::path::Path;

use super::spec_file::Header;
use crate::containers::Error;

/// Where the shim says that it failed. The numbers are those of `kapell-shim/src/record.rs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Pid,
    Spec,
    Exit,
    Pipes,
    Fork,
    Work,
    User,
    Dir,
    Program,
    Interpreter,
    Group,
    Launcher,
}

impl Stage {
    const ALL: [Self; 12] = [
        Self::Pid,
        Self::Spec,
        Self::Exit,
        Self::Pipes,
        Self::Fork,
        Self::Work,
        Self::User,
        Self::Dir,
        Self::Program,
        Self::Interpreter,
        Self::Group,
        Self::Launcher,
    ];

    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.get(usize::from(byte).checked_sub(1)?).copied()
    }
}

/// Why a program never ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) stage: Stage,
    pub(crate) errno: i32,
    /// What a launcher said last.
    pub(crate) words: String,
}

impl Failure {
    pub(crate) fn to_error(&self, home: &Path, header: &Header) -> Error {
        let cause = io::Error::from_raw_os_error(self.errno);
        let io = |what: &str, source| Error::Io { what: what.to_owned(), source };
        let file =
            |name| (self::io("write", &home.join(name)))(io::Error::from_raw_os_error(self.errno));
        match self.stage {
            Stage::Pid => file("pid"),
            Stage::Exit => file("exit"),
            Stage::Spec => (self::io("read", &home.join("spec")))(cause),
            Stage::Pipes => io("cannot make a pipe for the container's output", cause),
            Stage::Fork => io("cannot start a process for the container", cause),
            Stage::Work => (self::io("enter", &home.join("../../work")))(cause),
            Stage::User => Error::Unstartable(format!(
                "the container may not run as user {}: {cause}",
                header.user
            )),
            Stage::Dir => Error::Unstartable(self.about_dir(&header.dir, &cause)),
            Stage::Program => Error::Unstartable(self.about_program(&header.program, &cause)),
            Stage::Interpreter => Error::Unstartable(format!(
                "the interpreter that `{}` names in its first line is not there",
                header.program
            )),
            Stage::Group => io("cannot put the container into its control groups", cause),
            Stage::Launcher => Error::Unstartable(self.about_launcher(&header.program)),
        }
    }

    fn about_launcher(&self, launcher: &str) -> String {
        let how = match self.errno {
            0 => "named no process that it has started".to_owned(),
            code @ 1.. => format!("ended with {code}"),
            signal => format!("was ended by signal {}", -signal),
        };
        match self.words.as_str() {
            "" => format!("`{launcher}` {how} and said nothing"),
            words => format!("`{launcher}` {how}: {words}"),
        }
    }

    fn about_dir(&self, dir: &str, cause: &io::Error) -> String {
        match self.errno {
            libc::ENOENT => format!("directory `{dir}` is not there"),
            libc::ENOTDIR => format!("`{dir}` is not a directory"),
            libc::EACCES => format!("directory `{dir}` may not be entered"),
            _ => format!("directory `{dir}` could not be entered: {cause}"),
        }
    }

    fn about_program(&self, program: &str, cause: &io::Error) -> String {
        let is_path = program.contains('/');
        match self.errno {
            libc::ENOENT | libc::ENOTDIR if is_path => format!("`{program}` is not there"),
            libc::ENOENT | libc::ENOTDIR => format!("`{program}` was not found in PATH"),
            libc::EACCES if is_path => format!("`{program}` may not be executed"),
            libc::EACCES => format!("`{program}` was found in PATH but may not be executed"),
            libc::ENOEXEC => {
                format!("`{program}` is neither a program for this machine nor a script with `#!`")
            }
            libc::E2BIG => {
                format!("the arguments and environment of `{program}` are too long for the system")
            }
            _ => format!("`{program}` could not be executed: {cause}"),
        }
    }
}

/// Says what could not be done, and with which file.
pub(crate) fn io(verb: &str, path: &Path) -> impl FnOnce(io::Error) -> Error + use<> {
    let what = format!("cannot {verb} `{}`", path.display());
    |source| Error::Io { what, source }
}
