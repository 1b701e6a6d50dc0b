//! What names stand for in one run, and how a step becomes a command.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use kapell_backend::executor::Job;
use kapell_core::expand::{self, Values};
use kapell_core::flow::Phase;
use kapell_core::workflow::{Bound, Options, Step, StepIx, Work, Workflow};

/// The longest `NAME=value` that a program can be given in its environment.
const MAX_VARIABLE: usize = 128 << 10;

const SHELL: &str = "sh";
/// Shells whose language we know well enough to rewrite.
const POSIX_SHELLS: [&str; 7] = ["sh", "bash", "dash", "ash", "ksh", "zsh", "busybox"];

/// Why a step could not be made into a command.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error(transparent)]
    Expand(#[from] expand::Error),
    #[error(
        "variable `{name}` is {size} bytes long and the environment takes at most {MAX_VARIABLE}: pass it in a file"
    )]
    TooLarge { name: String, size: usize },
    #[error("cannot write the script to `{path}`: {source}")]
    Script { path: PathBuf, source: io::Error },
}

/// Values of one run.
#[derive(Debug)]
pub(super) struct Context {
    params: Bound,
    /// Variables that every command gets: the workflow's, then the named parameters.
    base: Vec<(String, String)>,
    outputs: BTreeMap<String, String>,
    /// Standard output of steps that some text looks into.
    documents: BTreeMap<String, String>,
    /// Variables that only handlers get.
    pub(super) ending: Vec<(String, String)>,
    scripts: PathBuf,
}

/// Values as one step sees them.
struct Sight<'c> {
    context: &'c Context,
    own: &'c [(String, String)],
}

impl Values for Sight<'_> {
    fn position(&self, number: usize) -> Option<&str> {
        self.context.params.positional.get(number.checked_sub(1)?).map(String::as_str)
    }

    fn variable(&self, name: &str) -> Option<Cow<'_, str>> {
        let listed = |list: &'_ [(String, String)]| {
            list.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.clone())
        };
        let known = listed(self.own)
            .or_else(|| listed(&self.context.ending))
            .or_else(|| self.context.outputs.get(name).cloned())
            .or_else(|| listed(&self.context.base));
        known.or_else(|| std::env::var(name).ok()).map(Cow::Owned)
    }

    fn document(&self, name: &str) -> Option<&str> {
        self.context
            .outputs
            .get(name)
            .or_else(|| self.context.documents.get(name))
            .map(String::as_str)
    }
}

impl Context {
    pub(super) fn new(workflow: &Workflow, params: Bound, scripts: PathBuf) -> Self {
        let mut context = Self {
            base: params.named.clone(),
            params,
            outputs: BTreeMap::new(),
            documents: BTreeMap::new(),
            ending: Vec::new(),
            scripts,
        };
        let mut env = Vec::with_capacity(workflow.env.len());
        for (name, value) in &workflow.env {
            // A parameter that was given is more specific than the file's own environment.
            if context.params.named.iter().any(|(named, _)| named == name) {
                continue;
            }
            // Only a look into JSON can fail, and before the first step there is none.
            let sight = Sight { context: &context, own: &env };
            let value =
                expand::substitute(value, &sight).map_or_else(|_| value.clone(), Cow::into_owned);
            env.push((name.clone(), value));
        }
        context.base.extend(env);
        context
    }

    /// Makes outputs known to the steps that follow.
    pub(super) fn learn(&mut self, step: &str, outputs: &[(String, String)], stdout: Option<&str>) {
        for (name, value) in outputs {
            self.outputs.insert(name.clone(), value.clone());
        }
        if let Some(stdout) = stdout {
            self.documents.insert(step.to_owned(), stdout.to_owned());
        }
    }

    /// The command of one phase of a step.
    pub(super) fn job(&self, ix: StepIx, step: &Step, phase: Phase) -> Result<Prepared, Error> {
        let options = &step.options;
        let own = self.own_env(options)?;
        let sight = Sight { context: self, own: &own };
        let dir = match &options.dir {
            Some(dir) => Some(PathBuf::from(expand::substitute(dir, &sight)?.into_owned())),
            None => None,
        };
        let shell_words = options.shell.as_deref();
        let mut prepared = match (phase, &step.work) {
            (Phase::When, _) => self.shell(
                options.when.as_ref().map_or("", |when| &when.predicate),
                shell_words,
                &sight,
            )?,
            (Phase::Precondition(at), _) => {
                self.shell(&options.preconditions[at].predicate, shell_words, &sight)?
            }
            (Phase::Main, Work::Shell(text)) => self.shell(text, shell_words, &sight)?,
            (Phase::Main, Work::Exec { program, args }) => {
                let text = |text: &str| {
                    expand::substitute(text, &sight).map(|text| OsString::from(text.into_owned()))
                };
                let args = args.iter().map(|arg| text(arg)).collect::<Result<_, _>>()?;
                Prepared {
                    job: Job { program: text(program)?, args, ..Job::default() },
                    script: None,
                }
            }
            (Phase::Main, Work::Script(text)) => self.script(ix, text, shell_words, &sight)?,
            (Phase::Main, Work::Join) => Prepared::default(),
        };
        prepared.job.dir = dir;
        self.export(&mut prepared.job, &own)?;
        Ok(prepared)
    }

    fn own_env(&self, options: &Options) -> Result<Vec<(String, String)>, Error> {
        let mut own: Vec<(String, String)> = Vec::with_capacity(options.env.len());
        for (name, value) in &options.env {
            let value =
                expand::substitute(value, &Sight { context: self, own: &own })?.into_owned();
            own.push((name.clone(), value));
        }
        Ok(own)
    }

