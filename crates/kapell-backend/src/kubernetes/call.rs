//! One call: its turn, its tries, its time.

use std::time::Duration;

use hyper::Request;
use kapell_core::kubernetes::Course;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep, timeout};

use super::{Calls, Client, Error, Lines, TRY};

/// Before the second try, and at most before a later one.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// While a server that has too much to do does not say for how long.
const RELIEF: Duration = Duration::from_secs(1);

/// How often one call was tried, and what is known of those tries.
struct Tries {
    end: Instant,
    pause: Duration,
    /// The last one that may have been heard.
    in_doubt: Option<Error>,
}

impl Client {
    /// Asks until there is an answer that counts, or it has taken too long.
    pub(super) async fn call<T: DeserializeOwned>(
        &self,
        what: &str,
        request: &Request<Vec<u8>>,
        calls: &Calls,
    ) -> Result<T, Error> {
        let mut tries = self.tries();
        loop {
            self.turn(&mut tries, calls).await;
            let error = match timeout(TRY, self.inner.request::<T>(request.clone())).await {
                Ok(Ok(answer)) => {
                    self.limiter.fine();
                    return Ok(answer);
                }
                Ok(Err(error)) => Error::of(what, &error),
                Err(_) => Error::silent(what, TRY),
            };
            self.again(&mut tries, error).await?;
        }
    }

    /// The same for an answer that comes bit by bit.
    pub(super) async fn stream(
        &self,
        what: &str,
        request: &Request<Vec<u8>>,
        calls: &Calls,
    ) -> Result<Lines, Error> {
        let mut tries = self.tries();
        loop {
            self.turn(&mut tries, calls).await;
            let error = match timeout(TRY, self.inner.request_stream(request.clone())).await {
                Ok(Ok(body)) => {
                    self.limiter.fine();
                    return Ok(Lines::new(what, body));
                }
                Ok(Err(error)) => Error::of(what, &error),
                Err(_) => Error::silent(what, TRY),
            };
            self.again(&mut tries, error).await?;
        }
    }

    fn tries(&self) -> Tries {
        Tries { end: Instant::now() + self.pace.patience, pause: PAUSE.0, in_doubt: None }
    }

    /// Patience is for the cluster: the wait for a turn, which is our own doing, does not use it up.
    async fn turn(&self, tries: &mut Tries, calls: &Calls) {
        let asked = Instant::now();
        self.limiter.pass().await;
        tries.end += asked.elapsed();
        calls.add();
    }

    /// Waits until it is time for another try, or gives up.
    async fn again(&self, tries: &mut Tries, error: Error) -> Result<(), Error> {
        if let Some(Course::Slower { after }) = error.course() {
            self.limiter.slower(after.unwrap_or(RELIEF));
        }
        if !error.is_worth_another_try() {
            // That this try came to nothing says nothing about the one before.
            return Err(if tries.in_doubt.is_some() { error.after_doubt() } else { error });
        }
        tracing::debug!(%error, "a cluster is asked again");
        if error.is_in_doubt() {
            tries.in_doubt = Some(error.clone());
        }
        if Instant::now() + tries.pause >= tries.end {
            // One that may have been heard counts more than one that was not.
            return Err(tries.in_doubt.take().unwrap_or(error));
        }
        sleep(tries.pause).await;
        tries.pause = (tries.pause * 2).min(PAUSE.1);
        Ok(())
    }
}
