//! What a task writes, on its way to the step.

use kapell_api::client::{Client, Error as Trouble, Logs};
use kapell_api::v1::LogQuery;
use kapell_backend::executor::{self, Output};
use kapell_core::board::TaskGuid;
use kapell_core::log::{Frame, Mark, Stream};

/// A log that is read on where it was when its connection broke.
#[derive(Debug, Default)]
pub(super) struct Log {
    open: Option<Logs>,
    mark: Mark,
    /// Whether something has come of the stream that is open, or was last.
    has_content: bool,
}

impl Log {
    /// Passes on the next frame. False at the end of the stream. Nothing is lost if this is dropped while it waits.
    pub(super) async fn pass_on(
        &mut self,
        client: &Client,
        guid: &TaskGuid,
        follow: bool,
        output: &dyn Output,
    ) -> Result<bool, Trouble> {
        let stream = match &mut self.open {
            Some(stream) => stream,
            None => {
                let query = LogQuery { follow, ..LogQuery::default() };
                let stream = client.task_logs(guid.as_str(), query).await?;
                self.mark.restart();
                self.has_content = false;
                self.open.insert(stream)
            }
        };
        match stream.next().await {
            Ok(Some(frame)) => {
                self.has_content = true;
                if self.mark.is_news(&frame) {
                    give(&frame, output);
                }
                Ok(true)
            }
            Ok(None) => {
                self.open = None;
                Ok(false)
            }
            Err(trouble) => {
                self.open = None;
                Err(trouble)
            }
        }
    }

    /// A stream that was followed ends when its container does, unless no cell had it.
    pub(super) const fn has_content(&self) -> bool {
        self.has_content
    }

    /// What is open is read no further.
    pub(super) fn close(&mut self) {
        self.open = None;
    }
}

fn give(frame: &Frame, output: &dyn Output) {
    match frame.stream {
        Stream::Out => output.take(executor::Stream::Stdout, &frame.bytes),
        Stream::Err => output.take(executor::Stream::Stderr, &frame.bytes),
        Stream::Note => output.remark(String::from_utf8_lossy(&frame.bytes).trim_end()),
    }
}
