use super::super::*;
use super::bench::*;

#[test]
fn it_renews_each_quarter_and_counts_from_when_it_sent() {
    let mut it = Bench::holding();
    assert_eq!(it.due_at(), Some(2000));
    assert_eq!(it.due(1999), "");
    assert_eq!(it.due(2000), "renew 1 epoch 1");
    // While the call is under way the old arithmetic holds.
    assert_eq!(
        (it.due_at(), it.acts_until(), it.killed_at()),
        (Some(4000), Some(4000), Some(6000))
    );
    assert_eq!(it.hear(2900, Answer::Done), "renewed");
    assert_eq!(
        (it.due_at(), it.acts_until(), it.killed_at()),
        (Some(4000), Some(6000), Some(8000))
    );
    assert_eq!(it.due(4100), "renew 1 epoch 1");
    assert_eq!(it.hear(4100, Answer::Done), "renewed");
    assert_eq!((it.due_at(), it.acts_until()), (Some(6100), Some(8100)));
}

#[test]
fn no_call_may_take_longer_than_what_is_left() {
    let mut it = Bench::holding();
    assert_eq!(it.due(2000), "renew 1 epoch 1");
    // Half of what is left: a call that hangs does not cost the seat.
    assert_eq!(it.within(), 1000);
    assert_eq!(it.hear(3000, Answer::Unknown), "read 1");
    assert_eq!(it.within(), 1000);
    assert_eq!(it.hear(3300, Answer::Unknown), "");
    assert_eq!(it.due(3500), "renew 1 epoch 1");
    assert_eq!(it.within(), 500);

    let mut it = Bench::holding();
    assert_eq!(it.due(3999), "renew 1 epoch 1");
    assert!(it.calls[it.calls.len() - 1].1 > Duration::ZERO);
    assert!(it.within() < 1);
}

#[test]
fn a_renewal_that_lost_is_the_end_at_once() {
    let mut it = Bench::holding();
    assert_eq!(it.due(2000), "renew 1 epoch 1");
    assert_eq!(it.hear(2100, Answer::Lost), "read 1");
    assert!(!it.it.may_act(at(2100)) && it.it.held().is_none());
    // Who took it is asked for an eighth of the lease; the killer does not wait for that.
    assert_eq!((it.within(), it.due_at(), it.killed_at()), (1000, Some(3100), Some(4100)));
    assert_eq!(it.hear(2200, held(OTHER, 2, 8000)), "lost: stolen");
    assert!(it.it.is_over());
    assert_eq!(it.killed_at(), Some(4100));
}

#[test]
fn the_reason_of_a_loss_is_what_stands_there() {
    let losing = || {
        let mut it = Bench::holding();
        assert_eq!(it.due(2000), "renew 1 epoch 1");
        assert_eq!(it.hear(2000, Answer::Lost), "read 1");
        it
    };
    assert_eq!(losing().hear(2100, held(OTHER, 2, 8000)), "lost: stolen");
    assert_eq!(losing().hear(2100, foreign(1)), "lost: stolen");
    assert_eq!(losing().hear(2100, vacant(1)), "lost: deleted");
    assert_eq!(losing().hear(8000, vacant(1)), "lost: expired");
    // Nobody can tell: what is sure is that the record is no longer ours.
    assert_eq!(losing().hear(2100, Answer::Unknown), "lost: stolen");
    assert_eq!(losing().due(2999), "");
    assert_eq!(losing().due(3000), "lost: stolen");
    assert_eq!(losing().resign(2100), "lost: stolen");
    assert_eq!(losing().changed(2100, 1), "");

    let mut it = losing();
    let effects = it.it.step(Event::Answered(it.calls[3].0, held(OTHER, 2, 8000)), at(2100));
    assert_eq!(effects, [Effect::Tell(Notice::Lost(Loss::Stolen(Some(OTHER))))]);
}

#[test]
fn a_change_is_looked_into_at_once() {
    let cases = [(held(OTHER, 2, 8000), "lost: stolen"), (vacant(1), "lost: deleted")];
    for (answer, told) in cases {
        let mut it = Bench::holding();
        assert_eq!(it.changed(500, 1), "read 1");
        assert_eq!(it.hear(600, answer), told);
        assert!(!it.it.may_act(at(600)));
        assert_eq!(it.killed_at(), Some(2600));
    }
}

#[test]
fn a_change_that_was_our_own_renewal_is_nothing() {
    let mut it = Bench::holding();
    assert_eq!(it.due(2000), "renew 1 epoch 1");
    assert_eq!(it.changed(2100, 1), "");
    assert_eq!(it.hear(2200, Answer::Done), "renewed, read 1");
    assert_eq!(it.hear(2300, held(ME, 1, 7900)), "renewed");
    // The read proved 0.1 s more than the renewal did.
    assert_eq!((it.due_at(), it.acts_until()), (Some(4100), Some(6100)));
}

#[test]
fn a_renewal_without_answer_is_read_back() {
    let mut it = Bench::holding();
    assert_eq!(it.due(2000), "renew 1 epoch 1");
    assert_eq!(it.hear(2500, Answer::Unknown), "read 1");
    // It landed: 7.6 s left at 2.5 s or later were begun at 2.1 s or later.
    assert_eq!(it.hear(2600, held(ME, 1, 7600)), "renewed");
    assert_eq!((it.due_at(), it.acts_until()), (Some(4100), Some(6100)));
}

