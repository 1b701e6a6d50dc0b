use super::super::*;
use super::bench::*;

#[test]
fn a_vacant_seat_is_taken_with_the_next_epoch() {
    let mut it = Bench::seeking();
    assert_eq!(it.hear(100, vacant(4)), "insert 1 epoch 5");
    assert!(!it.it.may_act(at(100)));
    assert_eq!(it.hear(900, Answer::Done), "acquired 1 epoch 5");
    // Counted from when the insert was sent.
    assert_eq!(it.acts_until(), Some(4100));
    assert_eq!(it.due_at(), Some(2100));
    assert_eq!(it.killed_at(), Some(6100));
    let (seat, record) = it.it.held().unwrap();
    assert_eq!((seat, record.epoch, record.owner), (Seat(1), Epoch(5), ME));
}

#[test]
fn a_held_seat_is_looked_at_when_it_may_be_free() {
    let mut it = Bench::seeking();
    assert_eq!(it.hear(100, held(OTHER, 1, 1500)), "");
    assert_eq!(it.due_at(), Some(1600));
    assert_eq!(it.due(1599), "");
    assert_eq!(it.due(1600), "read 1");
    // Longer than the poll: it may be given back before.
    assert_eq!(it.hear(1700, held(OTHER, 1, 7500)), "");
    assert_eq!(it.due_at(), Some(4700));
    assert_eq!(it.due(4700), "read 1");
    // About to go: not asked again and again.
    assert_eq!(it.hear(4700, held(OTHER, 1, 0)), "");
    assert_eq!(it.due_at(), Some(4900));
}

#[test]
fn a_change_is_looked_at_at_once() {
    let mut it = Bench::seeking();
    assert_eq!(it.hear(0, held(OTHER, 1, 7000)), "");
    assert_eq!(it.changed(500, 1), "read 1");
    // Changed while being looked at: what was read may be stale.
    assert_eq!(it.changed(600, 1), "");
    assert_eq!(it.hear(700, vacant(1)), "read 1");
    assert_eq!(it.hear(800, vacant(2)), "insert 1 epoch 3");
    assert_eq!(it.changed(900, 1), "");
    assert_eq!(it.changed(900, 2), "");
}

#[test]
fn something_that_is_no_record_is_waited_for_too() {
    let mut it = Bench::seeking();
    assert_eq!(it.hear(0, foreign(3)), "");
    assert_eq!(it.due_at(), Some(3000));
}

#[test]
fn a_look_without_answer_is_repeated() {
    let mut it = Bench::seeking();
    assert_eq!(it.within(), 2000);
    assert_eq!(it.hear(2000, Answer::Unknown), "");
    assert_eq!(it.due_at(), Some(2800));
    assert_eq!(it.due(2800), "read 1");
}

#[test]
fn an_insert_that_lost_the_race_looks_again() {
    let mut it = Bench::seeking();
    assert_eq!(it.hear(0, vacant(0)), "insert 1 epoch 1");
    assert_eq!(it.hear(100, Answer::Lost), "read 1");
    assert_eq!(it.hear(200, held(OTHER, 1, 8000)), "");
    assert_eq!(it.due_at(), Some(3200));
}

#[test]
fn an_insert_without_answer_that_landed_is_ours() {
    let mut it = Bench::seeking();
    assert_eq!(it.hear(0, vacant(0)), "insert 1 epoch 1");
    assert_eq!(it.within(), 2000);
    assert_eq!(it.hear(2000, Answer::Unknown), "read 1");
    // It stands for 7 s counted from 2.0 s, so the store counts from 1.0 s or later.
    assert_eq!(it.hear(2300, held(ME, 1, 7000)), "acquired 1 epoch 1");
    assert_eq!(it.acts_until(), Some(5000));
    assert_eq!(it.due_at(), Some(3000));
}

