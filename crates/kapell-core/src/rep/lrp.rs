//! A container of an instance beside its record.

use super::Action::{
    Claim, DeleteContainer, DropRecord, DropTwin, MarkRunning, NoteCrash, RunContainer,
};
use super::Surprise::{Conceivable, Expected, Inconceivable};
use super::{Rule, rule};
use crate::board::{ActualLrp, ActualState, InstanceKey};

/// What a cell has of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Container {
    Reserved,
    /// Being made, or made and not ready yet.
    Starting,
    Running,
    /// Ended unasked.
    Crashed,
    /// Ended because it was asked to.
    Stopped,
    /// Neither a container nor a reservation.
    Missing,
}

impl Container {
    pub const ALL: [Self; 6] = [
        Self::Reserved,
        Self::Starting,
        Self::Running,
        Self::Crashed,
        Self::Stopped,
        Self::Missing,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Reserved => "reserved",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Crashed => "crashed",
            Self::Stopped => "stopped",
            Self::Missing => "missing",
        }
    }
}

/// What the board has of it. `Here` is this very container on this cell; anything else is `Elsewhere`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Record {
    Missing,
    Unclaimed,
    ClaimedHere,
    ClaimedElsewhere,
    RunningHere,
    RunningElsewhere,
    Crashed,
}

impl Record {
    pub const ALL: [Self; 7] = [
        Self::Missing,
        Self::Unclaimed,
        Self::ClaimedHere,
        Self::ClaimedElsewhere,
        Self::RunningHere,
        Self::RunningElsewhere,
        Self::Crashed,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Unclaimed => "unclaimed",
            Self::ClaimedHere => "claimed-here",
            Self::ClaimedElsewhere => "claimed-elsewhere",
            Self::RunningHere => "running-here",
            Self::RunningElsewhere => "running-elsewhere",
            Self::Crashed => "crashed",
        }
    }
}

/// Whether a container is of another desired LRP, which had the same name; if nobody knows, it is not.
pub fn is_foreign(record: &ActualLrp, incarnation: Option<u64>) -> bool {
    incarnation.is_some_and(|incarnation| incarnation != record.incarnation)
}

/// What a record is to the container `us` of an incarnation of its process.
///
/// One of another incarnation is as good as one that runs elsewhere: the container is to go.
pub fn classify(record: Option<&ActualLrp>, us: &InstanceKey, incarnation: Option<u64>) -> Record {
    let Some(lrp) = record else { return Record::Missing };
    let ours = lrp.is_of(us);
    if !ours && is_foreign(lrp, incarnation) {
        return Record::RunningElsewhere;
    }
    match lrp.state {
        ActualState::Unclaimed => Record::Unclaimed,
        ActualState::Claimed if ours => Record::ClaimedHere,
        ActualState::Claimed => Record::ClaimedElsewhere,
        ActualState::Running if ours => Record::RunningHere,
        ActualState::Running => Record::RunningElsewhere,
        ActualState::Crashed => Record::Crashed,
    }
}

