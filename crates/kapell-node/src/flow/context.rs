//! What names stand for in one run, and how a step becomes a command.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use kapell_backend::executor::{self, Job};
use kapell_core::expand::{self, Values};
use kapell_core::flow::Phase;
use kapell_core::workflow::{Bound, OnKubernetes, Options, Step, StepIx, Work, Workflow};

/// The longest `NAME=value` that a program can be given in its environment.
const MAX_VARIABLE: usize = 128 << 10;

const SHELL: &str = "sh";
/// Shells whose language we know well enough to rewrite.
const POSIX_SHELLS: [&str; 7] = ["sh", "bash", "dash", "ash", "ksh", "zsh", "busybox"];

/// Runs a command that reads, as `/dev/fd/3`, the text that stands before it.
const HAND_OVER: &str = "exec 3<<KAPELL\n$1\nKAPELL\nshift\nexec \"$@\"";
const HANDED_OVER: &str = "/dev/fd/3";

/// Why a step could not be made into a command.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error(transparent)]
    Expand(#[from] expand::Error),
    #[error("{0}")]
    Unfit(String),
    #[error("cannot write the script to `{path}`: {source}")]
    Script { path: PathBuf, source: io::Error },
}

/// Values of one run.
#[derive(Debug)]
pub(super) struct Context {
    params: Bound,
    /// Every variable that all commands get.
    exported: BTreeMap<String, Variable>,
    /// Those of them that the environment cannot hold.
    misfits: BTreeSet<String>,
    /// Standard output of steps that some text looks into.
    documents: BTreeMap<String, String>,
    /// Variables that only handlers get.
    pub(super) ending: Vec<(String, String)>,
    scripts: Scripts,
}

/// A variable that all commands get.
#[derive(Debug)]
struct Variable {
    value: String,
    from: Origin,
}

/// Where a variable comes from, the weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// A parameter by its number. Texts know it by that.
    Position,
    /// A named parameter, or the workflow's `env`.
    File,
    Output,
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
        let listed = |list: &[(String, String)]| list.iter().rposition(|(key, _)| key == name);
        let known = match (listed(self.own), listed(&self.context.ending)) {
            (Some(at), _) => Some(&self.own[at].1),
            (None, Some(at)) => Some(&self.context.ending[at].1),
            (None, None) => {
                let exported = self.context.exported.get(name);
                exported.filter(|it| it.from != Origin::Position).map(|it| &it.value)
            }
        };
        match known {
            Some(value) => Some(Cow::Borrowed(value)),
            None => std::env::var(name).ok().map(Cow::Owned),
        }
    }

    fn document(&self, name: &str) -> Option<&str> {
        let exported = self.context.exported.get(name);
        let output = exported.filter(|it| it.from == Origin::Output).map(|it| &it.value);
        output.or_else(|| self.context.documents.get(name)).map(String::as_str)
    }
}

impl Context {
    pub(super) fn new(workflow: &Workflow, params: Bound, scripts: Scripts) -> Self {
        let mut context = Self {
            params,
            exported: BTreeMap::new(),
            misfits: BTreeSet::new(),
            documents: BTreeMap::new(),
            ending: Vec::new(),
            scripts,
        };
        for (at, value) in context.params.positional.clone().into_iter().enumerate() {
            context.put(format!("PARAM_{}", at + 1), value, Origin::Position);
        }
        for (name, value) in context.params.named.clone() {
            context.put(name, value, Origin::File);
        }
        for (name, value) in &workflow.env {
            // A parameter that was given is more specific than the file's own environment.
            if context.params.named.iter().any(|(named, _)| named == name) {
                continue;
            }
            // Only a look into JSON can fail, and before the first step there is none.
            let sight = Sight { context: &context, own: &[] };
            let value =
                expand::substitute(value, &sight).map_or_else(|_| value.clone(), Cow::into_owned);
            context.put(name.clone(), value, Origin::File);
        }
        context
    }

    fn put(&mut self, name: String, value: String, from: Origin) {
        if fits(&name, &value).is_ok() {
            self.misfits.remove(&name);
        } else {
            self.misfits.insert(name.clone());
        }
        self.exported.insert(name, Variable { value, from });
    }

    /// Makes outputs known to the steps that follow.
    pub(super) fn learn(&mut self, step: &str, outputs: &[(String, String)], stdout: Option<&str>) {
        for (name, value) in outputs {
            self.put(name.clone(), value.clone(), Origin::Output);
        }
        if let Some(stdout) = stdout {
            self.documents.insert(step.to_owned(), stdout.to_owned());
        }
    }

