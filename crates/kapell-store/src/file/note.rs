use std::fmt;
use std::path::PathBuf;

/// Something about a store that its user should know, though it works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// A crash left a group of changes that was never acknowledged, and not whole. It was
    /// moved from here to a file of its own.
    Torn { path: PathBuf, offset: u64, kept: PathBuf },
    /// The log was not replaced by a snapshot; it grows until that works.
    NotCompacted { why: String },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Torn { path, offset, kept } => write!(
                f,
                "`{}` ended at offset {offset} in changes that were never acknowledged; they are kept in `{}`",
                path.display(),
                kept.display()
            ),
            Self::NotCompacted { why } => write!(f, "the log was not compacted: {why}"),
        }
    }
}
