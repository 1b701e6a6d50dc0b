//! Programs beside those of a container, each with a shim that ends it when nobody here wants it any more.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kapell_core::exec::Size;
use nix::fcntl::OFlag;
use nix::unistd::pipe2;
use tokio::net::UnixStream as Stream;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::{oneshot, watch};

use super::console::Console;
use super::container::{Container, Inside};
use super::pidfd::Pidfd;
use super::place::{Launch, Place};
use super::run_home::RunHome;
use super::spec_file::{self, Header};
use super::trouble::{self, Failure, Stage};
use super::{blocking, home, shim};
use crate::containers::{Error, Exec, Exit, Session};
use crate::terminal::{self, Terminal};

/// Starts programs where a shim cannot do so itself.
pub(crate) trait Launcher: fmt::Debug + Send + Sync {
    /// Where it keeps what it is told.
    fn dir(&self) -> &Path;

    /// How to start one with this name, as the process `like` was started. If it is to have a terminal, our side of
    /// that is left with the socket `NAME.tty`. Blocks.
    fn launch(&self, like: &str, name: &str, exec: &Exec) -> Result<Launch, Error>;

    /// Why it was not started, in words. Blocks.
    fn why_not(&self, name: &str, error: Error) -> Error;
}

/// One that runs, as its container knows it.
#[derive(Debug)]
pub(crate) struct Running {
    control: Arc<UnixStream>,
    /// Whoever has the other end knows when its shim is gone.
    gone: watch::Receiver<()>,
}

impl Running {
    pub(crate) fn end(&self) {
        // One that is gone needs no word.
        let _told = self.control.shutdown(Shutdown::Both);
    }

    pub(crate) async fn gone(mut self) {
        while self.gone.changed().await.is_ok() {}
    }
}

/// A shim that was started and has not answered.
#[derive(Debug)]
pub(super) struct Started {
    control: Control,
    header: Header,
    ends: Ends,
    home: PathBuf,
    pub(super) name: String,
    /// Dropped when nobody needs to know any more why it was not started.
    pub(super) settled: Option<oneshot::Sender<()>>,
}

/// Our ends of what a program reads and writes.
#[derive(Debug)]
enum Ends {
    Streams([OwnedFd; 3]),
    Terminal(OwnedFd),
    /// One that a launcher has yet to make, so large.
    Console(Console, Size),
}

/// Waits for the end of a shim, and has its container forget it.
#[derive(Debug)]
pub(super) struct Burial {
    container: Arc<Container>,
    number: u64,
    shim: Pidfd,
    settled: oneshot::Receiver<()>,
    left: Left,
    _gone: watch::Sender<()>,
}

/// What a launcher was given.
#[derive(Debug, Default)]
struct Left {
    files: Vec<PathBuf>,
    group: Option<PathBuf>,
}

impl Left {
    /// Blocks. What cannot be removed now goes with the container.
    fn clear(&self) {
        for file in &self.files {
            let _absent = fs::remove_file(file);
        }
        if let Some(group) = &self.group {
            let _kept = fs::remove_dir(group);
        }
    }
}

impl Burial {
    pub(super) async fn wait(self) {
        // It fails only if nothing can be waited for any more.
        let _ended = self.shim.ended().await;
        let _settled = self.settled.await;
        let left = self.left;
        let _cleared = blocking(move || {
            left.clear();
            Ok(())
        })
        .await;
        self.container.inside().execs.remove(&self.number);
    }
}

/// Our end of what ties a shim to us. It ends what it runs when this is dropped.
#[derive(Debug)]
struct Control(Arc<UnixStream>);

impl Drop for Control {
    fn drop(&mut self) {
        let _told = self.0.shutdown(Shutdown::Both);
    }
}

/// What a shim is started with.
#[derive(Debug)]
struct Prepared {
    order: Vec<u8>,
    ends: Ends,
    given: [OwnedFd; 3],
    /// The streams that are given are a terminal.
    terminal: bool,
    left: Left,
}

