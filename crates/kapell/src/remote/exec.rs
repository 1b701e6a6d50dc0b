//! `kapell exec`

use std::io::{self, IsTerminal as _, Read as _};

use anyhow::{Context as _, bail};
use kapell_api::client::{Client, Error, Exec as Session, Input, Told};
use kapell_api::v1::ExecWanted;
use kapell_core::board::EnvVar;
use kapell_core::exec::Size;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::args::Exec;
use super::raw::{self, Raw};
use super::target::Target;

/// How much is read at once.
const PIECE: usize = 16 * 1024;
/// What we return if it is not the program that ended, as others do who run programs for somebody.
const FAILED: u8 = 125;
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

/// Returns what the program returns; 128 and its number if a signal ended it, as shells do.
pub(crate) async fn run(args: &Exec, client: &Client) -> anyhow::Result<u8> {
    let Some((path, rest)) = args.command.split_first() else { bail!("say what to run") };
    let term = std::env::var("TERM").ok().map(|value| EnvVar { name: "TERM".into(), value });
    let env = term.into_iter().collect();
    let has_terminal = has_terminal(args);
    let terminal = has_terminal.then(raw::size);
    let wanted = ExecWanted { path: path.clone(), args: rest.to_vec(), env, terminal };
    let signals = Signals::new().context("cannot heed signals")?;
    let session = match &args.of {
        Target::Lrp { process_guid, index: Some(index) } => {
            client.exec_in_lrp(process_guid, *index, &wanted).await?
        }
        Target::Task(guid) => client.exec_in_task(guid, &wanted).await?,
        Target::Lrp { index: None, .. }
        | Target::Cell(_)
        | Target::Domain(_)
        | Target::Job(_)
        | Target::Run(_) => {
            bail!("programs run in instances and tasks: write web/0 or task/GUID")
        }
    };
    // Until it is dropped, and that is before anything is said of an error.
    let _raw =
        if has_terminal { Raw::enter().context("cannot set up the terminal")? } else { None };
    if args.interactive || (has_terminal && io::stdin().is_terminal()) {
        let input = session.input.clone();
        // A read of standard input cannot be ended, so nobody waits for this thread.
        std::thread::Builder::new()
            .name("stdin".to_owned())
            .spawn(move || pass_on(&input))
            .context("cannot read standard input")?;
    } else {
        session.input.send(b"").await;
    }
    follow(session, path, has_terminal, signals).await
}

/// As it was asked for, else where somebody sits at a terminal.
fn has_terminal(args: &Exec) -> bool {
    let sits = || io::stdin().is_terminal() && io::stdout().is_terminal();
    args.tty || (!args.no_tty && sits())
}

/// What we return when it could not be run.
pub(super) fn failed(error: &anyhow::Error) -> u8 {
    let problem = error.downcast_ref().and_then(Error::problem);
    match problem.map(|problem| problem.code.as_str()) {
        Some("program_not_found") => NOT_FOUND,
        Some("unstartable") => NOT_EXECUTABLE,
        Some(_) | None => FAILED,
    }
}

/// What concerns us while a program runs.
#[derive(Debug)]
struct Signals {
    resized: Signal,
    ended: [(Signal, u8); 4],
}

impl Signals {
    fn new() -> io::Result<Self> {
        let end = |kind: SignalKind| {
            let number = u8::try_from(kind.as_raw_value()).unwrap_or(0);
            signal(kind).map(|signal| (signal, 128 + number))
        };
        let ended = [
            end(SignalKind::hangup())?,
            end(SignalKind::interrupt())?,
            end(SignalKind::quit())?,
            end(SignalKind::terminate())?,
        ];
        Ok(Self { resized: signal(SignalKind::window_change())?, ended })
    }

    /// Waits for one that ends us: what we return then.
    async fn end(ended: &mut [(Signal, u8); 4]) -> u8 {
        let [(hangup, a), (interrupt, b), (quit, c), (terminate, d)] = ended;
        tokio::select! {
            biased;
            _ = hangup.recv() => *a,
            _ = interrupt.recv() => *b,
            _ = quit.recv() => *c,
            _ = terminate.recv() => *d,
        }
    }
}

async fn follow(
    mut session: Session,
    path: &str,
    has_terminal: bool,
    signals: Signals,
) -> anyhow::Result<u8> {
    let Signals { mut resized, mut ended } = signals;
    let (input, mut size) = (session.input.clone(), None);
    loop {
        let told = tokio::select! {
            biased;
            code = Signals::end(&mut ended) => return Ok(code),
            Some(()) = resized.recv(), if has_terminal => {
                size = Some(raw::size());
                continue;
            }
            // Beside what is read: nothing is sent while nobody reads.
            () = resize(&input, size), if size.is_some() => {
                size = None;
                continue;
            }
            told = session.next() => told?,
        };
        match told {
            Some(Told::Out(bytes)) => write(io::stdout().lock(), &bytes)?,
            Some(Told::Err(bytes)) => write(io::stderr().lock(), &bytes)?,
            Some(Told::End(end)) => {
                if let Some(trouble) = end.trouble {
                    bail!("`{path}` did not end by itself: {trouble}");
                }
                let code = end.code.unwrap_or_else(|| 128 + end.signal.unwrap_or(0));
                return Ok(u8::try_from(code).unwrap_or(u8::MAX));
            }
            None => bail!("`{path}` was cut short: nobody can tell how it ended"),
        }
    }
}

async fn resize(input: &Input, size: Option<Size>) {
    if let Some(size) = size {
        // Who takes nothing any more has ended, which is told.
        let _taken = input.resize(size).await;
    }
}

fn write(mut to: impl io::Write, bytes: &[u8]) -> anyhow::Result<()> {
    to.write_all(bytes).and_then(|()| to.flush()).context("cannot write what it writes")
}

fn pass_on(input: &Input) {
    let mut bytes = vec![0; PIECE];
    loop {
        // What cannot be read is at its end.
        let length = io::stdin().lock().read(&mut bytes).unwrap_or(0);
        if !input.blocking_send(&bytes[..length]) || length == 0 {
            return;
        }
    }
}
