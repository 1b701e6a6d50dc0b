//! A container of an instance beside its two records, on a cell that evacuates.

use super::Action::{DeleteContainer, DropRecord, DropTwin, MakeTwin, NoteCrash, Unclaim};
use super::Surprise::{Conceivable, Expected, Inconceivable};
use super::{Rule, lrp, rule};
use crate::board::{ActualLrp, InstanceKey};

/// What the board has of the instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Instance {
    Missing,
    Unclaimed,
    /// UNCLAIMED, and no cell could take it so far.
    Unplaced,
    ClaimedHere,
    ClaimedElsewhere,
    RunningHere,
    RunningElsewhere,
    Crashed,
}

impl Instance {
    pub const ALL: [Self; 8] = [
        Self::Missing,
        Self::Unclaimed,
        Self::Unplaced,
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
            Self::Unplaced => "unplaced",
            Self::ClaimedHere => "claimed-here",
            Self::ClaimedElsewhere => "claimed-elsewhere",
            Self::RunningHere => "running-here",
            Self::RunningElsewhere => "running-elsewhere",
            Self::Crashed => "crashed",
        }
    }

    /// What a record is to the container `us` of an incarnation of its process.
    pub fn of(record: Option<&ActualLrp>, us: &InstanceKey, incarnation: Option<u64>) -> Self {
        match lrp::classify(record, us, incarnation) {
            lrp::Record::Missing => Self::Missing,
            lrp::Record::Unclaimed => {
                let failed = record.is_some_and(|lrp| lrp.placement_error.is_some());
                if failed { Self::Unplaced } else { Self::Unclaimed }
            }
            lrp::Record::ClaimedHere => Self::ClaimedHere,
            lrp::Record::ClaimedElsewhere => Self::ClaimedElsewhere,
            lrp::Record::RunningHere => Self::RunningHere,
            lrp::Record::RunningElsewhere => Self::RunningElsewhere,
            lrp::Record::Crashed => Self::Crashed,
        }
    }
}

/// What the board has of the evacuating twin, which is always RUNNING.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Twin {
    Missing,
    Here,
    Elsewhere,
}

impl Twin {
    pub const ALL: [Self; 3] = [Self::Missing, Self::Here, Self::Elsewhere];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Here => "here",
            Self::Elsewhere => "elsewhere",
        }
    }

    /// What a twin is to the container `us`.
    pub fn of(twin: Option<&ActualLrp>, us: &InstanceKey) -> Self {
        match twin {
            None => Self::Missing,
            Some(twin) if twin.is_of(us) => Self::Here,
            Some(_) => Self::Elsewhere,
        }
    }
}

/// A container that does not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Idle {
    /// Reserved, being made, or made and not ready yet.
    Starting,
    Crashed,
    Stopped,
    Missing,
}

impl Idle {
    pub const ALL: [Self; 4] = [Self::Starting, Self::Crashed, Self::Stopped, Self::Missing];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Crashed => "crashed",
            Self::Stopped => "stopped",
            Self::Missing => "missing",
        }
    }
}

/// Decides what an evacuating cell does with any container.
pub const fn harmonize(container: lrp::Container, instance: Instance, twin: Twin) -> Rule {
    match container {
        lrp::Container::Running => running(instance, twin),
        lrp::Container::Reserved | lrp::Container::Starting => {
            not_running(Idle::Starting, instance, twin)
        }
        lrp::Container::Crashed => not_running(Idle::Crashed, instance, twin),
        lrp::Container::Stopped => not_running(Idle::Stopped, instance, twin),
        lrp::Container::Missing => not_running(Idle::Missing, instance, twin),
    }
}

/// Decides what an evacuating cell does with a container that runs.
#[rustfmt::skip]
pub const fn running(instance: Instance, twin: Twin) -> Rule {
    use {Instance as I, Twin as T};
    match instance {
        I::Missing => match twin {
            T::Missing   => rule(&[DeleteContainer],           Conceivable,   "it may run elsewhere, and the twin was lost"),
            T::Here      => rule(&[DropTwin, DeleteContainer], Expected,      "it was scaled down during the evacuation"),
            T::Elsewhere => rule(&[DeleteContainer],           Conceivable,   "it left through another cell and was scaled down"),
        },
        I::Unclaimed => match twin {
            T::Missing   => rule(&[MakeTwin],                  Inconceivable, "keep it routable until another cell runs it"),
            T::Here      => rule(&[],                          Expected,      "it waits for another cell to win the auction"),
            T::Elsewhere => rule(&[DeleteContainer],           Conceivable,   "another cell ran it and evacuates as well"),
        },
        I::Unplaced => match twin {
            T::Missing   => rule(&[],                          Inconceivable, "no cell could take it: it stays while the auctioneer tries again"),
            T::Here      => rule(&[],                          Conceivable,   "no cell could take it: it stays while the auctioneer tries again"),
            T::Elsewhere => rule(&[DeleteContainer],           Conceivable,   "another cell ran it and evacuates as well"),
        },
        I::ClaimedHere => match twin {
            T::Missing   => rule(&[MakeTwin, Unclaim],         Conceivable,   "it runs, which the board has not heard yet"),
            T::Here      => rule(&[Unclaim],                   Conceivable,   "the instance was not given up with the twin"),
            T::Elsewhere => rule(&[MakeTwin, Unclaim],         Conceivable,   "it came from an evacuating cell and leaves this one too"),
        },
        I::ClaimedElsewhere => match twin {
            T::Missing   => rule(&[MakeTwin],                  Inconceivable, "keep it routable until the other cell runs it"),
            T::Here      => rule(&[],                          Expected,      "it waits for the other cell to run it"),
            T::Elsewhere => rule(&[DeleteContainer],           Conceivable,   "another cell ran it and evacuates as well"),
        },
        I::RunningHere => match twin {
            T::Missing   => rule(&[MakeTwin, Unclaim],         Expected,      "the evacuation of it begins"),
            T::Here      => rule(&[Unclaim],                   Conceivable,   "the instance was not given up with the twin"),
            T::Elsewhere => rule(&[MakeTwin, Unclaim],         Conceivable,   "it came from an evacuating cell and leaves this one too"),
        },
        I::RunningElsewhere => match twin {
            T::Missing   => rule(&[DeleteContainer],           Conceivable,   "it runs elsewhere, and the twin went with that"),
            T::Here      => rule(&[DropTwin, DeleteContainer], Expected,      "it runs elsewhere: the evacuation of it is over"),
            T::Elsewhere => rule(&[DeleteContainer],           Conceivable,   "it has moved on twice"),
        },
        I::Crashed => match twin {
            T::Missing   => rule(&[DeleteContainer],           Conceivable,   "it ran elsewhere, and the twin was lost"),
            T::Here      => rule(&[DropTwin, DeleteContainer], Expected,      "it ran elsewhere and crashed there"),
            T::Elsewhere => rule(&[DeleteContainer],           Conceivable,   "it has moved on twice and crashed"),
        },
    }
}

