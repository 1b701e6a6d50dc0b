//! The name under which a backend knows the work of an attempt.

use super::id::RunId;
use crate::board::TaskGuid;

const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

/// The same for the same run and attempt, for ever: whoever comes later finds the work by it.
pub fn task_guid(run_id: &RunId, attempt: u32) -> TaskGuid {
    // FNV-1a. No id of a run holds a NUL byte.
    let bytes = run_id.as_str().bytes().chain([0]).chain(attempt.to_be_bytes());
    let hash = bytes.fold(OFFSET, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME));
    TaskGuid::new(format!("{PREFIX}{hash:032x}"))
}

/// What the name of every task begins with that is the work of a run.
pub const PREFIX: &str = "kapell-run-";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_the_same_for_ever_and_another_for_every_attempt() {
        let run = RunId::parse("report:1763290800").unwrap();
        assert_eq!(task_guid(&run, 0), task_guid(&run, 0));
        assert_ne!(task_guid(&run, 0), task_guid(&run, 1));
        assert!(task_guid(&run, 0).is_valid());
        // Written down: another hash would be another launch after an upgrade.
        assert_eq!(task_guid(&run, 0).as_str(), "kapell-run-64ec7dbba5a26f6e05c7bb4a8a36c06b");
        assert_eq!(task_guid(&run, 1).as_str(), "kapell-run-64ec7dbba4a26f6e05c7bb4a8a36bf30");
    }
}
