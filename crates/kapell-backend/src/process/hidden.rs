//! What a process is to know and must not lie in a file: it is handed to its shim in memory.
//! `kapell-shim/src/hidden.rs` has the other side.

use std::fmt;
use std::fs::File;
use std::io::{self, Seek as _, Write as _};

use kapell_core::secret::Secret;
use nix::sys::memfd::{MFdFlags, memfd_create};
use zeroize::Zeroizing;

use super::spec_file::{CONTAINER_MARK, PROCESS_MARK};
use super::texts::Texts;
use crate::containers::Error;

/// The descriptor at which a launcher finds its document. The number is `kapell-shim`'s too.
const DOCUMENT: u32 = 100;

/// The name of the document for whoever was launched with it.
pub(crate) fn document() -> String {
    format!("/proc/self/fd/{DOCUMENT}")
}

/// What a launcher is told, with the secrets in it.
pub(crate) struct Document(Zeroizing<String>);

impl Document {
    pub(crate) fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }
}

impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Document(***)")
    }
}

/// The variables and the document, as a shim reads them.
pub(crate) struct Hidden(Zeroizing<Vec<u8>>);

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hidden(***)")
    }
}

impl Hidden {
    /// None if there is nothing to hide.
    pub(crate) fn new(
        secrets: &[(String, Secret)],
        document: Option<&Document>,
    ) -> Result<Option<Self>, Error> {
        if secrets.is_empty() && document.is_none() {
            return Ok(None);
        }
        let is_ours = |name: &str| name == CONTAINER_MARK || name == PROCESS_MARK;
        let bad = |name: &str| name.is_empty() || name.contains('=') || is_ours(name);
        if let Some((name, _)) = secrets.iter().find(|(name, _)| bad(name)) {
            let text = format!("`{name}` is no name for an environment variable");
            return Err(Error::Unstartable(text));
        }
        let variables: Vec<Zeroizing<String>> = secrets
            .iter()
            .map(|(name, value)| Zeroizing::new(format!("{name}={}", value.reveal())))
            .collect();
        let mut texts = Texts::default();
        texts.list("a secret", variables.iter().map(|text| text.as_str()))?;
        let mut bytes = Zeroizing::new(texts.0);
        if let Some(Document(text)) = document {
            bytes.extend_from_slice(text.as_bytes());
        }
        Ok(Some(Self(bytes)))
    }

    /// A file that is in memory only, and gone with its last descriptor.
    pub(crate) fn file(&self) -> io::Result<File> {
        let mut file = File::from(memfd_create(c"kapell-hidden", MFdFlags::MFD_CLOEXEC)?);
        file.write_all(&self.0)?;
        file.rewind()?;
        Ok(file)
    }
}
