use super::super::*;
use super::bench::*;

#[test]
fn a_seat_is_given_back_and_the_killer_stands_down() {
    let mut it = Bench::holding();
    assert_eq!(it.killed_at(), Some(6000));
    assert_eq!(it.resign(1000), "delete 1 epoch 1");
    assert_eq!((it.killed_at(), it.acts_until()), (None, None));
    assert!(it.it.held().is_none() && !it.it.is_over());
    assert_eq!(it.within(), 2000);
    assert_eq!(it.hear(1100, Answer::Done), "resigned");
    assert!(it.it.is_over());
    assert_eq!((it.due_at(), it.killed_at()), (None, None));
}

#[test]
fn a_seat_that_another_has_already_is_given_back_too() {
    let mut it = Bench::holding();
    assert_eq!(it.resign(1000), "delete 1 epoch 1");
    assert_eq!(it.hear(1100, Answer::Lost), "resigned");
}

#[test]
fn errors_do_not_keep_it_longer_than_a_quarter() {
    let mut it = Bench::holding();
    assert_eq!(it.resign(1000), "delete 1 epoch 1");
    let mut now = 1000;
    loop {
        let told = it.hear(now + 100, Answer::Unknown);
        now = u64::try_from(it.due_at().unwrap_or_default()).unwrap();
        if now >= 3000 || told == "resigned" {
            break;
        }
        assert_eq!(it.due(now), "delete 1 epoch 1");
        assert_eq!(it.within(), 3000 - u128::from(now));
    }
    assert_eq!(now, 3000);
    assert_eq!(it.due(now), "resigned");
}

#[test]
fn a_deletion_that_hangs_is_left_behind_after_a_quarter() {
    let mut it = Bench::holding();
    assert_eq!(it.resign(1000), "delete 1 epoch 1");
    assert_eq!(it.due_at(), Some(3000));
    assert_eq!(it.due(2999), "");
    assert_eq!(it.hear(3000, Answer::Unknown), "resigned");
}

#[test]
fn a_renewal_under_way_does_not_disturb_the_end() {
    let mut it = Bench::holding();
    assert_eq!(it.due(2000), "renew 1 epoch 1");
    assert_eq!(it.resign(2100), "delete 1 epoch 1");
    assert_eq!(it.hear_of(2200, 2, Answer::Lost), "");
    assert_eq!(it.changed(2200, 1), "");
    assert_eq!(it.resign(2200), "");
    assert_eq!(it.hear(2300, Answer::Done), "resigned");
    assert_eq!(it.resign(2400), "");
}

#[test]
fn one_that_seeks_leaves_at_once() {
    let mut it = Bench::seeking();
    assert_eq!(it.resign(10), "resigned");
    assert!(it.it.is_over());
    assert_eq!(it.hear(20, vacant(0)), "");

    let mut it = Bench::seeking();
    assert_eq!(it.hear(10, held(OTHER, 1, 5000)), "");
    assert_eq!(it.resign(20), "resigned");
}

#[test]
fn an_insert_under_way_is_deleted() {
    let mut it = Bench::seeking();
    assert_eq!(it.hear(0, vacant(0)), "insert 1 epoch 1");
    assert_eq!(it.resign(100), "delete 1 epoch 1");
    // That it was won is of no interest any more.
    assert_eq!(it.hear_of(200, 1, Answer::Done), "");
    assert!(!it.it.may_act(at(200)) && it.killed_at().is_none());
    assert_eq!(it.hear(300, Answer::Done), "resigned");
}

#[test]
fn an_insert_without_answer_is_deleted() {
    let mut it = Bench::seeking();
    assert_eq!(it.hear(0, vacant(0)), "insert 1 epoch 1");
    assert_eq!(it.hear(100, Answer::Unknown), "read 1");
    assert_eq!(it.resign(200), "delete 1 epoch 1");
    assert_eq!(it.hear(300, Answer::Lost), "resigned");

    let mut it = Bench::seeking();
    assert_eq!(it.hear(0, vacant(0)), "insert 1 epoch 1");
    assert_eq!(it.hear(100, Answer::Unknown), "read 1");
    assert_eq!(it.hear(150, vacant(0)), "");
    assert_eq!(it.resign(200), "delete 1 epoch 1");
}

#[test]
fn the_killer_fires_three_quarters_after_the_last_good_renewal_or_a_quarter_after_the_loss() {
    let lease = Lease::new(LEASE);
    assert_eq!(lease.kill_at(at(1000), None), at(7000));
    assert_eq!(lease.kill_at(at(1000), Some(at(2000))), at(4000));
    assert_eq!(lease.kill_at(at(1000), Some(at(5000))), at(7000));
    assert_eq!(lease.kill_at(at(1000), Some(at(90_000))), at(7000));
}

#[test]
fn what_a_read_proves_is_never_more_than_the_store_will_keep() {
    let lease = Lease::new(LEASE);
    let proves = |read, remaining| lease.sent_by(at(read), Duration::from_millis(remaining));
    assert_eq!(proves(10_000, 8000), at(10_000));
    assert_eq!(proves(10_000, 7000), at(9000));
    assert_eq!(proves(10_000, 0), at(2000));
    assert_eq!(proves(10_000, 99_000), at(10_000));
    assert_eq!(proves(1000, 0), at(0));
}
