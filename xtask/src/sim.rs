//! `cargo xtask sim`: simulated platforms, by seed or for a while.

use std::process::Command;

use crate::command;
use crate::error::{Error, Result};
use crate::workspace::Workspace;

/// What to simulate.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Options {
    /// One world, shown in full if so wanted.
    One { seed: u64, trace: bool },
    /// World after world.
    Many { minutes: u64, from: u64 },
}

impl Options {
    pub(crate) fn parse(words: &[&str]) -> Result<Self> {
        let (mut seed, mut minutes, mut trace) = (None, None, false);
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            if *word == "--trace" {
                trace = true;
                continue;
            }
            let value = rest.next().and_then(|value| value.parse::<u64>().ok());
            match (*word, value) {
                ("--seed", Some(value)) => seed = Some(value),
                ("--minutes", Some(value @ 1..)) => minutes = Some(value),
                ("--seed" | "--minutes", _) => {
                    return Err(Error::Usage(format!("sim: {word} needs a number")));
                }
                _ => return Err(Error::Usage(format!("sim: unknown option `{word}`"))),
            }
        }
        match (seed, minutes) {
            (seed, Some(minutes)) => Ok(Self::Many { minutes, from: seed.unwrap_or(0) }),
            (Some(seed), None) => Ok(Self::One { seed, trace }),
            (None, None) => Err(Error::Usage("sim: say --seed N or --minutes M".to_owned())),
        }
    }
}

pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    if command::succeeds(&mut program(workspace, options))? { Ok(()) } else { Err(Error::Reported) }
}

/// The simulator, built with optimization: worlds are many.
pub(crate) fn program(workspace: &Workspace, options: &Options) -> Command {
    let mut cargo = command::cargo(&workspace.root);
    cargo.args("run -q --locked --release -p kapell-sim --bin fleet-sim --".split(' '));
    match options {
        Options::One { seed, trace } => {
            cargo.args(["--seed", &seed.to_string()]).args(trace.then_some("--trace"));
        }
        Options::Many { minutes, from } => {
            cargo.args(["--minutes", &minutes.to_string(), "--from", &from.to_string()]);
        }
    }
    cargo
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_world_or_many() {
        let parse = |text: &str| Options::parse(&text.split(' ').collect::<Vec<_>>());
        assert_eq!(parse("--seed 7").unwrap(), Options::One { seed: 7, trace: false });
        assert_eq!(parse("--trace --seed 7").unwrap(), Options::One { seed: 7, trace: true });
        assert_eq!(parse("--minutes 3").unwrap(), Options::Many { minutes: 3, from: 0 });
        assert_eq!(parse("--minutes 3 --seed 9").unwrap(), Options::Many { minutes: 3, from: 9 });
        for wrong in ["--seed", "--seed x", "--minutes 0", "--trace", "--hours 1"] {
            assert!(matches!(parse(wrong), Err(Error::Usage(_))), "{wrong}");
        }
    }
}
