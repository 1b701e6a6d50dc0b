//! What takes time, and what comes of it.

use kapell_api::v1::{CellRecords, ReportAnswer, Welcome};
use kapell_backend::containers::Error;
use kapell_core::board::InstanceGuid;
use kapell_core::rep::container::RunResult;
use kapell_core::seams::Moment;

use super::rep::{Snapshot, Told};
use crate::link::LinkError;

/// What came of a job.
#[derive(Debug)]
pub(super) enum Done {
    Ended(InstanceGuid, RunResult),
    Deleted(InstanceGuid, Result<(), Error>),
    Killed(InstanceGuid, Result<(), Error>),
    Reported(Vec<Told>, Result<Vec<ReportAnswer>, LinkError>),
    Polled(Snapshot, Result<CellRecords, LinkError>),
    Presented(Moment, Result<Welcome, LinkError>),
    Left(Result<(), LinkError>),
    /// With the port that it had.
    SelfTested(Option<u16>, Result<(), String>),
    Pruned,
    /// With what was removed.
    Tidied(Result<u64, Error>),
}
