//! What a program is to know and nobody else. The agent hands it over in memory; it never lies in a file.

use std::ffi::{CStr, c_char, c_int};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{FromRawFd as _, OwnedFd};

use crate::mask::Mask;
use crate::spec::Spec;
use crate::sys;
use crate::texts::Texts;

/// Where a launcher finds its document. The number is `kapell-backend`'s too.
pub(crate) const DOCUMENT: c_int = 100;

/// Variables as `NAME=value`, and what a launcher reads, if there is one.
#[derive(Default)]
pub(crate) struct Hidden {
    variables: Vec<&'static CStr>,
    document: &'static [u8],
}

impl Hidden {
    /// Reads all of it, and closes the descriptor that was inherited. None if it is damaged.
    #[expect(unsafe_code, reason = "takes a descriptor that was inherited")]
    pub(crate) fn read(fd: c_int) -> Option<Self> {
        // SAFETY: nobody else in this process knows of it.
        let mut file = unsafe { File::from_raw_fd(fd) };
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).ok()?;
        // Kept as long as we live, and we are but one.
        Self::parse(bytes.leak())
    }

    /// How many variables there are, as many, then the document.
    fn parse(bytes: &'static [u8]) -> Option<Self> {
        let mut texts = Texts(bytes);
        let variables = texts.list()?;
        Some(Self { variables, document: texts.0 })
    }

    /// Replaces the values in a stream of output.
    pub(crate) fn mask(&self) -> Option<Mask> {
        let value = |variable: &&'static CStr| {
            let text: &'static [u8] = variable.to_bytes();
            let end = text.iter().position(|byte| *byte == b'=')?;
            Some(&text[end + 1..])
        };
        Mask::new(self.variables.iter().filter_map(value))
    }

    /// Gives a program its variables, or a launcher its document.
    pub(crate) fn add_to(&self, spec: &mut Spec<'_>) -> Result<(), i32> {
        if spec.pid_file.is_none() {
            // The null pointer stays at the end.
            let end: Option<*const c_char> = spec.environment.pop();
            spec.environment.extend(self.variables.iter().map(|text| text.as_ptr()));
            spec.environment.extend(end);
        } else if !self.document.is_empty() {
            let mut file = File::from(sys::memory_file(c"kapell-document")?);
            let written = file.write_all(self.document);
            written.map_err(|error| error.raw_os_error().unwrap_or(libc::EIO))?;
            spec.document = Some(OwnedFd::from(file));
        }
        Ok(())
    }
}