    /// The command of one phase of a step.
    ///
    /// One that runs `elsewhere` finds no files of ours: it gets a script as an argument.
    pub(super) fn job(
        &self,
        ix: StepIx,
        step: &Step,
        phase: Phase,
        elsewhere: bool,
    ) -> Result<Prepared, Error> {
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
            (Phase::Main, Work::Script(text)) if elsewhere => {
                self.script_as_argument(text, shell_words, &sight)?
            }
            (Phase::Main, Work::Script(text)) => self.script(ix, text, shell_words, &sight)?,
            (Phase::Main, Work::Join | Work::Pod) => Prepared::default(),
        };
        prepared.job.dir = dir;
        self.export(&mut prepared.job, &own)?;
        Ok(prepared)
    }

    /// What a step asks of its cluster, with the values that its images refer to.
    pub(super) fn on_kubernetes(
        &self,
        step: &Step,
        wanted: &OnKubernetes,
    ) -> Result<OnKubernetes, Error> {
        let own = self.own_env(&step.options)?;
        let sight = Sight { context: self, own: &own };
        let image = |text: &str| expand::substitute(text, &sight).map(Cow::into_owned);
        Ok(OnKubernetes { payload: wanted.payload.with_images(image)?, ..*wanted })
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
        let program = words.map_or(SHELL, |words| words[0].as_str());
        let (text, env) = for_interpreter(text, speaks_posix(program), sight)?;
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
        let (interpreter, shell) = read_by(text, words);
        let (text, env) = for_interpreter(text, is_posix(interpreter, shell), sight)?;
        let path = self.scripts.dir().join(format!("script-{}", ix.index()));
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

    /// A script whose text is all that arrives.
    fn script_as_argument(
        &self,
        text: &str,
        words: Option<&[String]>,
        sight: &Sight<'_>,
    ) -> Result<Prepared, Error> {
        let (line, shell) = read_by(text, words);
        let (text, env) = for_interpreter(text, is_posix(line, shell), sight)?;
        let params = self.params.positional.iter().map(OsString::from);
        let (program, mut args): (OsString, Vec<OsString>) = match line {
            Some(line) => {
                // As the system reads it: a program, and all that follows as one argument.
                let (program, option) =
                    line.trim().split_once([' ', '\t']).unwrap_or((line.trim(), ""));
                let option = Some(option.trim()).filter(|option| !option.is_empty());
                let words = ["-c", HAND_OVER, SHELL, &text, program].into_iter();
                let words = words.chain(option).chain([HANDED_OVER]);
                (SHELL.into(), words.map(OsString::from).collect())
            }
            None => {
                let words = words.map_or(&[][..], |words| &words[1..]).iter().map(OsString::from);
                let rest = ["-c".into(), OsString::from(&*text), shell.into()];
                (shell.into(), words.chain(rest).collect())
            }
        };
        args.extend(params);
        Ok(Prepared { job: Job { program, args, env, ..Job::default() }, script: None })
    }

    /// Gives the command everything that has a name.
    fn export(&self, job: &mut Job, own: &[(String, String)]) -> Result<(), Error> {
        if let Some(name) = self.misfits.first() {
            fits(name, &self.exported[name].value).map_err(Error::Unfit)?;
        }
        let exported = self.exported.iter().map(|(name, it)| (name.into(), (&it.value).into()));
        job.env.reserve_exact(self.exported.len() + self.ending.len() + own.len());
        job.env.extend(exported);
        for (name, value) in self.ending.iter().chain(own) {
            fits(name, value).map_err(Error::Unfit)?;
            job.env.push((name.into(), value.into()));
        }
        Ok(())
    }
}

/// What kept a command from starting: if it was too large, then what of it, the largest first.
pub(super) fn explain(error: &executor::Error, job: &Job) -> String {
    let executor::Error::TooLarge { program } = error else { return error.to_string() };
    let args = job.otherwise.as_ref().map_or(&job.args, |(_, args)| args);
    let args = args.iter().map(|arg| arg.len() + 1).sum::<usize>();
    let mut sizes: Vec<(String, usize)> = job
        .env
        .iter()
        .map(|(name, value)| (format!("variable `{}`", name.to_string_lossy()), value.len()))
        .chain([("the arguments".to_owned(), args)])
        .collect();
    sizes.sort_by_key(|(_, size)| std::cmp::Reverse(*size));
    let shown: Vec<_> =
        sizes.iter().take(3).map(|(what, size)| format!("{what} ({size} bytes)")).collect();
    format!(
        "arguments and environment of `{program}` are too large; the largest: {}: pass it in a file",
        shown.join(", ")
    )
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
    Err(format!(
        "variable `{name}` is {} bytes long and the environment takes at most {MAX_VARIABLE}: pass it in a file",
        value.len()
    ))
}

/// What a script names behind its `#!`, if it does, and the shell that runs it otherwise.
fn read_by<'a>(text: &'a str, words: Option<&'a [String]>) -> (Option<&'a str>, &'a str) {
    let line = text.lines().next().and_then(|line| line.strip_prefix("#!"));
    (line, words.map_or(SHELL, |words| words[0].as_str()))
}

fn is_posix(line: Option<&str>, shell: &str) -> bool {
    match line {
        Some(line) => line.split_whitespace().any(speaks_posix),
        None => speaks_posix(shell),
    }
}

/// The text as its interpreter is to get it, and the variables that it then needs.
fn for_interpreter<'t>(
    text: &'t str,
    posix: bool,
    sight: &Sight<'_>,
) -> Result<(Cow<'t, str>, Variables), Error> {
    if !posix {
        return Ok((Cow::Borrowed(text), Vec::new()));
    }
    let rewritten = expand::rewrite(text, sight)?;
    let env = rewritten.variables.into_iter().map(|(name, value)| (name.into(), value.into()));
    Ok((rewritten.text, env.collect()))
}

type Variables = Vec<(OsString, OsString)>;

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

/// Where the files of scripts go: into the run's own directory, or one made for them alone.
#[derive(Debug)]
pub(super) enum Scripts {
    Run(PathBuf),
    Alone(PathBuf),
}

impl Scripts {
    /// A directory that only we can enter. Without one the scripts cannot be written, and say so.
    pub(super) fn alone(dir: PathBuf) -> Self {
        let _made = std::fs::DirBuilder::new().mode(0o700).create(&dir);
        Self::Alone(dir)
    }

    fn dir(&self) -> &Path {
        match self {
            Self::Run(dir) | Self::Alone(dir) => dir,
        }
    }
}

impl Drop for Scripts {
    fn drop(&mut self) {
        if let Self::Alone(dir) = self {
            // Not if somebody put something there, and not if it was never made.
            let _gone = std::fs::remove_dir(dir);
        }
    }
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