/// Decides how a cell brings one container and its record back in line.
#[expect(clippy::match_same_arms, reason = "one row a state")]
#[rustfmt::skip]
pub const fn harmonize(container: Container, record: Record) -> Rule {
    use {Container as C, Record as R};
    match container {
        C::Reserved => match record {
            R::Missing          => rule(&[DeleteContainer],     Conceivable,   "it is no longer desired"),
            R::Unclaimed        => rule(&[Claim, RunContainer], Expected,      "this cell won the auction"),
            R::ClaimedHere      => rule(&[RunContainer],        Conceivable,   "it was claimed before, and may not have been run"),
            R::ClaimedElsewhere => rule(&[DeleteContainer],     Conceivable,   "another cell got further"),
            R::RunningHere      => rule(&[Claim, RunContainer], Inconceivable, "the record ran ahead of the container"),
            R::RunningElsewhere => rule(&[DeleteContainer],     Conceivable,   "another cell got further"),
            R::Crashed          => rule(&[DeleteContainer],     Conceivable,   "convergence restarts it in time"),
        },
        C::Starting => match record {
            R::Missing          => rule(&[DeleteContainer],     Conceivable,   "it is no longer desired"),
            R::Unclaimed        => rule(&[Claim],               Inconceivable, "it should have been claimed before it was run"),
            R::ClaimedHere      => rule(&[],                    Expected,      "it is being started here"),
            R::ClaimedElsewhere => rule(&[DeleteContainer],     Conceivable,   "it is being started elsewhere"),
            R::RunningHere      => rule(&[Claim],               Inconceivable, "the record ran ahead of the container"),
            R::RunningElsewhere => rule(&[DeleteContainer],     Conceivable,   "it runs elsewhere"),
            R::Crashed          => rule(&[DeleteContainer],     Conceivable,   "convergence restarts it in time"),
        },
        C::Running => match record {
            R::Missing          => rule(&[MarkRunning],           Conceivable, "a blank record never stops a running container"),
            R::Unclaimed        => rule(&[MarkRunning],           Conceivable, "it runs here: no need to start it elsewhere"),
            R::ClaimedHere      => rule(&[MarkRunning, DropTwin], Expected,    "it has become ready here"),
            R::ClaimedElsewhere => rule(&[MarkRunning],           Conceivable, "it runs here: no need to start it elsewhere"),
            R::RunningHere      => rule(&[],                      Expected,    "it runs here"),
            R::RunningElsewhere => rule(&[DeleteContainer],       Conceivable, "it runs elsewhere"),
            R::Crashed          => rule(&[MarkRunning],           Conceivable, "it runs here: no need to restart it"),
        },
        C::Crashed => match record {
            R::Missing          => rule(&[NoteCrash, DeleteContainer], Conceivable, "the board has lost the record: tell it what is known"),
            R::Unclaimed        => rule(&[DeleteContainer],            Conceivable, "it will be scheduled again"),
            R::ClaimedHere      => rule(&[NoteCrash, DeleteContainer], Expected,    "it crashed here while starting"),
            R::ClaimedElsewhere => rule(&[DeleteContainer],            Conceivable, "it is being started elsewhere"),
            R::RunningHere      => rule(&[NoteCrash, DeleteContainer], Expected,    "it crashed here while running"),
            R::RunningElsewhere => rule(&[DeleteContainer],            Conceivable, "it runs elsewhere"),
            R::Crashed          => rule(&[DeleteContainer],            Conceivable, "the crash has been noted already"),
        },
        C::Stopped => match record {
            R::Missing          => rule(&[DeleteContainer],             Conceivable, "it was asked to stop"),
            R::Unclaimed        => rule(&[DeleteContainer],             Conceivable, "it was asked to stop"),
            R::ClaimedHere      => rule(&[DropRecord, DeleteContainer], Conceivable, "it was asked to stop while starting"),
            R::ClaimedElsewhere => rule(&[DeleteContainer],             Conceivable, "it is being started elsewhere"),
            R::RunningHere      => rule(&[DropRecord, DeleteContainer], Expected,    "it was asked to stop"),
            R::RunningElsewhere => rule(&[DeleteContainer],             Conceivable, "it runs elsewhere"),
            R::Crashed          => rule(&[DeleteContainer],             Conceivable, "it was asked to stop"),
        },
        C::Missing => match record {
            R::Missing          => rule(&[],           Expected,    "there is nothing"),
            R::Unclaimed        => rule(&[],           Expected,    "it waits for a cell"),
            R::ClaimedHere      => rule(&[DropRecord], Conceivable, "there is no such container: let the board see whether it is still desired"),
            R::ClaimedElsewhere => rule(&[],           Expected,    "it is being started elsewhere"),
            R::RunningHere      => rule(&[DropRecord], Conceivable, "there is no such container: let the board see whether it is still desired"),
            R::RunningElsewhere => rule(&[],           Expected,    "it runs elsewhere"),
            R::Crashed          => rule(&[],           Expected,    "convergence restarts it in time"),
        },
    }
}
