//! What is sent again, when, and until when.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::SdkError;
use tokio::time::{Instant, sleep};

use super::failure::{Complaint, Failure};

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The attempts of one request.
#[derive(Debug)]
struct Turns {
    until: Instant,
    pause: Duration,
    /// An attempt may have been done although nobody said so.
    repeated: bool,
    /// The clock is set by the answer to a request with a wrong time: after that it is not the clock.
    is_clock_set: bool,
}

impl Turns {
    fn new(limit: Duration) -> Self {
        let until = Instant::now() + limit;
        Self { until, pause: FIRST_PAUSE, repeated: false, is_clock_set: false }
    }

    /// Waits before the next attempt; the failure itself if there is to be none.
    async fn after(&mut self, failure: Failure) -> Result<(), Failure> {
        match failure {
            Failure::Signature(_) if !self.is_clock_set => {
                self.is_clock_set = true;
                return Ok(());
            }
            Failure::Busy(_) => {}
            Failure::Broken(_) => self.repeated = true,
            Failure::Condition { found, .. } => {
                return Err(Failure::Condition { found, repeated: self.repeated });
            }
            Failure::Signature(_)
            | Failure::Denied(_)
            | Failure::Expired(_)
            | Failure::NoCredentials(_)
            | Failure::Missing(_)
            | Failure::Refused(_)
            | Failure::Silence(_)
            | Failure::Untold
            | Failure::Odd(_) => return Err(failure),
        }
        let pause = jittered(self.pause);
        // What would be sent then could not be answered in time.
        if Instant::now() + pause >= self.until {
            return Err(failure);
        }
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        sleep(pause).await;
        Ok(())
    }
}

/// Sends until there is an answer that does not pass by waiting, or no time is left.
///
/// What was turned away was not done, and is sent again. After a failure of the service nobody knows: it is sent again
/// too, and whoever hears then that a condition does not hold is told that an earlier attempt may be why.
pub(super) async fn ask<T, E, F>(limit: Duration, send: impl Fn() -> F + Send) -> Result<T, Failure>
where
    E: Complaint,
    F: Future<Output = Result<T, SdkError<E, HttpResponse>>> + Send,
{
    let mut turns = Turns::new(limit);
    loop {
        // What the SDK carries along is large.
        match Box::pin(send()).await {
            Ok(answer) => return Ok(answer),
            Err(error) => turns.after(Failure::of(error)).await?,
        }
    }
}

/// Somewhere in the upper half of it: those who were turned away together do not come back together.
pub(super) fn jittered(pause: Duration) -> Duration {
    let drawn = RandomState::new().hash_one(pause) % 1000;
    pause / 2 + pause.mul_f64(f64::from(u32::try_from(drawn).unwrap_or(0)) / 2000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_never_longer_than_it_is_said_nor_shorter_than_half() {
        let pause = Duration::from_millis(100);
        let drawn: Vec<Duration> = (0..100).map(|_| jittered(pause)).collect();
        assert!(drawn.iter().all(|it| (pause / 2..=pause).contains(it)), "{drawn:?}");
        assert!(drawn.iter().any(|it| *it != drawn[0]), "all pauses are alike");
    }
}
