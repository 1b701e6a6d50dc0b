use super::world::*;
use crate::board::crash::{dance, restart_at};
use crate::board::request::Report;
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

/// Copied by hand from the ruling. A crash of an instance that did not run for long: its count before,
/// its state, its count after, and the seconds after which it is restarted.
const CRASHES: [(u32, ActualState, u32, Option<u64>); 13] = [
    (0, ActualState::Unclaimed, 1, None),
    (1, ActualState::Unclaimed, 2, None),
    (2, ActualState::Unclaimed, 3, None),
    (3, ActualState::Crashed, 4, Some(60)),
    (4, ActualState::Crashed, 5, Some(120)),
    (5, ActualState::Crashed, 6, Some(240)),
    (6, ActualState::Crashed, 7, Some(480)),
    (7, ActualState::Crashed, 8, Some(960)),
    (8, ActualState::Crashed, 9, Some(960)),
    (198, ActualState::Crashed, 199, Some(960)),
    (199, ActualState::Crashed, 200, Some(960)),
    (200, ActualState::Crashed, 201, None),
    (201, ActualState::Crashed, 202, None),
];

#[test]
fn every_crash_leads_to_what_is_ruled() {
    let restart = Request::RestartCrashed { key: key(0) };
    for (before, state, after, wait) in CRASHES {
        for lrp in [claimed("a", "x"), running("a", "x")] {
            let mut world = World::desiring(1).with(ActualLrp { crash_count: before, ..lrp });
            world.pass(seconds(299));
            let (domain, reason) = ("d".into(), "r".to_owned());
            let (instance_guid, incarnation) = ("x".into(), None);
            let report =
                Report::Crashed { key: key(0), instance_guid, domain, incarnation, reason };
            let effects = world.report("a", report).unwrap().effects;
            let lrp = world.instance(0).unwrap();
            assert_eq!((lrp.state, lrp.crash_count), (state, after), "{before}");
            assert_eq!(lrp.since, world.now, "{before}: it counts from the crash");
            let at_once = state == ActualState::Unclaimed;
            assert_eq!(effects, if at_once { vec![start(0)] } else { vec![] }, "{before}");
            if at_once {
                continue;
            }
            world.pass(seconds(wait.unwrap_or(10_000_000) - 1));
            assert_eq!(world.effects(&restart), [], "{before}: not yet");
            world.pass(seconds(1));
            let due = wait.map(|_| start(0));
            assert_eq!(world.effects(&restart), due.into_iter().collect::<Vec<_>>(), "{before}");
        }
    }
}

/// However often it crashed before.
#[test]
fn a_crash_after_five_minutes_of_running_is_a_first_one() {
    for before in [0, 1, 2, 3, 8, 200, 500] {
        let ran = ActualLrp { crash_count: before, ..running("a", "x") };
        let danced = dance(Some(&ran), NOW.after(seconds(300)), &Settings::default());
        assert_eq!((danced.crash_count, danced.state), (1, ActualState::Unclaimed));
    }
}