impl Place {
    /// Blocks. Whoever asked for it may be gone meanwhile: its burial must take place nonetheless.
    pub(super) fn exec(
        &self,
        of: &Arc<Container>,
        exec: &Exec,
        by: Option<&dyn Launcher>,
    ) -> Result<(Started, Burial), Error> {
        let mut inside = of.inside();
        if inside.closed {
            return Err(Error::Unknown(of.guid.clone()));
        }
        let (like, run) = like(of, &inside, exec)?;
        let number = inside.execs.last_key_value().map_or(0, |(last, _)| last + 1);
        // Nobody but us can name a process so.
        let name = format!(".exec-{number}");
        let prepared = match by {
            None => prepare(of, exec, &run)?,
            Some(by) => self.prepare_by(of, exec, (&like, &name), by)?,
        };
        let Prepared { order, ends, given, terminal, left } = prepared;
        let started = (|| {
            let header = Header::parse(&order).ok_or_else(|| damaged(&run))?;
            let (ours, theirs) = UnixStream::pair().map_err(failed(of, exec))?;
            let pid = shim::spawn_exec(self.shim(), run.dir(), &theirs, &given, terminal)?;
            let shim = Pidfd::open(pid.as_raw()).map_err(failed(of, exec))?;
            Ok((header, ours, shim))
        })();
        let (header, ours, shim) = started.inspect_err(|_| left.clear())?;
        drop(given);
        let control = Arc::new(ours);
        let (sender, gone) = watch::channel(());
        inside.execs.insert(number, Running { control: Arc::clone(&control), gone });
        drop(inside);
        let (settle, settled) = oneshot::channel();
        let container = Arc::clone(of);
        let burial = Burial { container, number, shim, settled, left, _gone: sender };
        let control = Control(control);
        let length = u32::try_from(order.len()).unwrap_or(u32::MAX);
        // A shim that was killed says nothing, which is seen when it is asked.
        let _sent = (&*control.0).write_all(&[&length.to_be_bytes(), order.as_slice()].concat());
        let home = run.dir().to_owned();
        Ok((Started { control, header, ends, home, name, settled: Some(settle) }, burial))
    }

    fn prepare_by(
        &self,
        of: &Container,
        exec: &Exec,
        (like, name): (&str, &str),
        by: &dyn Launcher,
    ) -> Result<Prepared, Error> {
        let dir = by.dir();
        let mut left = Left {
            files: ["json", "pid", "log", "tty"]
                .map(|end| dir.join(format!("{name}.{end}")))
                .to_vec(),
            group: None,
        };
        // What an agent left that was killed.
        left.clear();
        let mut made = || {
            let (ends, given) = match exec.terminal {
                None => streams().map_err(failed(of, exec))?,
                Some(size) => {
                    let console =
                        Console::open(dir, &format!("{name}.tty")).map_err(failed(of, exec))?;
                    let nothing = || File::options().read(true).write(true).open("/dev/null");
                    let nothing = || nothing().map(OwnedFd::from).map_err(failed(of, exec));
                    (Ends::Console(console, size), [nothing()?, nothing()?, nothing()?])
                }
            };
            let launch = by.launch(like, name, exec)?;
            left.group.clone_from(&launch.group);
            Ok((self.launch_order(of, (name, Duration::ZERO), None, &launch)?, ends, given))
        };
        let (order, ends, given) = made().inspect_err(|_| left.clear())?;
        Ok(Prepared { order, ends, given, terminal: false, left })
    }
}

/// The first process that runs and whose output is kept.
fn like(of: &Container, inside: &Inside, exec: &Exec) -> Result<(String, RunHome), Error> {
    let mut first = None;
    for program in inside.programs.values().filter(|program| program.exit().is_none()) {
        let key = (program.name.len(), program.name.as_str());
        let has_logs = program.home.header()?.is_some_and(|header| header.has_logs);
        if has_logs && first.is_none_or(|(first, _)| key < first) {
            first = Some((key, &program.home));
        }
    }
    let Some(((_, name), home)) = first else {
        let text = format!("{}: nothing runs in it now", cannot(of, exec));
        return Err(Error::Unstartable(text));
    };
    Ok((name.to_owned(), home.clone()))
}

fn prepare(of: &Container, exec: &Exec, run: &RunHome) -> Result<Prepared, Error> {
    let spec = home::read(&run.dir().join("spec"))?;
    let order = spec_file::beside(&spec, exec).ok_or_else(|| damaged(run))??;
    let (ends, given) = match exec.terminal {
        None => streams(),
        Some(size) => terminal::open(size).and_then(|(ours, theirs)| {
            Ok((Ends::Terminal(ours), [theirs.try_clone()?, theirs.try_clone()?, theirs]))
        }),
    }
    .map_err(failed(of, exec))?;
    Ok(Prepared { order, ends, given, terminal: exec.terminal.is_some(), left: Left::default() })
}

