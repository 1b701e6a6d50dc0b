use stateright::Property;

use super::{Breach, Deed, Elections, World};

pub const ONE_LEADER: &str = "at most one may act";
pub const STANDS: &str = "whoever may act stands in the store";
pub const SERVICES: &str = "services run at one host at a time";
pub const KILLER: &str = "whoever may act is killed later";
pub const FENCED: &str = "no commit of a former epoch lands behind a raise";
pub const EPOCHS: &str = "epochs grow";
pub const LOSER: &str = "whoever lost the seat does not delete it";
pub const KEPT: &str = "nobody is deleted while it may act";
pub const SOMEONE: &str = "in calm someone leads in the end";

pub const SUCCESSION: &str = "another leads later";
pub const AFTER_CRASH: &str = "one that crashed is succeeded";
pub const AFTER_PAUSE: &str = "one that is paused is succeeded";
pub const AFTER_RELEASE: &str = "one that resigned is succeeded";
pub const AFTER_KILL: &str = "one that was killed is succeeded";
pub const FOUND: &str = "an insert without answer is found as ours";
pub const LATE_COMMIT: &str = "an old commit arrives late and is fenced";
pub const COMMITTED: &str = "a commit lands";
pub const DEADLINE: &str = "a deadline passes";

/// What holds in every world.
pub(super) fn rules() -> [Property<Elections>; 9] {
    [
        Property::always(ONE_LEADER, |_, world: &World| world.leaders().count() <= 1),
        Property::always(STANDS, |_, world: &World| {
            world.leaders().all(|(who, _)| world.store.entry.is_some_and(|entry| entry.who == who))
        }),
        Property::always(SERVICES, |_, world: &World| {
            world.processes().filter(|(_, process)| process.serves(world.now)).count() <= 1
        }),
        Property::always(KILLER, |_, world: &World| {
            world.leaders().all(|(_, process)| !process.is_to_be_killed(world.now))
        }),
        Property::always(FENCED, |_, world: &World| world.breach != Some(Breach::LateCommit)),
        Property::always(EPOCHS, |_, world: &World| world.breach != Some(Breach::EpochAgain)),
        Property::always(LOSER, |_, world: &World| world.breach != Some(Breach::LoserDeletes)),
        Property::always(KEPT, |_, world: &World| world.breach != Some(Breach::DeletedUnderLeader)),
        Property::always(SOMEONE, |model: &Elections, world: &World| {
            let is_end = model.bounds.calm.is_some() && world.now == model.bounds.horizon;
            !is_end || world.leaders().count() > 0 || world.processes().count() == 0
        }),
    ]
}

/// What must happen somewhere, or the model proves nothing.
pub(super) fn examples() -> [Property<Elections>; 9] {
    [
        Property::sometimes(SUCCESSION, |_, world: &World| world.deeds.contains(&Deed::Succeeded)),
        Property::sometimes(AFTER_CRASH, |_, world: &World| {
            world.deeds.contains(&Deed::SucceededCrashed)
        }),
        Property::sometimes(AFTER_PAUSE, |_, world: &World| {
            world.deeds.contains(&Deed::SucceededPaused)
        }),
        Property::sometimes(AFTER_RELEASE, |_, world: &World| {
            world.deeds.contains(&Deed::SucceededReleased)
        }),
        Property::sometimes(AFTER_KILL, |_, world: &World| {
            world.deeds.contains(&Deed::SucceededKilled)
        }),
        Property::sometimes(FOUND, |_, world: &World| {
            world.deeds.contains(&Deed::InsertFoundAsOurs)
        }),
        Property::sometimes(LATE_COMMIT, |_, world: &World| {
            world.deeds.contains(&Deed::OldCommitFenced)
        }),
        Property::sometimes(COMMITTED, |_, world: &World| world.deeds.contains(&Deed::Committed)),
        Property::sometimes(DEADLINE, |_, world: &World| {
            world.deeds.contains(&Deed::LostByDeadline)
        }),
    ]
}
