//! Events without end: over lost connections and changes of the leader.

use std::time::Duration;

use kapell_api::client::{Client, Error, Events};
use kapell_api::v1::EventView;
use tokio::time::sleep;

/// Between two tries to be told again.
const PAUSE: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(crate) struct Follower {
    client: Client,
    stream: Option<Events>,
    after: Option<String>,
}

impl Follower {
    /// Everything after an event, or from the moment that it is first asked.
    pub(crate) fn new(client: &Client, after: Option<String>) -> Self {
        Self { client: client.clone(), stream: None, after }
    }

    /// Begins now, so that nothing of what happens next is missed.
    pub(crate) async fn begin(client: &Client) -> Result<Self, Error> {
        let stream = Some(client.events(None).await?);
        Ok(Self { client: client.clone(), stream, after: None })
    }

    /// The next event. A host that is gone is waited for; nothing is lost if this is dropped.
    pub(crate) async fn next(&mut self) -> Result<EventView, Error> {
        loop {
            let stream = match &mut self.stream {
                Some(stream) => stream,
                None => match self.client.events(self.after.as_deref()).await {
                    Ok(stream) => self.stream.insert(stream),
                    Err(error) if error.passes() => {
                        sleep(PAUSE).await;
                        continue;
                    }
                    Err(error) => return Err(error),
                },
            };
            match stream.next().await {
                Ok(Some(event)) => {
                    self.after = Some(event.id.clone());
                    return Ok(event);
                }
                Ok(None) => {}
                Err(error) if error.passes() => {}
                Err(error) => return Err(error),
            }
            self.stream = None;
            sleep(PAUSE).await;
        }
    }
}
