use kapell_core::board::{ActualLrp, ActualState, LrpKey};
use kapell_core::seams::Timestamp;

use super::super::wait::{Progress, judge};

fn instance(index: u32, state: ActualState) -> ActualLrp {
    let key = LrpKey { process_guid: "web".into(), index };
    ActualLrp { state, ..ActualLrp::unclaimed(&key, "d".into(), Timestamp(0)) }
}

#[test]
fn all_that_are_desired_must_run() {
    use ActualState::{Running, Unclaimed};
    let waiting = |text: &str| Progress::Waiting(text.to_owned());
    assert_eq!(judge("web", 0, None, &[]), Progress::Done);
    assert_eq!(judge("web", 1, None, &[]), waiting("0 of 1 instances run; web/0 is not there yet"));
    let mut stuck = instance(1, Unclaimed);
    stuck.placement_error = Some("insufficient resources: memory".into());
    let both = [instance(0, Running), stuck];
    let want = "1 of 2 instances run; web/1 is UNCLAIMED: insufficient resources: memory";
    assert_eq!(judge("web", 2, None, &both), waiting(want));
    assert_eq!(judge("web", 2, Some(0), &both), Progress::Done);
    assert_eq!(judge("web", 1, None, &both), Progress::Done);
    let failed = judge("web", 2, Some(2), &both);
    assert_eq!(failed, Progress::Failed("web/2 is not desired: web has 2 instances".into()));
}

#[test]
fn an_evacuating_twin_does_not_count() {
    let twin = ActualLrp { evacuating: true, ..instance(0, ActualState::Running) };
    let waiting = |text: &str| Progress::Waiting(text.to_owned());
    let want =
        "0 of 1 instances run, 1 runs on a cell that is being evacuated; web/0 is not there yet";
    assert_eq!(judge("web", 1, None, std::slice::from_ref(&twin)), waiting(want));
    let other = ActualLrp { evacuating: true, ..instance(1, ActualState::Running) };
    let mut all = vec![twin, other, instance(0, ActualState::Claimed)];
    let want = "0 of 2 instances run, 2 run on a cell that is being evacuated; web/0 is CLAIMED";
    assert_eq!(judge("web", 2, None, &all), waiting(want));
    // Moved: the twin beside it no longer matters.
    all[2].state = ActualState::Running;
    let want =
        "1 of 2 instances run, 1 runs on a cell that is being evacuated; web/1 is not there yet";
    assert_eq!(judge("web", 2, None, &all), waiting(want));
    assert_eq!(judge("web", 1, None, &all), Progress::Done);
}
