//! What is known of work of other hosts, and of before the machine was started.

use kapell_core::run::{Evidence, StopKind};

use super::rig::Lab;
use crate::scheduler::backend::Backend as _;
use crate::scheduler::conformance::{Rig as _, attempt};

fn unknown(evidence: Evidence) -> String {
    let Evidence::Unknown { why } = evidence else { panic!("{evidence:?}") };
    why
}

#[tokio::test]
async fn of_work_of_another_host_nothing_is_known() {
    let (here, there) = (Lab::new().await, Lab::new().await);
    let one = attempt("one", 0);
    let (place, id) = (there.backend.place(), there.backend.place());
    let id = id.split_once('@').unwrap().0;
    let why = unknown(here.backend.find(&one, &place).await);
    assert_eq!(why, format!("it was launched on host {id}, whose files are not here"));
    let left = here.backend.stop(&one, &place, StopKind::AtOnce).await.unwrap_err();
    assert!(left.starts_with("it may still run: it was launched on host"), "{left}");
    unknown(here.backend.find(&one, "").await);
    here.close().await;
    there.close().await;
}

#[tokio::test]
async fn after_a_start_of_the_machine_what_is_not_there_is_not_known_to_be_absent() {
    let lab = Lab::new().await;
    let place = lab.backend.place();
    let before =
        format!("{}@00000000-0000-0000-0000-000000000000", place.split_once('@').unwrap().0);
    let one = attempt("one", 0);
    assert_eq!(lab.backend.find(&one, &place).await, Evidence::Absent);
    let why = unknown(lab.backend.find(&one, &before).await);
    assert_eq!(why, "the machine was started anew since it was to be launched");
    lab.backend.stop(&one, &before, StopKind::Graceful).await.unwrap();
    lab.close().await;
}
