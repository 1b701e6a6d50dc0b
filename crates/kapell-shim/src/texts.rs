//! What the agent writes: texts that each end with a NUL byte, one after the other.

use std::ffi::CStr;

use crate::number;

pub(crate) struct Texts<'a>(pub(crate) &'a [u8]);

pub(crate) struct Damaged;

impl<'a> Texts<'a> {
    pub(crate) fn next(&mut self) -> Option<&'a CStr> {
        let text = CStr::from_bytes_until_nul(self.0).ok()?;
        self.0 = &self.0[text.to_bytes_with_nul().len()..];
        Some(text)
    }

    /// Nothing where the text is empty.
    pub(crate) fn optional(&mut self) -> Result<Option<&'a CStr>, Damaged> {
        Ok(Some(self.next().ok_or(Damaged)?).filter(|text| !text.is_empty()))
    }

    pub(crate) fn number(&mut self) -> Option<u64> {
        number::parse(self.next()?.to_bytes())
    }

    /// A number, or nothing where the text is empty.
    pub(crate) fn optional_number(&mut self) -> Result<Option<u64>, Damaged> {
        let Some(text) = self.optional()? else { return Ok(None) };
        number::parse(text.to_bytes()).map(Some).ok_or(Damaged)
    }

    /// How many there are, then as many.
    pub(crate) fn list(&mut self) -> Option<Vec<&'a CStr>> {
        (0..self.number()?).map(|_| self.next()).collect()
    }
}
