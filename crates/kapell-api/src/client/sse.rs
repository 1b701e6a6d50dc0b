//! Server-sent events, from bytes as they come.

/// The longest event that is taken.
const LONGEST: usize = 4 << 20;

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Message {
    /// The last id that the stream has given.
    pub id: String,
    /// `message` if the stream gives no name.
    pub name: String,
    pub data: String,
}

/// An event is longer than anybody would send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event is longer than {LONGEST} bytes")]
pub struct TooLong;

/// Takes bytes and gives events, by the rules of the HTML standard.
#[derive(Debug, Default)]
pub struct Parser {
    line: Vec<u8>,
    /// The last byte was a carriage return: a line feed after it ends no further line.
    after_return: bool,
    began: bool,
    id: String,
    name: String,
    data: String,
}

impl Parser {
    /// Takes more bytes, and gives the events that end in them.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<Message>, TooLong> {
        let mut messages = Vec::new();
        for &byte in bytes {
            let was_return = std::mem::replace(&mut self.after_return, byte == b'\r');
            match byte {
                b'\n' if was_return => {}
                b'\n' | b'\r' => messages.extend(self.end_line()),
                byte => self.line.push(byte),
            }
            if self.line.len() + self.data.len() > LONGEST {
                return Err(TooLong);
            }
        }
        Ok(messages)
    }

    fn end_line(&mut self) -> Option<Message> {
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        let first = !std::mem::replace(&mut self.began, true);
        let line = line.strip_prefix('\u{feff}').filter(|_| first).unwrap_or(&line);
        if line.is_empty() {
            return self.end_event();
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" if !value.contains('\0') => value.clone_into(&mut self.id),
            "event" => value.clone_into(&mut self.name),
            "data" => {
                self.data.push_str(value);
                self.data.push('\n');
            }
            // Comments have no name; all others mean nothing to us.
            _ => {}
        }
        None
    }

    fn end_event(&mut self) -> Option<Message> {
        let name = std::mem::take(&mut self.name);
        let mut data = std::mem::take(&mut self.data);
        // What has no data is no event.
        data.pop()?;
        let name = if name.is_empty() { "message".to_owned() } else { name };
        Some(Message { id: self.id.clone(), name, data })
    }
}
