use kapell_node::conductor::Step;

use super::order::fault;
use super::{explore, explore_few_switches, replay};

/// `KAPELL_SIM_SCHEDULES` asks for more.
const SCHEDULES: usize = 4000;

fn schedules() -> usize {
    std::env::var("KAPELL_SIM_SCHEDULES").map_or(SCHEDULES, |text| text.parse().expect("a number"))
}

/// A failure prints its schedule; `KAPELL_SIM_SCHEDULE=…` plays it again.
#[test]
fn every_order_ends_well() {
    match std::env::var("KAPELL_SIM_SCHEDULE") {
        Ok(schedule) => replay(&schedule),
        Err(_) => explore(4, schedules()),
    }
}

#[test]
fn every_order_with_few_switches_ends_well() {
    explore_few_switches(4, 3, schedules());
}

#[test]
fn a_wrong_order_is_noticed() {
    use Step::{
        Acquired, ElectionsCleaned, Launched, MonitorStarted, MonitorStopped, MonitorStopping,
        ServicesStopped, ServicesStopping, ShutDown, ShutdownAsked, ShutdownerStarted,
    };
    let good = [
        Launched,
        ShutdownerStarted,
        Acquired,
        MonitorStarted,
        ShutdownAsked,
        ServicesStopping,
        ServicesStopped,
        MonitorStopping,
        MonitorStopped,
        ElectionsCleaned,
        ShutDown,
        ShutdownAsked,
    ];
    assert_eq!(fault(&good), None);
    // The last step of a life, asking, may come at any time; any other two are in order.
    let mut wrong = 0;
    for at in 5..10 {
        let mut steps = good;
        steps.swap(at, at + 1);
        wrong += usize::from(fault(&steps).is_some());
    }
    // Only the monitor may stop before it is told to: it has seen a loss.
    assert_eq!(wrong, 4);
    let twice = [&good[..], &[ShutDown]].concat();
    assert_eq!(fault(&twice).as_deref(), Some("ShutDown came twice"));
}