#[test]
fn what_the_insert_proves_counts_if_the_store_cannot_tell_more() {
    for remaining in [Some(Duration::from_millis(5000)), None] {
        let mut it = Bench::seeking();
        assert_eq!(it.hear(500, vacant(0)), "insert 1 epoch 1");
        assert_eq!(it.hear(2500, Answer::Unknown), "read 1");
        let Answer::Seen { last, holder } = held(ME, 1, 0) else { panic!() };
        let holder = holder.map(|it| Holder { remaining, ..it });
        assert_eq!(it.hear(2600, Answer::Seen { last, holder }), "acquired 1 epoch 1");
        assert_eq!(it.acts_until(), Some(4500), "{remaining:?}");
    }
}

#[test]
fn an_insert_that_has_not_landed_is_sent_again_as_it_was() {
    let mut it = Bench::seeking();
    assert_eq!(it.hear(0, vacant(3)), "insert 1 epoch 4");
    assert_eq!(it.hear(100, Answer::Unknown), "read 1");
    assert_eq!(it.hear(200, vacant(3)), "");
    assert_eq!(it.due_at(), Some(400));
    assert_eq!(it.due(400), "insert 1 epoch 4");
    assert_eq!(it.hear(500, Answer::Done), "acquired 1 epoch 4");
    assert_eq!(it.acts_until(), Some(4400));
}

#[test]
fn a_second_insert_that_lost_to_the_first_one_is_read_back() {
    let mut it = Bench::seeking();
    assert_eq!(it.hear(0, vacant(0)), "insert 1 epoch 1");
    assert_eq!(it.hear(100, Answer::Unknown), "read 1");
    assert_eq!(it.hear(100, vacant(0)), "");
    assert_eq!(it.due(300), "insert 1 epoch 1");
    assert_eq!(it.hear(400, Answer::Lost), "read 1");
    assert_eq!(it.hear(500, held(ME, 1, 7800)), "acquired 1 epoch 1");
    assert_eq!(it.acts_until(), Some(4200));
}

#[test]
fn an_insert_without_answer_that_another_beat_waits() {
    let mut it = Bench::seeking();
    assert_eq!(it.hear(0, vacant(0)), "insert 1 epoch 1");
    assert_eq!(it.hear(100, Answer::Unknown), "read 1");
    assert_eq!(it.hear(200, held(OTHER, 1, 8000)), "");
    assert_eq!(it.due_at(), Some(3200));
    // Nothing of ours is left behind.
    assert_eq!(it.resign(300), "resigned");
}

#[test]
fn an_insert_whose_record_has_come_and_gone_looks_again() {
    let mut it = Bench::seeking();
    assert_eq!(it.hear(0, vacant(0)), "insert 1 epoch 1");
    assert_eq!(it.hear(100, Answer::Unknown), "read 1");
    assert_eq!(it.hear(200, vacant(1)), "read 1");
    assert_eq!(it.hear(300, vacant(1)), "insert 1 epoch 2");
}

#[test]
fn a_read_back_without_answer_is_repeated() {
    let mut it = Bench::seeking();
    assert_eq!(it.hear(0, vacant(0)), "insert 1 epoch 1");
    assert_eq!(it.hear(100, Answer::Unknown), "read 1");
    assert_eq!(it.hear(200, Answer::Unknown), "");
    assert_eq!(it.due(600), "read 1");
    assert_eq!(it.hear(700, held(ME, 1, 7400)), "acquired 1 epoch 1");
    assert_eq!(it.acts_until(), Some(4000));
}

#[test]
fn one_with_our_address_is_not_us() {
    let mut it = Bench::seeking();
    assert_eq!(it.hear(0, vacant(0)), "insert 1 epoch 1");
    assert_eq!(it.hear(100, Answer::Unknown), "read 1");
    // The same epoch and address, another owner.
    assert_eq!(it.hear(200, held(OTHER, 1, 8000)), "");
    assert!(!it.it.may_act(at(200)));
}

