//! Bugs on purpose, to see that the simulator would notice them.
//!
//! Without the feature `planted` there are none: [`Planted::has`] is then always false.

/// A bug that can be planted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flaw {
    /// The board lets happen what follows from a change before the change is committed.
    EffectsBeforeCommit,
    /// The board answers before what it answers is committed.
    AnswersBeforeCommit,
    /// A commit that is fenced off is sent again with the fence that stands.
    UnfencedCommit,
    /// A commit whose outcome is not known is taken for done.
    UnknownIsDone,
    /// A new leader takes a cell that it has not heard of for lost.
    NoPresenceGrace,
    /// A completion callback is called without first resolving the task.
    TwoCallers,
    /// Convergence stops what nobody desires also in domains that are not fresh.
    StaleDomainStops,
    /// A task whose cell is lost is started again.
    LostTaskStartsAgain,
    /// Instances of a lost cell are left where they are.
    NoRescue,
    /// A cell does what any leader says, also a deposed one.
    OldEpochHeeded,
    /// A cell that hears nothing when it asks whether it may start a task starts it.
    TaskStartsUnasked,
    /// A cell does not count what an earlier agent has left as taking room.
    CapacityForgotten,
    /// An evacuating cell lets its instances go at once.
    NoTwin,
    /// A cell keeps what runs and should not, as when its instance runs on another cell.
    SecondInstanceKept,
    /// A container of a deleted task is taken for one of the new task of the same name.
    NamesakeMistaken,
    /// The work of a run is launched before it is stored that it is about to be.
    LaunchBeforeIntent,
    /// With a run that is forgotten it is forgotten that its moment was dealt with.
    MomentForgotten,
    /// A run that has ended keeps its place.
    PlaceKept,
    /// A cancel is acknowledged and not stored.
    CancelUnstored,
    /// A new leader launches what it finds under way without asking for evidence of it.
    LaunchUnasked,
}

impl Flaw {
    pub const ALL: [Self; 20] = [
        Self::EffectsBeforeCommit,
        Self::AnswersBeforeCommit,
        Self::UnfencedCommit,
        Self::UnknownIsDone,
        Self::NoPresenceGrace,
        Self::TwoCallers,
        Self::StaleDomainStops,
        Self::LostTaskStartsAgain,
        Self::NoRescue,
        Self::OldEpochHeeded,
        Self::TaskStartsUnasked,
        Self::CapacityForgotten,
        Self::NoTwin,
        Self::SecondInstanceKept,
        Self::NamesakeMistaken,
        Self::LaunchBeforeIntent,
        Self::MomentForgotten,
        Self::PlaceKept,
        Self::CancelUnstored,
        Self::LaunchUnasked,
    ];
}

/// Which bug is planted, if any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Planted {
    #[cfg(feature = "planted")]
    flaw: Option<Flaw>,
}

impl Planted {
    #[cfg(feature = "planted")]
    pub const fn only(flaw: Flaw) -> Self {
        Self { flaw: Some(flaw) }
    }

    #[cfg(feature = "planted")]
    pub fn has(self, flaw: Flaw) -> bool {
        self.flaw == Some(flaw)
    }

    #[cfg(not(feature = "planted"))]
    pub const fn has(self, _flaw: Flaw) -> bool {
        false
    }
}
