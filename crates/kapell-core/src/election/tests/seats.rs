use super::super::*;
use super::bench::*;

fn three() -> Bench {
    let (it, told) = Bench::new(setup(3));
    assert_eq!(told, "read 1, read 2, read 3");
    it
}

#[test]
fn one_seat_at_a_time_is_tried_for() {
    let mut it = three();
    assert_eq!(it.hear_of(0, 1, vacant(5)), "insert 2 epoch 6");
    assert_eq!(it.hear_of(10, 0, vacant(0)), "");
    assert_eq!(it.hear_of(10, 2, vacant(2)), "");
    // Lost: the next one in order is tried, and the lost one looked at.
    assert_eq!(it.hear_of(20, 3, Answer::Lost), "insert 1 epoch 1, read 2");
    assert_eq!(it.hear_of(30, 4, Answer::Done), "acquired 1 epoch 1");
    // The rest is of no interest now.
    assert_eq!(it.hear_of(40, 5, vacant(6)), "");
    assert_eq!(it.changed(50, 3), "");
    assert_eq!(it.it.held().map(|(seat, _)| seat), Some(Seat(1)));
}

#[test]
fn a_bid_without_answer_keeps_all_others_waiting() {
    let mut it = three();
    assert_eq!(it.hear_of(0, 0, vacant(0)), "insert 1 epoch 1");
    assert_eq!(it.hear_of(0, 1, vacant(0)), "");
    assert_eq!(it.hear_of(100, 3, Answer::Unknown), "read 1");
    assert_eq!(it.hear_of(200, 4, Answer::Unknown), "");
    assert_eq!(it.hear_of(300, 2, vacant(0)), "");
    assert_eq!(it.due(600), "read 1");
    assert_eq!(it.hear(700, held(ME, 1, 7500)), "acquired 1 epoch 1");
}

#[test]
fn a_bid_that_another_won_lets_the_next_be_tried() {
    let mut it = three();
    assert_eq!(it.hear_of(0, 0, vacant(0)), "insert 1 epoch 1");
    assert_eq!(it.hear_of(0, 1, vacant(0)), "");
    assert_eq!(it.hear_of(100, 3, Answer::Unknown), "read 1");
    assert_eq!(it.hear(200, held(OTHER, 1, 8000)), "insert 2 epoch 1");
    assert_eq!(it.hear(300, Answer::Done), "acquired 2 epoch 1");
}

#[test]
fn a_seat_to_be_given_back_is_given_back_before_another_is_tried() {
    let mut it = three();
    assert_eq!(it.hear_of(0, 0, vacant(0)), "insert 1 epoch 1");
    assert_eq!(it.hear_of(0, 1, vacant(0)), "");
    assert_eq!(it.hear_of(4000, 3, Answer::Done), "delete 1 epoch 1");
    assert_eq!(it.hear(4100, Answer::Unknown), "");
    assert_eq!(it.due(4500), "delete 1 epoch 1");
    assert_eq!(it.hear(4600, Answer::Done), "insert 2 epoch 1, read 1");
}

#[test]
fn all_seats_are_waited_on() {
    let mut it = three();
    assert_eq!(it.hear_of(0, 0, held(OTHER, 1, 2900)), "");
    assert_eq!(it.hear_of(0, 1, held(OTHER, 1, 1000)), "");
    assert_eq!(it.hear_of(0, 2, held(OTHER, 1, 2000)), "");
    assert_eq!(it.due_at(), Some(1000));
    assert_eq!(it.due(1000), "read 2");
    assert_eq!(it.due_at(), Some(2000));
    assert_eq!(it.changed(1500, 3), "read 3");
    assert_eq!(it.hear(1600, vacant(1)), "insert 3 epoch 2");
}

#[test]
fn what_was_seen_before_a_bid_may_be_stale_and_is_looked_at_again() {
    let mut it = three();
    assert_eq!(it.hear_of(0, 0, vacant(0)), "insert 1 epoch 1");
    assert_eq!(it.hear_of(0, 1, vacant(0)), "");
    assert_eq!(it.changed(50, 2), "");
    assert_eq!(it.hear_of(100, 3, Answer::Lost), "insert 2 epoch 1, read 1");
    assert_eq!(it.hear_of(200, 4, Answer::Lost), "read 2");
}
