//! Hosts that do not answer: how long they are waited for, and who is told.

use std::time::Duration;

use kapell_api::client::Error as Trouble;
use kapell_backend::executor::{Error, Output};
use kapell_core::causes::chain;
use kapell_core::workflow::show_duration;
use tokio::time::{Instant, sleep};

/// Between two tries.
const PAUSE: Duration = Duration::from_millis(250);
/// A change of the leader takes moments; what takes longer is told.
const UNTOLD: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(super) struct Outage {
    limit: Duration,
    since: Option<Instant>,
    told: bool,
}

impl Outage {
    pub(super) const fn new(limit: Duration) -> Self {
        Self { limit, since: None, told: false }
    }

    /// Waits before the next try. An error if this is no outage, or one that has lasted too long.
    pub(super) async fn wait(
        &mut self,
        trouble: &Trouble,
        output: &dyn Output,
    ) -> Result<(), Error> {
        if !trouble.passes() {
            return Err(Error::Elsewhere { reason: words(trouble) });
        }
        let elapsed = self.since.get_or_insert_with(Instant::now).elapsed();
        let limit = show_duration(self.limit);
        if elapsed >= self.limit {
            let reason = format!("no host answered for {limit}: {}", words(trouble));
            return Err(Error::Elsewhere { reason });
        }
        if elapsed >= UNTOLD && !self.told {
            self.told = true;
            let trouble = words(trouble);
            output.remark(&format!("{trouble}; waiting for at most {limit} (host_patience)"));
        }
        sleep(PAUSE).await;
        Ok(())
    }

    /// There was an answer.
    pub(super) fn is_over(&mut self, output: &dyn Output) {
        if self.told {
            output.remark("a host answers again");
        }
        (self.since, self.told) = (None, false);
    }
}

/// What is wrong, with its cause, for people who run a workflow.
pub(super) fn words(trouble: &Trouble) -> String {
    let text = match trouble {
        Trouble::Unreachable { url, .. } => format!("no host answers at {url}"),
        Trouble::BadUrl { .. }
        | Trouble::BadToken
        | Trouble::Insecure { .. }
        | Trouble::Tls(_)
        | Trouble::NoAnswer { .. }
        | Trouble::Problem { .. }
        | Trouble::Protocol { .. } => trouble.to_string(),
    };
    match std::error::Error::source(trouble) {
        Some(cause) => format!("{text}: {}", chain(cause)),
        None => text,
    }
}
