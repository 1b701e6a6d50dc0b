use anyhow::Context as _;
use kapell_backend::exit::exit_now;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::last_word;

/// A word from outside to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    Terminate,
    Interrupt,
}

impl Stop {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Terminate => "SIGTERM",
            Self::Interrupt => "SIGINT",
        }
    }

    /// The second word: whoever sends it does not want to wait.
    pub(crate) fn exit_at_once(self, command: &str) -> ! {
        last_word(format!("{command}: {} again: ended at once\n", self.name()));
        exit_now(match self {
            Self::Terminate => 143,
            Self::Interrupt => 130,
        })
    }
}

pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    pub(crate) fn catch() -> anyhow::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate()).context("cannot catch SIGTERM")?,
            interrupt: signal(SignalKind::interrupt()).context("cannot catch SIGINT")?,
        })
    }

    pub(crate) async fn next(&mut self) -> Stop {
        tokio::select! {
            biased;
            _ = self.terminate.recv() => Stop::Terminate,
            _ = self.interrupt.recv() => Stop::Interrupt,
        }
    }
}
