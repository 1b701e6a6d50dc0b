//! A command as text, for those who run it elsewhere.

use std::ffi::OsStr;

use kapell_backend::executor::{Error, Job};

/// The longest argument that a program can be given.
const LONGEST_ARGUMENT: usize = (128 << 10) - 1;

#[derive(Debug)]
pub(super) struct Plain {
    /// The program, and behind it its arguments. Empty if there is none.
    pub(super) words: Vec<String>,
    pub(super) dir: Option<String>,
    pub(super) env: Vec<(String, String)>,
}

/// A place elsewhere.
#[derive(Debug, Clone, Copy)]
pub(super) struct There {
    /// As in "nowhere on a cell".
    pub(super) place: &'static str,
    /// Arguments and environment that it takes.
    pub(super) largest: usize,
}

/// A shell that would only be asked if the program cannot be executed is asked at once: nobody here can try.
pub(super) fn plainly(job: &Job, there: There) -> Result<Plain, Error> {
    let (program, args) = match &job.otherwise {
        Some((program, args)) => (program, args),
        None => (&job.program, &job.args),
    };
    let name = || program.to_string_lossy().into_owned();
    let refused = |reason: String| Error::NotStarted { program: name(), reason };
    let text = |value: &OsStr| {
        let text = value.to_str().map(str::to_owned);
        text.ok_or_else(|| refused(format!("{} is not UTF-8", value.display())))
    };
    if let Some(dir) = job.dir.as_ref().filter(|dir| dir.is_relative()) {
        return Err(refused(format!(
            "`dir: {}` is relative, which is nowhere {}: write the whole path as it is there, or leave it out",
            dir.display(),
            there.place
        )));
    }
    if args.iter().any(|arg| arg.len() > LONGEST_ARGUMENT) {
        return Err(Error::TooLarge { program: name() });
    }
    let words = [program].into_iter().filter(|program| !program.is_empty()).chain(args);
    let env = job.env.iter();
    let plain = Plain {
        words: words.map(|word| text(word)).collect::<Result<_, _>>()?,
        dir: job.dir.as_ref().map(|dir| text(dir.as_os_str())).transpose()?,
        env: env
            .map(|(name, value)| Ok((text(name)?, text(value)?)))
            .collect::<Result<_, Error>>()?,
    };
    let args = plain.words.iter().skip(1).map(String::len).sum::<usize>();
    let env = plain.env.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>();
    if args + env > there.largest {
        return Err(Error::TooLarge { program: name() });
    }
    Ok(plain)
}