#[test]
fn a_read_back_renews_nothing_by_itself() {
    let mut it = Bench::holding();
    assert_eq!(it.due(2000), "renew 1 epoch 1");
    assert_eq!(it.hear(2500, Answer::Unknown), "read 1");
    // The record is ours, but as old as before.
    assert_eq!(it.hear(2600, held(ME, 1, 5500)), "");
    assert_eq!((it.due_at(), it.acts_until()), (Some(2800), Some(4000)));
    assert_eq!(it.due(2800), "renew 1 epoch 1");
    assert_eq!(it.hear(2900, Answer::Done), "renewed");
    assert_eq!((it.due_at(), it.acts_until()), (Some(4800), Some(6800)));
}

#[test]
fn our_record_of_another_epoch_is_not_this_one() {
    let mut it = Bench::holding();
    assert_eq!(it.changed(500, 1), "read 1");
    assert_eq!(it.hear(600, held(ME, 2, 8000)), "lost: stolen");
}

#[test]
fn errors_until_half_of_the_lease_are_its_loss() {
    let mut it = Bench::holding();
    assert_eq!(it.due(2000), "renew 1 epoch 1");
    assert_eq!(it.hear(2010, Answer::Unknown), "read 1");
    let mut now = 2020;
    while now < 3900 {
        assert_eq!(it.hear(now, Answer::Unknown), "");
        assert!(it.it.may_act(at(now)));
        assert_eq!(it.due_at(), Some(u128::from(now) + 200));
        assert_eq!(it.due(now + 200), "renew 1 epoch 1");
        assert_eq!(it.hear(now + 210, Answer::Unknown), "read 1");
        now += 220;
    }
    assert_eq!(it.due_at(), Some(4000));
    assert_eq!(it.due(4000), "lost: store_errors");
    assert_eq!((it.it.is_over(), it.killed_at()), (true, Some(6000)));
}

#[test]
fn one_error_is_forgotten_after_a_renewal() {
    let mut it = Bench::holding();
    assert_eq!(it.due(2000), "renew 1 epoch 1");
    assert_eq!(it.hear(2010, Answer::Unknown), "read 1");
    assert_eq!(it.hear(2020, held(ME, 1, 5900)), "");
    assert_eq!(it.due(2220), "renew 1 epoch 1");
    assert_eq!(it.hear(2230, Answer::Done), "renewed");
    assert_eq!(it.due(6220), "lost: deadline");
}

/// A call that is given up in time is an error of the store; only a host that did not even get
/// to that has missed its deadline.
#[test]
fn a_store_that_hangs_until_half_of_the_lease_is_a_store_error() {
    let mut it = Bench::holding();
    assert_eq!(it.due(2000), "renew 1 epoch 1");
    assert_eq!(it.hear(3000, Answer::Unknown), "read 1");
    // Both come due at once; in either order it is the same.
    let mut other = Bench { it: it.it.clone(), calls: it.calls.clone() };
    assert_eq!(it.due(4000), "lost: store_errors");
    assert_eq!(other.hear(4000, Answer::Unknown), "lost: store_errors");

    let mut it = Bench::holding();
    assert_eq!(it.due(2000), "renew 1 epoch 1");
    assert_eq!(it.due(4000), "lost: deadline");
}

#[test]
fn a_pause_beyond_half_of_the_lease_is_a_loss_whatever_is_heard_then() {
    let events = [
        Event::Due,
        Event::Changed(Seat(1)),
        Event::Answered(Ticket(2), Answer::Done),
        Event::Answered(Ticket(2), Answer::Lost),
        Event::Answered(Ticket(2), Answer::Unknown),
        Event::Resign,
    ];
    for event in events {
        let mut it = Bench::holding();
        assert_eq!(it.due(2000), "renew 1 epoch 1");
        assert!(!it.it.may_act(at(4000)));
        assert_eq!(it.step(4000, event.clone()), "lost: deadline", "{event:?}");
        assert_eq!(it.killed_at(), Some(6000));
        let mut it = Bench::holding();
        assert_eq!(it.due(2000), "renew 1 epoch 1");
        assert_eq!(it.step(1_000_000, event), "lost: deadline");
        assert_eq!(it.killed_at(), Some(6000), "long ago");
    }
}

#[test]
fn after_a_loss_nothing_more_is_sent() {
    let mut it = Bench::holding();
    assert_eq!(it.due(5000), "lost: deadline");
    let (due, killed) = (it.due_at(), it.killed_at());
    assert_eq!((due, killed), (None, Some(6000)));
    assert_eq!(it.resign(5100), "");
    assert_eq!(it.changed(5100, 1), "");
    assert_eq!(it.hear(5100, Answer::Done), "");
    assert_eq!(it.due(9000), "");
    assert_eq!((it.due_at(), it.killed_at(), it.acts_until()), (due, killed, None));
}

#[test]
fn late_and_repeated_answers_change_nothing() {
    let mut it = Bench::holding();
    assert_eq!(it.due(2000), "renew 1 epoch 1");
    assert_eq!(it.hear(2500, Answer::Unknown), "read 1");
    let before = it.it.clone();
    // The look, the insert and the renewal that was given up.
    for call in 0..3 {
        for answer in [Answer::Done, Answer::Lost, Answer::Unknown, vacant(9), held(OTHER, 9, 1)] {
            assert_eq!(it.hear_of(2600, call, answer), "");
            assert_eq!(it.it, before);
        }
    }
    assert_eq!(it.hear(2700, held(ME, 1, 7500)), "renewed");
    let before = it.it.clone();
    assert_eq!(it.hear(2800, held(OTHER, 2, 7500)), "");
    assert_eq!(it.it, before);
}
