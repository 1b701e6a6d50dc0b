//! A workflow file from disk.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use kapell_core::source::{Problem, Span};
use kapell_core::workflow::{Loaded, MAX_FILE_BYTES, load};

/// Why a file gave no workflow.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    #[error("cannot read `{path}`")]
    Unreadable {
        path: String,
        #[source]
        source: io::Error,
    },
    /// What is wrong, and the text it is wrong in.
    #[error("`{path}` has {} problems", .problems.len())]
    Bad { path: String, problems: Vec<Problem>, bytes: Vec<u8> },
}

/// Reads and checks a workflow file. Also returns its text, for whoever wants to compare it later.
pub fn read_file(path: &Path) -> Result<(Loaded, Vec<u8>), FileError> {
    let shown = path.display().to_string();
    let read = read_limited(path)
        .map_err(|source| FileError::Unreadable { path: shown.clone(), source })?;
    let Some(bytes) = read else {
        let problem = Problem::error(
            Span::START,
            format!("the file is larger than {} MiB", MAX_FILE_BYTES >> 20),
        )
        .help("is this a workflow file? split it if it is");
        return Err(FileError::Bad { path: shown, problems: vec![problem], bytes: Vec::new() });
    };
    let stem = path.file_stem().map_or_else(|| "workflow".into(), |stem| stem.to_string_lossy());
    match load(&bytes, &stem) {
        Ok(loaded) => Ok((loaded, bytes)),
        Err(problems) => Err(FileError::Bad { path: shown, problems, bytes }),
    }
}

/// Reads a file, or nothing if it is too large: one that grows or never ends is noticed too.
fn read_limited(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = File::open(path)?;
    let size = file.metadata()?.len();
    if size > MAX_FILE_BYTES {
        return Ok(None);
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0) + 1);
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= MAX_FILE_BYTES).then_some(bytes))
}