#[test]
fn a_seat_won_too_late_is_given_back() {
    let mut it = Bench::seeking();
    assert_eq!(it.hear(0, vacant(0)), "insert 1 epoch 1");
    assert_eq!(it.hear(4000, Answer::Done), "delete 1 epoch 1");
    assert!(!it.it.may_act(at(4000)));
    assert_eq!(it.hear(4100, Answer::Done), "read 1");
    assert_eq!(it.hear(4200, vacant(1)), "insert 1 epoch 2");
    assert_eq!(it.hear(4300, Answer::Done), "acquired 1 epoch 2");
}

/// Found by the model: the deletion arrived later, under one who acted, and another came in.
#[test]
fn a_seat_given_back_is_not_taken_again() {
    let mut it = Bench::seeking();
    assert_eq!(it.hear(0, vacant(0)), "insert 1 epoch 1");
    assert_eq!(it.hear(4000, Answer::Done), "delete 1 epoch 1");
    assert_eq!(it.hear(6000, Answer::Unknown), "");
    assert_eq!(it.due(6400), "delete 1 epoch 1");
    assert_eq!(it.hear(6500, Answer::Lost), "read 1");
    // A record of ours that was not just bid for is anyone's.
    assert_eq!(it.hear(6600, held(ME, 1, 7000)), "");
    assert!(!it.it.may_act(at(6600)));
    assert_eq!(it.due_at(), Some(9600));
}

#[test]
fn a_seat_that_is_being_given_back_is_given_back_before_the_end() {
    let mut it = Bench::seeking();
    assert_eq!(it.hear(0, vacant(0)), "insert 1 epoch 1");
    assert_eq!(it.hear(4000, Answer::Done), "delete 1 epoch 1");
    assert_eq!(it.resign(4100), "delete 1 epoch 1");
    assert_eq!(it.hear(4200, Answer::Lost), "resigned");

    let mut it = Bench::seeking();
    assert_eq!(it.hear(55_000, vacant(0)), "insert 1 epoch 1");
    assert_eq!(it.hear(60_000, Answer::Done), "delete 1 epoch 1");
    assert_eq!(it.hear(60_100, Answer::Done), "not acquired");
}

#[test]
fn the_window_ends_the_search() {
    let mut it = Bench::seeking();
    assert_eq!(it.hear(59_000, held(OTHER, 1, 8000)), "");
    assert_eq!(it.due_at(), Some(60_000));
    assert_eq!(it.due(60_000), "not acquired");
    assert!(it.it.is_over());
    assert_eq!((it.due_at(), it.killed_at()), (None, None));
}

#[test]
fn a_look_does_not_hold_up_the_end() {
    let mut it = Bench::seeking();
    assert_eq!(it.due_at(), Some(60_000));
    assert_eq!(it.due(60_000), "not acquired");
}

#[test]
fn an_insert_under_way_at_the_end_is_waited_for() {
    let mut it = Bench::seeking();
    assert_eq!(it.hear(59_900, vacant(0)), "insert 1 epoch 1");
    assert_eq!(it.due_at(), None);
    assert_eq!(it.due(60_000), "");
    assert_eq!(it.hear(60_100, Answer::Done), "acquired 1 epoch 1");
}

#[test]
fn an_insert_without_answer_at_the_end_is_deleted() {
    let mut it = Bench::seeking();
    assert_eq!(it.hear(59_900, vacant(0)), "insert 1 epoch 1");
    assert_eq!(it.hear(61_900, Answer::Unknown), "delete 1 epoch 1");
    assert_eq!(it.hear(62_000, Answer::Done), "not acquired");
    assert!(it.it.is_over());
}

#[test]
fn without_a_window_it_seeks_for_ever() {
    let (mut it, told) = Bench::new(Setup { window: None, ..setup(1) });
    assert_eq!(told, "read 1");
    assert_eq!(it.due_at(), None);
    assert_eq!(it.hear(0, held(OTHER, 1, 8000)), "");
    assert_eq!(it.due(1_000_000_000), "read 1");
    assert_eq!(it.hear(1_000_000_000, vacant(1)), "insert 1 epoch 2");
}
