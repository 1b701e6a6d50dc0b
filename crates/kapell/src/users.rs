//! Which users the containers of a cell may be: a block of numbers that no other cell of this machine has.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::ops::Range;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use kapell_node::cell::OWN_USERS;

/// Where the cells of a machine write down which blocks they have.
pub(crate) const CLAIMS: &str = "/run/kapell/users";
const FIRST: u32 = OWN_USERS.start;
const SIZE: u32 = 4096;
const BLOCKS: u32 = (OWN_USERS.end - OWN_USERS.start) / SIZE;
/// In the directory of a cell: the number of its block.
const KEPT: &str = "users";

/// The users of the cell with this directory. It keeps those it had, unless another cell has them now.
pub(crate) fn block(dir: &Path, claims: &Path) -> anyhow::Result<Range<u32>> {
    let kept = fs::read_to_string(dir.join(KEPT)).ok().and_then(|text| text.trim().parse().ok());
    let kept = kept.filter(|number| *number < BLOCKS);
    let number = match claim(dir, claims, kept) {
        Ok(Some(number)) => number,
        Ok(None) => anyhow::bail!(
            "all {BLOCKS} blocks of users in `{}` are taken: remove those of cells that are gone",
            claims.display()
        ),
        Err(error) => {
            tracing::warn!(%error, claims = %claims.display(), "cannot write down which users this cell gives to containers: another cell of this machine may give the same");
            kept.unwrap_or_else(|| hash(dir) % BLOCKS)
        }
    };
    if kept != Some(number) {
        keep(dir, number)?;
    }
    let start = FIRST + number * SIZE;
    Ok(start..start + SIZE)
}

fn keep(dir: &Path, number: u32) -> io::Result<()> {
    let draft = dir.join("users.draft");
    fs::write(&draft, format!("{number}\n"))?;
    fs::rename(&draft, dir.join(KEPT))
}

/// None if there is none left.
fn claim(dir: &Path, claims: &Path, kept: Option<u32>) -> io::Result<Option<u32>> {
    fs::create_dir_all(claims)?;
    let lock = File::create(claims.join("lock"))?;
    // One at a time: who finds the claim of a cell that is gone takes it over.
    lock.lock()?;
    for number in kept.into_iter().chain(0..BLOCKS) {
        let path = claims.join(number.to_string());
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(mut file) => {
                file.write_all(dir.as_os_str().as_bytes()).inspect_err(|_| {
                    let _undone = fs::remove_file(&path);
                })?;
                return Ok(Some(number));
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        let owner = PathBuf::from(std::ffi::OsString::from_vec(fs::read(&path)?));
        if owner == dir {
            return Ok(Some(number));
        }
        if is_gone(&owner) {
            fs::write(&path, dir.as_os_str().as_bytes())?;
            return Ok(Some(number));
        }
    }
    Ok(None)
}

fn is_gone(owner: &Path) -> bool {
    matches!(fs::symlink_metadata(owner), Err(error) if error.kind() == io::ErrorKind::NotFound)
}

/// FNV-1a.
fn hash(dir: &Path) -> u32 {
    dir.as_os_str()
        .as_bytes()
        .iter()
        .fold(0x811c_9dc5, |hash: u32, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Machine {
        root: tempfile::TempDir,
    }

    impl Machine {
        fn new() -> Self {
            Self { root: tempfile::tempdir().unwrap() }
        }

        fn cell(&self, name: &str) -> PathBuf {
            let dir = self.root.path().join(name);
            fs::create_dir_all(&dir).unwrap();
            dir
        }

        fn block(&self, cell: &Path) -> Range<u32> {
            block(cell, &self.root.path().join("run/users")).unwrap()
        }
    }

    #[test]
    fn cells_have_users_of_their_own_and_keep_them() {
        let machine = Machine::new();
        let (one, other) = (machine.cell("one"), machine.cell("other"));
        assert_eq!(machine.block(&one), 300_000..304_096);
        assert_eq!(machine.block(&other), 304_096..308_192);
        assert_eq!(machine.block(&one), 300_000..304_096);
        // As after the machine was started anew, with the other one first.
        fs::remove_dir_all(machine.root.path().join("run")).unwrap();
        assert_eq!(machine.block(&other), 304_096..308_192);
        assert_eq!(machine.block(&one), 300_000..304_096);
    }

    #[test]
    fn the_users_of_a_cell_that_is_gone_are_free_again() {
        let machine = Machine::new();
        let (one, other) = (machine.cell("one"), machine.cell("other"));
        assert_eq!(machine.block(&one), 300_000..304_096);
        fs::remove_dir_all(&one).unwrap();
        assert_eq!(machine.block(&other), 300_000..304_096);
        // It comes back, with a memory of what it had.
        let one = machine.cell("one");
        keep(&one, 0).unwrap();
        assert_eq!(machine.block(&one), 304_096..308_192);
        assert_eq!(machine.block(&one), 304_096..308_192, "and remembers");
    }

    #[test]
    fn without_a_place_for_claims_the_users_follow_from_the_directory() {
        let machine = Machine::new();
        let cell = machine.cell("cell");
        let nowhere = Path::new("/dev/null/users");
        let first = block(&cell, nowhere).unwrap();
        assert_eq!((first.len(), (first.start - FIRST) % SIZE), (4096, 0));
        assert_eq!(block(&cell, nowhere).unwrap(), first);
    }
}
