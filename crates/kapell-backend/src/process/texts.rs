//! Texts that each end with a NUL byte, as a shim reads them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use crate::containers::Error;

#[derive(Debug, Default)]
pub(crate) struct Texts(pub(crate) Vec<u8>);

impl Texts {
    /// `what` is named if it cannot be written.
    pub(crate) fn push(&mut self, what: &str, text: impl AsRef<OsStr>) -> Result<(), Error> {
        let bytes = text.as_ref().as_bytes();
        if bytes.contains(&0) {
            return Err(Error::Unstartable(format!("{what} of the container holds a NUL byte")));
        }
        self.0.extend_from_slice(bytes);
        self.0.push(0);
        Ok(())
    }

    /// Nothing is an empty text.
    pub(crate) fn number(&mut self, value: Option<u64>) {
        if let Some(value) = value {
            self.0.extend_from_slice(value.to_string().as_bytes());
        }
        self.0.push(0);
    }

    pub(crate) fn path(&mut self, what: &str, path: Option<&OsStr>) -> Result<(), Error> {
        self.push(what, path.unwrap_or_default())
    }

    /// This word if it is so.
    pub(crate) fn flag(&mut self, word: &str, is_so: bool) {
        if is_so {
            self.0.extend_from_slice(word.as_bytes());
        }
        self.0.push(0);
    }

    pub(crate) fn list<T: AsRef<OsStr>>(
        &mut self,
        what: &str,
        texts: impl ExactSizeIterator<Item = T>,
    ) -> Result<(), Error> {
        self.number(Some(texts.len() as u64));
        for text in texts {
            self.push(what, text)?;
        }
        Ok(())
    }
}

/// Reads them again. None stands for damage.
#[derive(Debug)]
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let end = self.0.iter().position(|byte| *byte == 0)?;
        let (text, rest) = (&self.0[..end], &self.0[end + 1..]);
        self.0 = rest;
        Some(text)
    }

    pub(crate) fn text(&mut self) -> Option<String> {
        Some(String::from_utf8_lossy(self.bytes()?).into_owned())
    }

    pub(crate) fn path(&mut self) -> Option<PathBuf> {
        Some(PathBuf::from(OsStr::from_bytes(self.bytes()?)))
    }

    /// How many there are, then as many.
    pub(crate) fn list(&mut self) -> Option<Vec<&'a OsStr>> {
        let Maybe(count) = self.number::<usize>()?;
        (0..count?).map(|_| self.bytes().map(OsStr::from_bytes)).collect()
    }

    pub(crate) fn number<T: std::str::FromStr>(&mut self) -> Option<Maybe<T>> {
        let text = self.text()?;
        if text.is_empty() {
            return Some(Maybe(None));
        }
        Some(Maybe(Some(text.parse().ok()?)))
    }
}

/// What was written, be it nothing.
#[derive(Debug)]
pub(crate) struct Maybe<T>(pub(crate) Option<T>);
