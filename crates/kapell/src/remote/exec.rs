//! `kapell exec`

use std::io::{self, Read as _};

use anyhow::{Context as _, bail};
use kapell_api::client::{Client, Input, Told};
use kapell_api::v1::ExecWanted;
use kapell_core::board::EnvVar;

use super::args::Exec;
use super::target::Target;

/// How much is read at once.
const PIECE: usize = 16 * 1024;

/// Returns what the program returns; 128 and its number if a signal ended it, as shells do.
pub(crate) async fn run(args: &Exec, client: &Client) -> anyhow::Result<u8> {
    let Some((path, rest)) = args.command.split_first() else { bail!("say what to run") };
    let term = std::env::var("TERM").ok().map(|value| EnvVar { name: "TERM".into(), value });
    let env = term.into_iter().collect();
    let wanted = ExecWanted { path: path.clone(), args: rest.to_vec(), env };
    let mut session = match &args.of {
        Target::Lrp { process_guid, index: Some(index) } => {
            client.exec_in_lrp(process_guid, *index, &wanted).await?
        }
        Target::Task(guid) => client.exec_in_task(guid, &wanted).await?,
        Target::Lrp { index: None, .. } | Target::Cell(_) | Target::Domain(_) => {
            bail!("programs run in instances and tasks: write web/0 or task/GUID")
        }
    };
    if args.interactive {
        let input = session.input.clone();
        // A read of standard input cannot be ended, so nobody waits for this thread.
        std::thread::Builder::new()
            .name("stdin".to_owned())
            .spawn(move || pass_on(&input))
            .context("cannot read standard input")?;
    } else {
        session.input.send(b"").await;
    }
    while let Some(told) = session.next().await? {
        match told {
            Told::Out(bytes) => write(io::stdout().lock(), &bytes)?,
            Told::Err(bytes) => write(io::stderr().lock(), &bytes)?,
            Told::End(end) => {
                if let Some(trouble) = end.trouble {
                    bail!("`{path}` did not end by itself: {trouble}");
                }
                let code = end.code.unwrap_or_else(|| 128 + end.signal.unwrap_or(0));
                return Ok(u8::try_from(code).unwrap_or(u8::MAX));
            }
        }
    }
    bail!("`{path}` was cut short: nobody can tell how it ended")
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
