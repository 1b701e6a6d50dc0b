use std::fmt;

const LONGEST: usize = 4095;
const LONGEST_PART: usize = 255;
/// Whoever removes a tree holds a descriptor for each level of it.
pub(super) const DEEPEST: usize = 256;

/// A name in a layer, relative to its root and without any part that leads elsewhere.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Name {
    /// Without slashes at the ends; empty for the root itself.
    text: Vec<u8>,
}

impl Name {
    pub(super) fn parse(raw: &[u8]) -> Result<Self, String> {
        if raw.contains(&0) {
            return Err("has a zero byte in its name".to_owned());
        }
        if raw.is_empty() {
            return Err("has no name".to_owned());
        }
        // Some builders call the root itself so.
        if raw.starts_with(b"/") && raw != b"/" {
            return Err("has an absolute name".to_owned());
        }
        let mut text = Vec::with_capacity(raw.len());
        let mut depth = 0;
        for part in raw.split(|byte| *byte == b'/') {
            match part {
                b"" | b"." => {}
                b".." => return Err("has `..` in its name".to_owned()),
                part if part.len() > LONGEST_PART => {
                    return Err(format!(
                        "has a part of more than {LONGEST_PART} bytes in its name"
                    ));
                }
                part => {
                    if depth > 0 {
                        text.push(b'/');
                    }
                    text.extend_from_slice(part);
                    depth += 1;
                }
            }
        }
        if text.len() > LONGEST || depth > DEEPEST {
            return Err(format!("has a name of more than {LONGEST} bytes or {DEEPEST} parts"));
        }
        Ok(Self { text })
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.text
    }

    /// The directory and the last part; none for the root.
    pub(super) fn split(&self) -> Option<(&[u8], &[u8])> {
        if self.text.is_empty() {
            return None;
        }
        let slash = self.text.iter().rposition(|byte| *byte == b'/');
        Some(
            slash.map_or((b"".as_slice(), &self.text), |at| {
                (&self.text[..at], &self.text[at + 1..])
            }),
        )
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", show(&self.text))
    }
}

/// A name for people: whatever it holds, it is one line.
pub(super) fn show(raw: &[u8]) -> String {
    let text = raw.escape_ascii().to_string();
    match text.char_indices().nth(200) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}
