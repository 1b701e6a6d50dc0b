//! Constraints and actions: what a job's `constraints` and `actions` mean, and what becomes of a run by them.

use serde::{Deserialize, Serialize};

/// What is to become of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Proceed,
    Fail,
    Retry,
    Skip,
}
