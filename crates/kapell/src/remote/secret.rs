//! `kapell secret`

use std::fs;
use std::io::{self, IsTerminal as _, Read as _};
use std::path::Path;

use anyhow::{Context as _, bail};
use kapell_api::client::{Client, Error};
use kapell_api::v1::SecretView;
use kapell_core::secret::{LARGEST, Secret};
use nix::sys::termios::{LocalFlags, SetArg, Termios, tcgetattr, tcsetattr};

use super::args::{Listing, SecretCommand, SecretSet};
use super::show::{self, Text, View, to_value};
use super::table::{Cell, Column, Table, column};
use super::text::{age, now};
use crate::say;

const LIST: &[Column] = &[
    column("SECRET", 9, 16),
    column("DOMAIN", 6, 9),
    column("VERSION", 7, 7),
    column("CHANGED", 4, 7),
];
const CTRL_C: u8 = 3;
const CTRL_D: u8 = 4;
const BACKSPACE: [u8; 2] = [8, 127];

pub(crate) async fn run(command: SecretCommand, client: &Client) -> anyhow::Result<u8> {
    match command {
        SecretCommand::Set(SecretSet { name, domain, from_file }) => {
            let value = read(from_file.as_deref())?;
            let SecretView { version, .. } = client.set_secret(&domain, &name, &value).await?;
            say(&format!("secret {name} of domain {domain} is set (version {version})\n"));
            Ok(0)
        }
        SecretCommand::List { domain, show } => {
            let domain = domain.as_deref();
            show::list(client, Listing { show, watch: false }, async |client| {
                all(client, domain).await
            })
            .await
        }
        SecretCommand::Remove { name, domain } => {
            client.remove_secret(&domain, &name).await?;
            say(&format!("secret {name} of domain {domain} is removed\n"));
            Ok(0)
        }
    }
}

async fn all(client: &Client, domain: Option<&str>) -> Result<View, Error> {
    let listed = client.secrets(domain).await?;
    let now = now();
    let row = |secret: &SecretView| -> Vec<Cell> {
        vec![
            secret.name.as_str().into(),
            secret.domain.as_str().into(),
            secret.version.to_string().into(),
            age(secret.changed_at, now).into(),
        ]
    };
    let rows = listed.iter().map(row).collect();
    let table = Table { columns: LIST, rows, nothing: "no secrets" };
    Ok(View { text: Text::Table(table), value: to_value(&listed), event_id: None })
}

/// The value: never an argument, which everybody on this machine could see.
fn read(file: Option<&Path>) -> anyhow::Result<Secret> {
    let (mut bytes, from) = match file {
        Some(file) => {
            let from = format!("`{}`", file.display());
            (fs::read(file).with_context(|| format!("cannot read {from}"))?, from)
        }
        None if io::stdin().is_terminal() => (ask()?, "what was typed".to_owned()),
        None => {
            let mut bytes = Vec::new();
            // One byte more tells that it is too long.
            let most = LARGEST as u64 + 2;
            io::stdin().take(most).read_to_end(&mut bytes).context("cannot read standard input")?;
            (bytes, "standard input".to_owned())
        }
    };
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Secret::new(text)),
        Err(_) => bail!("{from} is not text in UTF-8"),
    }
}

/// A terminal that does not show what is typed, until this is dropped.
struct Quiet(Termios);

impl Quiet {
    fn begin() -> nix::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut quiet = before.clone();
        // We heed Ctrl-C ourselves: the terminal must not stay quiet.
        quiet.local_flags.remove(LocalFlags::ECHO | LocalFlags::ICANON | LocalFlags::ISIG);
        tcsetattr(io::stdin(), SetArg::TCSAFLUSH, &quiet)?;
        Ok(Self(before))
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        let _best_effort = tcsetattr(io::stdin(), SetArg::TCSAFLUSH, &self.0);
        say("\n");
    }
}

fn ask() -> anyhow::Result<Vec<u8>> {
    let quiet = Quiet::begin().context("cannot ask without showing what is typed")?;
    say("Value (it is not shown): ");
    let mut typed = Vec::new();
    let mut letter = [0];
    loop {
        if io::stdin().read(&mut letter).context("cannot read what is typed")? == 0 {
            break;
        }
        match letter[0] {
            b'\n' | b'\r' | CTRL_D => break,
            CTRL_C => bail!("nothing was set"),
            each if BACKSPACE.contains(&each) => {
                // A letter may have several bytes, of which only the first begins otherwise.
                while typed.pop().is_some_and(|byte: u8| byte & 0xC0 == 0x80) {}
            }
            each => typed.push(each),
        }
    }
    drop(quiet);
    Ok(typed)
}
