use kapell_api::v1::LogFormat;
use kapell_core::log::{Decoder, Frame, Stream};
use serde_json::json;

/// Turns the frames that cells send into what was asked for.
#[derive(Debug)]
pub(in super::super) struct Formatter {
    format: LogFormat,
    decoder: Decoder,
    /// For each stream, the beginning of a character that is not whole yet.
    held: [Vec<u8>; 3],
}

impl Formatter {
    pub(in super::super) fn new(format: LogFormat) -> Self {
        Self { format, decoder: Decoder::default(), held: Default::default() }
    }

    pub(in super::super) const fn content_type(&self) -> &'static str {
        match self.format {
            LogFormat::Raw | LogFormat::Frames => "application/octet-stream",
            LogFormat::Events => "text/event-stream",
        }
    }

    /// Whether comments may stand between what it writes.
    pub(in super::super) const fn beats(&self) -> bool {
        match self.format {
            LogFormat::Raw | LogFormat::Frames => false,
            LogFormat::Events => true,
        }
    }

    pub(in super::super) const fn begin(&self) -> &'static str {
        if self.beats() { "retry: 1000\n\n" } else { "" }
    }

    /// Says that this is the end and no lost connection.
    pub(in super::super) const fn end(&self) -> &'static str {
        if self.beats() { "event: end\ndata: {}\n\n" } else { "" }
    }

    /// What comes now is another stream of frames.
    pub(super) fn restart(&mut self) {
        self.decoder = Decoder::default();
    }

    pub(in super::super) fn take(&mut self, bytes: &[u8]) -> Result<Vec<u8>, String> {
        self.decoder.push(bytes);
        let mut out = Vec::new();
        while let Some(frame) = self.decoder.next_frame().map_err(|error| error.to_string())? {
            match self.format {
                LogFormat::Events => out.extend_from_slice(self.event(&frame).as_bytes()),
                // Whole ones only: after half of one, those of the next cell could not be read.
                LogFormat::Frames => out.extend_from_slice(&frame.encode()),
                LogFormat::Raw => match frame.stream {
                    Stream::Out | Stream::Err => out.extend_from_slice(&frame.bytes),
                    // Nobody wrote it.
                    Stream::Note => {}
                },
            }
        }
        Ok(out)
    }

    fn event(&mut self, frame: &Frame) -> String {
        let held = &mut self.held[usize::from(frame.stream.to_byte() - 1)];
        held.extend_from_slice(&frame.bytes);
        let whole = held.len() - unfinished(held);
        let rest = held.split_off(whole);
        let text = String::from_utf8_lossy(held).into_owned();
        *held = rest;
        if text.is_empty() {
            return String::new();
        }
        let data = json!({ "at": frame.at, "stream": frame.stream.name(), "text": text });
        format!("data: {data}\n\n")
    }
}

/// How many bytes at the end begin a character that may still become whole.
fn unfinished(bytes: &[u8]) -> usize {
    match str::from_utf8(bytes) {
        Ok(_) => 0,
        Err(_) => (1..=bytes.len().min(3))
            .find(|&count| {
                let end = &bytes[bytes.len() - count..];
                matches!(str::from_utf8(end), Err(error) if error.valid_up_to() == 0 && error.error_len().is_none())
            })
            .unwrap_or(0),
    }
}
