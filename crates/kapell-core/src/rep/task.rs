//! A container of a task beside its record.

use super::Action::{CompleteTask, DeleteContainer, FailTask, RunContainer, StartTask};
use super::Surprise::{Conceivable, Expected, Inconceivable};
use super::{Rule, rule};
use crate::board::{InstanceKey, Task, TaskState};

/// What a cell has of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Container {
    Reserved,
    /// Being made, made, or running.
    Running,
    Completed,
    /// Neither a container nor a reservation with the task's instance guid.
    Missing,
}

impl Container {
    pub const ALL: [Self; 4] = [Self::Reserved, Self::Running, Self::Completed, Self::Missing];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Reserved => "reserved",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Missing => "missing",
        }
    }
}

/// What the board has of it. `Elsewhere` is another cell, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Record {
    Missing,
    Pending,
    RunningHere,
    RunningElsewhere,
    CompletedHere,
    CompletedElsewhere,
    ResolvingHere,
    ResolvingElsewhere,
}

impl Record {
    pub const ALL: [Self; 8] = [
        Self::Missing,
        Self::Pending,
        Self::RunningHere,
        Self::RunningElsewhere,
        Self::CompletedHere,
        Self::CompletedElsewhere,
        Self::ResolvingHere,
        Self::ResolvingElsewhere,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Pending => "pending",
            Self::RunningHere => "running-here",
            Self::RunningElsewhere => "running-elsewhere",
            Self::CompletedHere => "completed-here",
            Self::CompletedElsewhere => "completed-elsewhere",
            Self::ResolvingHere => "resolving-here",
            Self::ResolvingElsewhere => "resolving-elsewhere",
        }
    }
}

/// What a record is to the container `us`. A task of the same name with another instance guid is
/// another task.
pub fn classify(record: Option<&Task>, us: &InstanceKey) -> Record {
    let Some(task) = record.filter(|task| task.instance_guid == us.instance_guid) else {
        return Record::Missing;
    };
    let here = task.cell_id.as_ref() == Some(&us.cell_id);
    match task.state {
        TaskState::Pending => Record::Pending,
        TaskState::Running if here => Record::RunningHere,
        TaskState::Running => Record::RunningElsewhere,
        TaskState::Completed if here => Record::CompletedHere,
        TaskState::Completed => Record::CompletedElsewhere,
        TaskState::Resolving if here => Record::ResolvingHere,
        TaskState::Resolving => Record::ResolvingElsewhere,
    }
}

/// A reservation of which the board was asked to let the task start, and its answer was not heard. By the table alone a task that it
/// did let start would wait until the reservation expires, and fail; but it has not been run, and the board knows whose it is.
pub const fn unheard(record: Record) -> Rule {
    match record {
        Record::RunningHere => {
            rule(&[StartTask, RunContainer], Conceivable, "the answer to its start was not heard")
        }
        Record::Missing
        | Record::Pending
        | Record::RunningElsewhere
        | Record::CompletedHere
        | Record::CompletedElsewhere
        | Record::ResolvingHere
        | Record::ResolvingElsewhere => harmonize(Container::Reserved, record),
    }
}

/// Decides how a cell brings one container and its task back in line.
#[expect(clippy::match_same_arms, reason = "one row a state")]
#[rustfmt::skip]
pub const fn harmonize(container: Container, record: Record) -> Rule {
    use {Container as C, Record as R};
    match container {
        C::Reserved => match record {
            R::Missing            => rule(&[DeleteContainer],         Conceivable, "the task is gone"),
            R::Pending            => rule(&[StartTask, RunContainer], Expected,    "this cell was given the task"),
            R::RunningHere        => rule(&[],                        Expected,    "it is about to be run, or its reservation expires"),
            R::RunningElsewhere   => rule(&[DeleteContainer],         Conceivable, "another cell runs it"),
            R::CompletedHere      => rule(&[DeleteContainer],         Conceivable, "it is over"),
            R::CompletedElsewhere => rule(&[DeleteContainer],         Conceivable, "it is over"),
            R::ResolvingHere      => rule(&[DeleteContainer],         Conceivable, "it is over"),
            R::ResolvingElsewhere => rule(&[DeleteContainer],         Conceivable, "it is over"),
        },
        C::Running => match record {
            R::Missing            => rule(&[DeleteContainer], Conceivable,   "the task is gone"),
            R::Pending            => rule(&[StartTask],       Inconceivable, "it should have been started before it was run"),
            R::RunningHere        => rule(&[],                Expected,      "it runs here"),
            R::RunningElsewhere   => rule(&[DeleteContainer], Inconceivable, "another cell runs it"),
            R::CompletedHere      => rule(&[DeleteContainer], Conceivable,   "it may have been cancelled"),
            R::CompletedElsewhere => rule(&[DeleteContainer], Inconceivable, "it was completed elsewhere"),
            R::ResolvingHere      => rule(&[DeleteContainer], Conceivable,   "it may have been cancelled"),
            R::ResolvingElsewhere => rule(&[DeleteContainer], Inconceivable, "it was completed elsewhere"),
        },
        C::Completed => match record {
            R::Missing            => rule(&[DeleteContainer],               Conceivable,   "the task is gone"),
            R::Pending            => rule(&[CompleteTask, DeleteContainer], Inconceivable, "it should have been started before it was run"),
            R::RunningHere        => rule(&[CompleteTask, DeleteContainer], Expected,      "it has ended"),
            R::RunningElsewhere   => rule(&[DeleteContainer],               Inconceivable, "another cell runs it"),
            R::CompletedHere      => rule(&[DeleteContainer],               Conceivable,   "the board knows already"),
            R::CompletedElsewhere => rule(&[DeleteContainer],               Inconceivable, "it was completed elsewhere"),
            R::ResolvingHere      => rule(&[DeleteContainer],               Conceivable,   "the board knows already"),
            R::ResolvingElsewhere => rule(&[DeleteContainer],               Inconceivable, "it was completed elsewhere"),
        },
        C::Missing => match record {
            R::Missing            => rule(&[],         Expected,    "there is nothing"),
            R::Pending            => rule(&[],         Expected,    "it waits for a cell"),
            R::RunningHere        => rule(&[FailTask], Conceivable, "the board thinks that it runs here, and it does not"),
            R::RunningElsewhere   => rule(&[],         Expected,    "it runs elsewhere"),
            R::CompletedHere      => rule(&[],         Expected,    "the client has not resolved it yet"),
            R::CompletedElsewhere => rule(&[],         Expected,    "it is over"),
            R::ResolvingHere      => rule(&[],         Expected,    "it is being resolved"),
            R::ResolvingElsewhere => rule(&[],         Expected,    "it is over"),
        },
    }
}
