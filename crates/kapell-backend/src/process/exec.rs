//! Programs beside those of a container, each with a shim that ends it when nobody here wants it any more.

use std::io::{self, Write as _};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;

use nix::fcntl::OFlag;
use nix::unistd::pipe2;
use tokio::net::UnixStream as Stream;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::watch;

use super::container::Container;
use super::home;
use super::pidfd::Pidfd;
use super::place::Place;
use super::shim;
use super::spec_file::{self, Header};
use super::trouble::{self, Failure, Stage};
use crate::containers::{Error, Exec, Exit, Session};

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
    streams: [OwnedFd; 3],
    pub(super) burial: Option<Burial>,
    pub(super) home: PathBuf,
}

/// Waits for the end of a shim, and has its container forget it.
#[derive(Debug)]
pub(super) struct Burial {
    container: Arc<Container>,
    number: u64,
    shim: Pidfd,
    _gone: watch::Sender<()>,
}

impl Burial {
    pub(super) async fn wait(self) {
        // It fails only if nothing can be waited for any more.
        let _ended = self.shim.ended().await;
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

impl Place {
    /// Blocks.
    pub(super) fn exec(&self, of: &Arc<Container>, exec: &Exec) -> Result<Started, Error> {
        let failed = |source: io::Error| Error::Io { what: cannot(of, exec), source };
        let mut inside = of.inside();
        if inside.closed {
            return Err(Error::Unknown(of.guid.clone()));
        }
        let mut like = None;
        for program in inside.programs.values().filter(|program| program.exit().is_none()) {
            let key = (program.name.len(), program.name.as_str());
            let has_logs = program.home.header()?.is_some_and(|header| header.has_logs);
            if has_logs && like.is_none_or(|(first, _)| key < first) {
                like = Some((key, &program.home));
            }
        }
        let Some((_, run)) = like else {
            let text = format!("{}: nothing runs in it now", cannot(of, exec));
            return Err(Error::Unstartable(text));
        };
        let spec = run.dir().join("spec");
        let damaged = || trouble::io("read", &spec)(io::ErrorKind::InvalidData.into());
        let order = spec_file::beside(&home::read(&spec)?, exec).ok_or_else(damaged)??;
        let header = Header::parse(&order).ok_or_else(damaged)?;
        let pipe = || pipe2(OFlag::O_CLOEXEC).map_err(|errno| failed(errno.into()));
        let (stdin, stdout, stderr) = (pipe()?, pipe()?, pipe()?);
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        let given = [stdin.0, stdout.1, stderr.1];
        let pid = shim::spawn_exec(self.shim(), run.dir(), &theirs, &given)?;
        drop((theirs, given));
        let shim = Pidfd::open(pid.as_raw()).map_err(failed)?;
        let home = run.dir().to_owned();
        let control = Arc::new(ours);
        let (sender, gone) = watch::channel(());
        let number = inside.execs.last_key_value().map_or(0, |(last, _)| last + 1);
        inside.execs.insert(number, Running { control: Arc::clone(&control), gone });
        drop(inside);
        let burial = Burial { container: Arc::clone(of), number, shim, _gone: sender };
        let control = Control(control);
        let length =
            u32::try_from(order.len()).map_err(|_| failed(io::ErrorKind::FileTooLarge.into()))?;
        // A shim that was killed says nothing, which is seen when it is asked.
        let _sent = (&*control.0).write_all(&[&length.to_be_bytes(), order.as_slice()].concat());
        Ok(Started {
            control,
            header,
            streams: [stdin.1, stdout.0, stderr.0],
            burial: Some(burial),
            home,
        })
    }
}

impl Started {
    /// Waits until its program runs, or it is certain that it never will.
    pub(super) async fn session(self) -> Result<Session, Error> {
        let Self { control, header, streams, home, .. } = self;
        let failed = |source| Error::Io { what: "cannot talk to a shim".to_owned(), source };
        control.0.set_nonblocking(true).map_err(failed)?;
        let told = control.0.try_clone().and_then(Stream::from_std).map_err(failed)?;
        match read::<1>(&told).await {
            Some([b'R']) => {}
            Some([b'F']) => {
                let [stage, errno @ ..] = read::<5>(&told).await.unwrap_or_default();
                let (stage, errno) = (Stage::from_byte(stage), i32::from_be_bytes(errno));
                let stage = stage.unwrap_or(Stage::Fork);
                return Err(Failure { stage, errno, words: String::new() }.to_error(&home, &header));
            }
            Some(_) | None => return Err(failed(io::ErrorKind::UnexpectedEof.into())),
        }
        let [stdin, stdout, stderr] = streams;
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
        Ok(Session {
            stdin: Box::new(Sender::from_owned_fd(stdin).map_err(failed)?),
            stdout: Box::new(Receiver::from_owned_fd(stdout).map_err(failed)?),
            stderr: Box::new(Receiver::from_owned_fd(stderr).map_err(failed)?),
            ended: Box::pin(ended),
        })
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

fn cannot(of: &Container, exec: &Exec) -> String {
    format!("cannot run `{}` in container `{}`", exec.path, of.guid)
}
