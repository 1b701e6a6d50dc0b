//! Replaces secrets in what a program writes, wherever they are cut by how it is read.

/// What stands in the place of a secret.
const MARK: &[u8] = b"***";
/// Shorter values are part of too much that is none.
const SHORTEST: usize = 4;
/// The same for a line of a value that has several.
const SHORTEST_LINE: usize = 8;

pub(crate) struct Mask {
    /// The longest first: where several fit, that is the one which is meant.
    texts: Vec<Vec<u8>>,
    /// Which bytes they begin with.
    begins: [bool; 256],
    /// What may be the beginning of one.
    held: Vec<u8>,
}

enum Look {
    Is(usize),
    /// More must come before it is known.
    MayBe,
    IsNot,
}

impl Mask {
    /// None if there is nothing to replace.
    pub(crate) fn new<'a>(values: impl Iterator<Item = &'a [u8]>) -> Option<Self> {
        let mut texts: Vec<Vec<u8>> = Vec::new();
        for value in values {
            let is_long = value.contains(&b'\n');
            let lines = value.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
            let lines = lines.filter(|line| is_long && line.len() >= SHORTEST_LINE);
            let whole = Some(value).filter(|value| value.len() >= SHORTEST);
            texts.extend(whole.into_iter().chain(lines).map(<[u8]>::to_vec));
        }
        texts.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
        texts.dedup();
        let mut begins = [false; 256];
        for first in texts.iter().filter_map(|text| text.first()) {
            begins[usize::from(*first)] = true;
        }
        (!texts.is_empty()).then_some(Self { texts, begins, held: Vec::new() })
    }

    /// Takes what was read, and gives what may be shown of it and of what was held back before.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(bytes);
        self.release(false)
    }

    /// Nothing more comes: gives the rest.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        self.release(true)
    }

    fn release(&mut self, is_end: bool) -> Vec<u8> {
        let mut shown = Vec::with_capacity(self.held.len());
        let mut at = 0;
        while let Some(first) = self.held.get(at) {
            let found = if self.begins[usize::from(*first)] {
                self.look(&self.held[at..], is_end)
            } else {
                Look::IsNot
            };
            match found {
                Look::Is(length) => {
                    shown.extend_from_slice(MARK);
                    at += length;
                }
                Look::MayBe => break,
                Look::IsNot => {
                    shown.push(*first);
                    at += 1;
                }
            }
        }
        self.held.drain(..at);
        shown
    }

    fn look(&self, rest: &[u8], is_end: bool) -> Look {
        for text in &self.texts {
            if rest.starts_with(text) {
                return Look::Is(text.len());
            }
            if !is_end && text.starts_with(rest) {
                return Look::MayBe;
            }
        }
        Look::IsNot
    }
}