    fn shell(
        &self,
        text: &str,
        words: Option<&[String]>,
        sight: &Sight<'_>,
    ) -> Result<Prepared, Error> {
        let mut env = Vec::new();
        let program = words.map_or(SHELL, |words| words[0].as_str());
        let text = if speaks_posix(program) {
            let rewritten = expand::rewrite(text, sight)?;
            env.extend(
                rewritten.variables.into_iter().map(|(name, value)| (name.into(), value.into())),
            );
            rewritten.text
        } else {
            Cow::Borrowed(text)
        };
        let mut args: Vec<OsString> =
            words.map_or(&[][..], |words| &words[1..]).iter().map(OsString::from).collect();
        args.push("-c".into());
        args.push(OsString::from(&*text));
        if !self.params.positional.is_empty() {
            args.push(program.into());
            args.extend(self.params.positional.iter().map(OsString::from));
        }
        let mut job = Job { program: program.into(), args, env, ..Job::default() };
        if words.is_none()
            && let Some(plain) = expand::plain_words(&text)
        {
            let shell = (job.program, job.args);
            job.program = plain[0].into();
            job.args = plain[1..].iter().map(OsString::from).collect();
            job.otherwise = Some(shell);
        }
        Ok(Prepared { job, script: None })
    }

    fn script(
        &self,
        ix: StepIx,
        text: &str,
        words: Option<&[String]>,
        sight: &Sight<'_>,
    ) -> Result<Prepared, Error> {
        let interpreter = text.lines().next().and_then(|line| line.strip_prefix("#!"));
        let shell = words.map_or(SHELL, |words| words[0].as_str());
        let posix = match interpreter {
            Some(line) => line.split_whitespace().any(speaks_posix),
            None => speaks_posix(shell),
        };
        let mut env = Vec::new();
        let text = if posix {
            let rewritten = expand::rewrite(text, sight)?;
            env.extend(
                rewritten.variables.into_iter().map(|(name, value)| (name.into(), value.into())),
            );
            rewritten.text
        } else {
            Cow::Borrowed(text)
        };
        let path = self.scripts.join(format!("script-{}", ix.index()));
        write_script(&path, &text)
            .map_err(|source| Error::Script { path: path.clone(), source })?;
        let params = self.params.positional.iter().map(OsString::from);
        let (program, args) = match interpreter {
            Some(_) => (path.clone().into_os_string(), params.collect()),
            None => {
                let words = words.map_or(&[][..], |words| &words[1..]);
                let args = words
                    .iter()
                    .map(OsString::from)
                    .chain([path.clone().into_os_string()])
                    .chain(params);
                (shell.into(), args.collect())
            }
        };
        Ok(Prepared {
            job: Job { program, args, env, ..Job::default() },
            script: Some(Script(path)),
        })
    }

    /// Gives the command everything that has a name.
    fn export(&self, job: &mut Job, own: &[(String, String)]) -> Result<(), Error> {
        let nothing = self.base.is_empty() && self.outputs.is_empty() && own.is_empty();
        if nothing && self.params.positional.is_empty() && self.ending.is_empty() {
            return Ok(());
        }
        let positions = self.params.positional.iter().enumerate();
        let params: Vec<_> =
            positions.map(|(at, value)| (format!("PARAM_{}", at + 1), value.clone())).collect();
        let outputs = self.outputs.iter();
        let listed = |list| <[(String, String)]>::iter(list).map(|(name, value)| (name, value));
        let all = listed(&params)
            .chain(listed(&self.base))
            .chain(outputs)
            .chain(listed(&self.ending))
            .chain(listed(own));
        for (name, value) in all {
            if fits(name, value).is_err() {
                return Err(Error::TooLarge { name: name.clone(), size: value.len() });
            }
            job.env.push((name.into(), value.into()));
        }
        Ok(())
    }
}

/// Whether a variable can be handed to a program at all.
pub(super) fn fits(name: &str, value: &str) -> Result<(), String> {
    if value.contains('\0') {
        return Err(format!(
            "variable `{name}` contains a NUL byte, which the environment cannot hold: pass it in a file"
        ));
    }
    if name.len() + value.len() + 2 <= MAX_VARIABLE {
        return Ok(());
    }
    Err(Error::TooLarge { name: name.to_owned(), size: value.len() }.to_string())
}

fn speaks_posix(program: &str) -> bool {
    let name = Path::new(program).file_name().map(|name| name.to_string_lossy());
    name.is_some_and(|name| POSIX_SHELLS.contains(&&*name))
}

fn write_script(path: &Path, text: &str) -> io::Result<()> {
    // A script of an earlier attempt may still be executing: it keeps its own file.
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut file =
        std::fs::OpenOptions::new().write(true).create_new(true).mode(0o700).open(path)?;
    file.write_all(text.as_bytes())
}

/// A command ready to start, and the file it runs from, if any.
#[derive(Debug, Default)]
pub(super) struct Prepared {
    pub(super) job: Job,
    pub(super) script: Option<Script>,
}

/// A script's file, removed when nobody needs it any more.
#[derive(Debug)]
pub(super) struct Script(PathBuf);

impl Drop for Script {
    fn drop(&mut self) {
        // At worst it is removed with the run's directory.
        let _gone = std::fs::remove_file(&self.0);
    }
}
