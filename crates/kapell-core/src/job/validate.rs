//! What may be a job.

use super::definition::JobDefinition;

/// Everything that is wrong with a job; nothing if it may be stored.
pub fn job(_definition: &JobDefinition) -> Vec<String> {
    Vec::new()
}