/// Decides what an evacuating cell does with a container that does not run. Only records of its
/// own are touched.
pub const fn not_running(container: Idle, instance: Instance, twin: Twin) -> Rule {
    match container {
        Idle::Starting => starting(instance, twin),
        Idle::Crashed => crashed(instance, twin),
        Idle::Stopped => stopped(instance, twin),
        Idle::Missing => missing(instance, twin),
    }
}

#[rustfmt::skip]
const fn starting(instance: Instance, twin: Twin) -> Rule {
    use {Instance as I, Twin as T};
    match instance {
        I::ClaimedHere | I::RunningHere => match twin {
            T::Here                   => rule(&[DeleteContainer, DropTwin, Unclaim], Conceivable, "it never ran here: another cell is to start it"),
            T::Missing | T::Elsewhere => rule(&[DeleteContainer, Unclaim],           Expected,    "it never ran here: another cell is to start it"),
        },
        I::Missing | I::Unclaimed | I::Unplaced | I::ClaimedElsewhere | I::RunningElsewhere | I::Crashed => match twin {
            T::Here                   => rule(&[DeleteContainer, DropTwin],          Conceivable, "it never ran here, and the instance is not ours"),
            T::Missing | T::Elsewhere => rule(&[DeleteContainer],                    Expected,    "it never ran here, and the instance is not ours"),
        },
    }
}

#[rustfmt::skip]
const fn crashed(instance: Instance, twin: Twin) -> Rule {
    use {Instance as I, Twin as T};
    match instance {
        I::Missing => match twin {
            T::Here                   => rule(&[DropTwin, NoteCrash, DeleteContainer], Conceivable, "it crashed after the board had lost the instance"),
            T::Missing | T::Elsewhere => rule(&[NoteCrash, DeleteContainer],           Conceivable, "the board has lost the record: tell it what is known"),
        },
        I::ClaimedHere | I::RunningHere => match twin {
            T::Here                   => rule(&[DropTwin, NoteCrash, DeleteContainer], Conceivable, "it crashed before the instance was given up"),
            T::Missing | T::Elsewhere => rule(&[NoteCrash, DeleteContainer],           Expected,    "it crashed here"),
        },
        I::Unclaimed | I::Unplaced | I::ClaimedElsewhere | I::RunningElsewhere | I::Crashed => match twin {
            T::Here                   => rule(&[DropTwin, DeleteContainer],            Expected,    "it crashed while it waited for another cell"),
            T::Missing | T::Elsewhere => rule(&[DeleteContainer],                      Conceivable, "the instance is not ours any more"),
        },
    }
}

#[rustfmt::skip]
const fn stopped(instance: Instance, twin: Twin) -> Rule {
    use {Instance as I, Twin as T};
    match instance {
        I::ClaimedHere | I::RunningHere => match twin {
            T::Here                   => rule(&[DropTwin, DropRecord, DeleteContainer], Conceivable, "it was asked to stop"),
            T::Missing | T::Elsewhere => rule(&[DropRecord, DeleteContainer],           Expected,    "it was asked to stop"),
        },
        I::Missing | I::Unclaimed | I::Unplaced | I::ClaimedElsewhere | I::RunningElsewhere | I::Crashed => match twin {
            T::Here                   => rule(&[DropTwin, DeleteContainer],             Expected,    "it was asked to stop"),
            T::Missing | T::Elsewhere => rule(&[DeleteContainer],                       Conceivable, "it was asked to stop"),
        },
    }
}

#[rustfmt::skip]
const fn missing(instance: Instance, twin: Twin) -> Rule {
    use {Instance as I, Twin as T};
    match instance {
        I::ClaimedHere | I::RunningHere => match twin {
            T::Here                   => rule(&[DropTwin, DropRecord], Conceivable, "there is no such container"),
            T::Missing | T::Elsewhere => rule(&[DropRecord],           Conceivable, "there is no such container"),
        },
        I::Missing | I::Unclaimed | I::Unplaced | I::ClaimedElsewhere | I::RunningElsewhere | I::Crashed => leftover(twin),
    }
}

/// Decides what any cell, evacuating or not, does about a twin for which it has no container.
#[rustfmt::skip]
pub const fn leftover(twin: Twin) -> Rule {
    match twin {
        Twin::Here                      => rule(&[DropTwin], Conceivable, "there is no such container"),
        Twin::Missing | Twin::Elsewhere => rule(&[],         Expected,    "nothing of it is here"),
    }
}
