//! Takes out of a log what would command the terminal.

/// Where in an escape sequence the next byte is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Place {
    #[default]
    Text,
    /// After ESC.
    Escape,
    /// Within `ESC [ … letter`.
    Control,
    /// Within a text such as a title, which ends with BEL or ESC \.
    Title,
    /// After ESC within such a text.
    Ending,
    /// After the byte that begins a control character in UTF-8.
    Upper,
}

/// Filters bytes as they come, in whatever pieces.
#[derive(Debug, Default)]
pub(crate) struct Filter {
    place: Place,
}

impl Filter {
    pub(crate) fn pass(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        for &byte in bytes {
            self.place = self.step(byte, &mut out);
        }
        out
    }

    fn step(&self, byte: u8, out: &mut Vec<u8>) -> Place {
        match self.place {
            Place::Text => text(byte, out),
            // U+0080 to U+009F: some terminals take them for ESC and a letter.
            Place::Upper => match byte {
                0x80..=0x9f => after_escape(byte - 0x40),
                byte => {
                    out.push(0xc2);
                    text(byte, out)
                }
            },
            // A line that ends within a sequence is a line.
            Place::Escape | Place::Control if byte == b'\n' => text(byte, out),
            Place::Escape => after_escape(byte),
            Place::Control => match byte {
                0x1b => Place::Escape,
                0x20..=0x3f => Place::Control,
                _ => Place::Text,
            },
            Place::Title => match byte {
                0x07 => Place::Text,
                0x1b => Place::Ending,
                _ => Place::Title,
            },
            Place::Ending if byte == 0x1b => Place::Escape,
            Place::Ending => Place::Text,
        }
    }
}

fn text(byte: u8, out: &mut Vec<u8>) -> Place {
    match byte {
        0x1b => return Place::Escape,
        0xc2 => return Place::Upper,
        b'\n' | b'\t' | b' '..=0x7e | 0x80.. => out.push(byte),
        0..=0x1f | 0x7f => {}
    }
    Place::Text
}

const fn after_escape(byte: u8) -> Place {
    match byte {
        b'[' => Place::Control,
        b']' | b'P' | b'X' | b'^' | b'_' => Place::Title,
        // Between ESC and its last byte there may be others.
        0x1b | 0x20..=0x2f => Place::Escape,
        _ => Place::Text,
    }
}
