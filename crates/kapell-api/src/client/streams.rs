//! Answers that go on: events and logs.

use std::collections::VecDeque;
use std::fmt;

use bytes::Bytes;
use kapell_core::log::{Decoder, Frame};
use serde_json::Value;

use super::connection::Download;
use super::{Error, Parser};
use crate::v1::EventView;

/// An answer that goes on, and who gives it.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) url: String,
    pub(super) call: String,
    pub(super) download: Download,
}

impl Source {
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        self.download.chunk().await.map_err(|error| Error::NoAnswer {
            url: self.url.clone(),
            call: self.call.clone(),
            source: error.into(),
        })
    }

    pub(super) fn garbled(&self, what: &dyn fmt::Display) -> Error {
        Error::Protocol { url: self.url.clone(), what: what.to_string() }
    }
}

/// What happens on the board, as it happens.
#[derive(Debug)]
pub struct Events {
    source: Source,
    parser: Parser,
    ready: VecDeque<super::Message>,
}

impl Events {
    pub(super) fn new(source: Source) -> Self {
        Self { source, parser: Parser::default(), ready: VecDeque::new() }
    }

    /// The next event; none when the host ends the stream. Nothing is lost if this is dropped while it waits.
    pub async fn next(&mut self) -> Result<Option<EventView>, Error> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                return self.view(message).map(Some);
            }
            let Some(bytes) = self.source.chunk().await? else { return Ok(None) };
            let messages = self.parser.push(&bytes).map_err(|error| self.source.garbled(&error))?;
            self.ready.extend(messages);
        }
    }

    /// The data is the event, or the event with its id and name around it.
    fn view(&self, message: super::Message) -> Result<EventView, Error> {
        let unreadable = |error| {
            self.source.garbled(&format!("the event {} cannot be read: {error}", message.id))
        };
        let data: Value = serde_json::from_str(&message.data).map_err(unreadable)?;
        let is_view = data.get("id").is_some() && data.get("name").is_some();
        if is_view {
            return serde_json::from_value(data).map_err(unreadable);
        }
        let event = if message.name == "gap" || data.is_null() {
            None
        } else {
            Some(serde_json::from_value(data).map_err(unreadable)?)
        };
        Ok(EventView { id: message.id, name: message.name, event })
    }
}

/// What a container wrote, as it comes.
#[derive(Debug)]
pub struct Logs {
    source: Source,
    decoder: Decoder,
}

impl Logs {
    pub(super) fn new(source: Source) -> Self {
        Self { source, decoder: Decoder::default() }
    }

    /// The next frame; none at the end. Nothing is lost if this is dropped while it waits.
    pub async fn next(&mut self) -> Result<Option<Frame>, Error> {
        loop {
            let frame = self.decoder.next_frame().map_err(|error| self.source.garbled(&error))?;
            if frame.is_some() {
                return Ok(frame);
            }
            let Some(bytes) = self.source.chunk().await? else { return Ok(None) };
            self.decoder.push(&bytes);
        }
    }
}
