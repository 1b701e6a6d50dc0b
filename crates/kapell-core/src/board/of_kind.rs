//! A record as what it is, if it is of that kind.

use std::sync::Arc;

use super::actual::ActualLrp;
use super::desired::DesiredLrp;
use super::domain::Freshness;
use super::record::Record;
use super::task::Task;
use crate::job::{Job, JobDefinition};
use crate::run::Run;

/// Looked at.
impl Record {
    pub fn as_desired(&self) -> Option<&DesiredLrp> {
        if let Self::Desired(lrp) = self { Some(lrp) } else { None }
    }

    pub fn as_actual(&self) -> Option<&ActualLrp> {
        if let Self::Actual(lrp) = self { Some(lrp) } else { None }
    }

    pub fn as_task(&self) -> Option<&Task> {
        if let Self::Task(task) = self { Some(task) } else { None }
    }
}

/// Taken.
impl Record {
    pub(super) fn into_desired(self) -> Option<Box<DesiredLrp>> {
        if let Self::Desired(lrp) = self { Some(lrp) } else { None }
    }

    pub(super) fn into_actual(self) -> Option<Box<ActualLrp>> {
        if let Self::Actual(lrp) = self { Some(lrp) } else { None }
    }

    pub(super) fn into_task(self) -> Option<Box<Task>> {
        if let Self::Task(task) = self { Some(task) } else { None }
    }

    pub(super) fn into_job(self) -> Option<Box<Job>> {
        if let Self::Job(job) = self { Some(job) } else { None }
    }

    pub(super) fn into_definition(self) -> Option<Arc<JobDefinition>> {
        if let Self::Definition(of) = self { Some(of.definition) } else { None }
    }

    pub(super) fn into_run(self) -> Option<Arc<Run>> {
        if let Self::Run(run) = self { Some(run) } else { None }
    }

    pub(super) fn into_domain(self) -> Option<Freshness> {
        if let Self::Domain(freshness) = self { Some(freshness) } else { None }
    }
}
