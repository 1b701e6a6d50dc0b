//! The cases of the suite. Each gets a world with an empty store.

mod faults;
mod holding;
mod losing;
mod pausing;
mod seats;
mod waiting;

use kapell_core::seat::Seat;

use super::suite::Case;
use super::wait::within;
use super::world::{Member, World};
use crate::elections::{Elections as _, Tenure};

const SEAT: Seat = Seat::FIRST;
const ADDRESS: &str = "10.0.0.1:7070";
const OTHER_ADDRESS: &str = "10.0.0.2:7070";

macro_rules! cases {
    ($($module:ident::$name:ident,)*) => {
        vec![$((stringify!($name), |world| Box::pin($module::$name(world)))),*]
    };
}

pub(super) fn all() -> Vec<Case> {
    cases![
        holding::basic_use,
        holding::acquire_when_held_here,
        holding::acquire_when_held_elsewhere,
        holding::release_without_acquire,
        holding::release_while_looking,
        holding::acquire_after_cleanup,
        holding::cleanup_while_looking,
        holding::cleanup_during_renewal,
        holding::cleanup_during_retries,
        holding::renewed_for_long,
        holding::epochs_grow,
        losing::value_changed,
        losing::value_changed_to_another_owner,
        losing::value_changed_and_nobody_tells,
        losing::key_deleted,
        losing::key_deleted_and_nobody_tells,
        losing::persistent_errors,
        losing::hung_store,
        losing::hung_renewal,
        losing::lost_and_acquired_again,
        losing::killer_of_several_seats,
        pausing::paused_with_the_same_address,
        pausing::paused_with_a_renewal_under_way,
        pausing::paused_for_a_moment,
        seats::any_seat,
        seats::a_given_seat,
        seats::one_of_all_is_released,
        seats::never_two_seats,
        seats::race_for_one_seat,
        waiting::takes_over_on_release,
        waiting::takes_over_on_release_and_nobody_tells,
        waiting::takes_over_on_release_without_watches,
        waiting::takes_over_on_expiry,
        waiting::foreign_value_is_left_alone,
        waiting::dropped_while_waiting,
        waiting::dropped_and_asked_for_again,
        waiting::dropped_while_inserting,
        waiting::dropped_while_the_insert_is_late,
        waiting::dropped_when_won,
        faults::transient_errors,
        faults::lost_answer_of_insert,
        faults::lost_answer_of_renewal,
        faults::lost_answer_of_delete,
        faults::late_insert,
        faults::insert_later_than_its_repetition,
        faults::store_down_and_up,
        faults::store_down,
    ]
}

/// Takes a seat that is free or soon will be.
async fn lead(world: &World, member: &Member, seat: Seat) -> Tenure {
    let seats = [seat];
    let acquire = member.elections.acquire(&seats, Some(world.failover() * 2));
    acquire.await.unwrap_or_else(|refusal| panic!("seat {seat} is to be had: {refusal}"))
}

/// Waits until a member has seen who holds the seat, so that from now on it waits.
async fn is_waiting(world: &World, member: &Member, seat: Seat) {
    let seen = || async { member.elections.seen(seat).is_some() };
    super::wait::eventually("it sees the holder", world.lease(), seen).await;
}

/// Ends all members, each in time.
async fn end(world: &World, members: &[&Member]) {
    for member in members {
        member.go_on();
        let limit = world.lease() / 4 + world.slack();
        within("it cleans up", limit, member.elections.cleanup()).await;
    }
}
