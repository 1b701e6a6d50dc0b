use super::world::*;
use crate::board::crash::{dance, restart_at};
use crate::board::*;

/// Copied by hand from the ruling: the count as it stands in the record, and the wait in seconds.
const WAITS: [(u32, u64); 8] =
    [(4, 60), (5, 120), (6, 240), (7, 480), (8, 960), (9, 960), (100, 960), (200, 960)];

#[test]
fn a_crashed_instance_waits_longer_after_each_crash() {
    let settings = Settings::default();
    for (count, wait) in WAITS {
        assert_eq!(
            restart_at(&crashed(count), &settings),
            Some(NOW.after(seconds(wait))),
            "{count}"
        );
    }
}

#[test]
fn after_more_than_200_crashes_an_instance_is_never_restarted() {
    assert_eq!(restart_at(&crashed(201), &Settings::default()), None);
    assert_eq!(restart_at(&crashed(u32::MAX), &Settings::default()), None);
}

#[test]
fn only_a_crashed_instance_waits_for_a_restart() {
    let settings = Settings::default();
    for lrp in [unclaimed(), claimed("a", "x"), running("a", "x")] {
        assert_eq!(restart_at(&ActualLrp { crash_count: 5, ..lrp }, &settings), None);
    }
}

#[test]
fn the_first_three_crashes_lead_to_a_restart_at_once() {
    let settings = Settings::default();
    for count in 0..=5 {
        let lrp = ActualLrp { crash_count: count, ..claimed("a", "x") };
        let danced = dance(Some(&lrp), NOW, &settings);
        assert_eq!(danced.crash_count, count + 1);
        let want = if count < 3 { ActualState::Unclaimed } else { ActualState::Crashed };
        assert_eq!(danced.state, want, "{count}");
    }
}

#[test]
fn crashes_are_forgotten_after_five_minutes_of_running() {
    let settings = Settings::default();
    let ran = ActualLrp { crash_count: 7, ..running("a", "x") };
    assert_eq!(dance(Some(&ran), NOW.after(seconds(299)), &settings).crash_count, 8);
    assert_eq!(dance(Some(&ran), NOW.after(seconds(300)), &settings).crash_count, 1);
    let never_ran = ActualLrp { crash_count: 7, ..claimed("a", "x") };
    assert_eq!(dance(Some(&never_ran), NOW.after(seconds(300)), &settings).crash_count, 8);
}
