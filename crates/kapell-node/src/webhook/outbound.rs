//! One call to a place outside, by the guarded client that callbacks go by.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use kapell_api::client::{Egress, EgressError, Outgoing};
use kapell_core::causes::chain;
use kapell_core::constraint::delivery::{Answer, http_date, retry_after};
use kapell_core::seams::Clock;
use url::Url;

/// How long a call may take whose sender does not say.
const LIMIT: Duration = Duration::from_secs(30);
/// So often a call may be sent elsewhere.
const MOST_HOPS: usize = 3;

/// A call as it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    pub method: &'static str,
    pub url: String,
    /// For whoever gets the message.
    pub headers: Vec<(String, String)>,
    /// For the place of `url` alone: they may be secrets.
    pub private: Vec<(String, String)>,
    pub body: Bytes,
    pub limit: Duration,
    /// Whether 307 and 308 are followed.
    pub follow: bool,
}

/// The way out.
#[async_trait]
pub trait Outbound: fmt::Debug + Send + Sync {
    /// Calls. Of the answer nothing but its beginning is read. Whoever calls gives up by dropping the future.
    async fn send(&self, sent: &Sent) -> Answer;
}

/// Calls over HTTP. Every address is looked at before it is called, those of redirects too.
#[derive(Debug, Clone)]
pub struct HttpOutbound {
    egress: Egress,
    clock: Arc<dyn Clock>,
}

impl HttpOutbound {
    /// `ca` names whose certificates are trusted; without it, those that the system trusts.
    pub const fn new(ca: Option<PathBuf>, clock: Arc<dyn Clock>) -> Self {
        Self { egress: Egress { ca, limit: LIMIT }, clock }
    }

    async fn call(&self, sent: &Sent, url: &Url, private: bool) -> Result<Reached, Answer> {
        let mut headers = sent.headers.clone();
        if private {
            headers.extend(sent.private.iter().cloned());
        }
        let (method, limit) = (sent.method, Some(sent.limit));
        let outgoing =
            Outgoing { method, url: url.as_str(), headers: &headers, body: &sent.body, limit };
        let received = self.egress.send(outgoing).await.map_err(|error| match error {
            EgressError::BadUrl(_) => Answer::Refused("its URL cannot be called".to_owned()),
            EgressError::BadHeader(_) | EgressError::Forbidden { .. } => {
                Answer::Refused(chain(&error))
            }
            EgressError::Tls(_)
            | EgressError::Unreachable { .. }
            | EgressError::NoAnswer { .. } => Answer::None(chain(&error)),
        })?;
        let status = received.status().as_u16();
        // By the clock of whoever answers, if it says what that shows.
        let now = received.header("date").and_then(http_date);
        let now = now.unwrap_or_else(|| self.clock.wall());
        Ok(Reached {
            status,
            retry_after: received.header("retry-after").and_then(|it| retry_after(it, now)),
            location: received.header("location").map(str::to_owned),
        })
    }
}

/// What an answer begins with.
struct Reached {
    status: u16,
    retry_after: Option<Duration>,
    location: Option<String>,
}

#[async_trait]
impl Outbound for HttpOutbound {
    async fn send(&self, sent: &Sent) -> Answer {
        let Ok(mut url) = Url::parse(&sent.url) else {
            return Answer::Refused("its URL cannot be read".to_owned());
        };
        let origin = url.origin();
        for _ in 0..=MOST_HOPS {
            let reached = match self.call(sent, &url, url.origin() == origin).await {
                Ok(reached) => reached,
                Err(answer) => return answer,
            };
            let Reached { status, retry_after, location } = reached;
            // Only these two say that the same is to be sent there.
            let moved = location.filter(|_| sent.follow && matches!(status, 307 | 308));
            let Some(location) = moved else { return Answer::Status { status, retry_after } };
            match url.join(&location) {
                Ok(next) if url.scheme() == "https" && next.scheme() != "https" => {
                    return Answer::Refused(
                        "it redirects from https:// to where anybody can read along".to_owned(),
                    );
                }
                Ok(next) => url = next,
                Err(_) => return Answer::Refused("it redirects to what is no URL".to_owned()),
            }
        }
        Answer::Refused(format!("it redirects more than {MOST_HOPS} times"))
    }
}