/// Our ends, and the program's.
fn streams() -> io::Result<(Ends, [OwnedFd; 3])> {
    let pipe = || pipe2(OFlag::O_CLOEXEC);
    let (stdin, stdout, stderr) = (pipe()?, pipe()?, pipe()?);
    Ok((Ends::Streams([stdin.1, stdout.0, stderr.0]), [stdin.0, stdout.1, stderr.1]))
}

impl Started {
    /// Waits until its program runs, or it is certain that it never will.
    pub(super) async fn session(self) -> Result<Session, Error> {
        let Self { control, header, ends, home, .. } = self;
        let failed = |source| Error::Io { what: "cannot talk to a shim".to_owned(), source };
        control.0.set_nonblocking(true).map_err(failed)?;
        let told = control.0.try_clone().and_then(Stream::from_std).map_err(failed)?;
        match read::<1>(&told).await {
            Some([b'R']) => {}
            Some([b'F']) => {
                let [stage, errno @ ..] = read::<5>(&told).await.unwrap_or_default();
                let (stage, errno) = (Stage::from_byte(stage), i32::from_be_bytes(errno));
                let stage = stage.unwrap_or(Stage::Fork);
                let failure = Failure { stage, errno, words: String::new() };
                let error = failure.to_error(&home, &header);
                let is_absent =
                    stage == Stage::Program && matches!(errno, libc::ENOENT | libc::ENOTDIR);
                return Err(if is_absent { Error::Absent(error.to_string()) } else { error });
            }
            Some(_) | None => return Err(failed(io::ErrorKind::UnexpectedEof.into())),
        }
        let ended = async move {
            let _tie = control;
            let value = |bytes: [u8; 4]| Some(i32::from_be_bytes(bytes));
            Ok(match read::<5>(&told).await {
                Some([b'C', code @ ..]) => Exit { code: value(code), ..Exit::default() },
                Some([_, signal @ ..]) => Exit { signal: value(signal), ..Exit::default() },
                None => {
                    let trouble = Some("it was killed with its container".to_owned());
                    Exit { stopped: true, trouble, ..Exit::default() }
                }
            })
        };
        let ended = Box::pin(ended);
        let terminal = |ours: OwnedFd| Terminal::new(ours).map_err(failed);
        match ends {
            Ends::Streams([stdin, stdout, stderr]) => Ok(Session {
                stdin: Box::new(Sender::from_owned_fd(stdin).map_err(failed)?),
                stdout: Box::new(Receiver::from_owned_fd(stdout).map_err(failed)?),
                stderr: Box::new(Receiver::from_owned_fd(stderr).map_err(failed)?),
                resize: None,
                ended,
            }),
            Ends::Terminal(ours) => Ok(Session::on(terminal(ours)?, ended)),
            Ends::Console(console, size) => {
                let terminal = terminal(console.take().map_err(failed)?)?;
                terminal.resize(size);
                Ok(Session::on(terminal, ended))
            }
        }
    }
}

impl Session {
    fn on(terminal: Terminal, ended: crate::containers::Ended) -> Self {
        let sized = terminal.clone();
        Self {
            stdin: Box::new(terminal.clone()),
            stdout: Box::new(terminal),
            stderr: Box::new(tokio::io::empty()),
            resize: Some(Box::new(move |size| sized.resize(size))),
            ended,
        }
    }
}

/// The next bytes that a shim says; none if it is gone.
async fn read<const LENGTH: usize>(told: &Stream) -> Option<[u8; LENGTH]> {
    let (mut bytes, mut have) = ([0; LENGTH], 0);
    while have < LENGTH {
        match told.try_read(&mut bytes[have..]) {
            Ok(0) => return None,
            Ok(length) => have += length,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                told.readable().await.ok()?;
            }
            Err(_) => return None,
        }
    }
    Some(bytes)
}

fn damaged(run: &RunHome) -> Error {
    trouble::io("read", &run.dir().join("spec"))(io::ErrorKind::InvalidData.into())
}

fn failed(of: &Container, exec: &Exec) -> impl Fn(io::Error) -> Error + use<> {
    let what = cannot(of, exec);
    move |source| Error::Io { what: what.clone(), source }
}

fn cannot(of: &Container, exec: &Exec) -> String {
    format!("cannot run `{}` in container `{}`", exec.path, of.guid)
}
