//! How processes are stopped, and that nothing of them is left.

use std::time::{Duration, Instant};

use super::rig::{MAIN, Rig, until};
use crate::containers::{Exit, Process};

/// A child, and a daemon in a session of its own that heeds nothing and has no mark in its environment.
fn family(rig: &Rig) -> String {
    let loops = format!("while :; do sleep 0.02; done; : {}", rig.token);
    format!(
        "sh -c '{loops}' & \
         env -i PATH=$PATH setsid sh -c 'trap \"\" TERM HUP; echo daemon; {loops}' & "
    )
}

pub(crate) async fn a_program_that_heeds_sigterm_ends_by_itself(rig: Rig) {
    let script = "trap 'echo bye >&2; exit 7' TERM; echo ready; while :; do sleep 0.02; done";
    rig.start("kind", script).await;
    rig.says("kind", MAIN, "ready").await;
    rig.driver.stop(&rig.guid("kind"), MAIN).await.unwrap();
    let want =
        Exit { code: Some(7), stopped: true, last_words: "bye".to_owned(), ..Exit::default() };
    assert_eq!(rig.ended("kind", MAIN).await, want);
    // Who has ended may be stopped again.
    rig.driver.stop(&rig.guid("kind"), MAIN).await.unwrap();
    rig.clean_up(&["kind"]).await;
}

pub(crate) async fn a_program_that_ignores_sigterm_is_killed_after_its_grace_time(rig: Rig) {
    let script = "trap '' TERM; echo ready; while :; do sleep 0.02; done";
    let stop_grace = Duration::from_millis(300);
    rig.create(rig.spec("deaf")).await;
    rig.run("deaf", Process { stop_grace, ..Rig::process(MAIN, script) }).await;
    rig.says("deaf", MAIN, "ready").await;
    let start = Instant::now();
    rig.driver.stop(&rig.guid("deaf"), MAIN).await.unwrap();
    let exit = rig.ended("deaf", MAIN).await;
    assert_eq!((exit.signal, exit.stopped), (Some(9), true));
    assert!(start.elapsed() >= stop_grace && start.elapsed() < Duration::from_secs(5));
    rig.clean_up(&["deaf"]).await;
}

pub(crate) async fn nothing_outlives_a_sole_process(rig: Rig) {
    let script = format!("{} while [ ! -e go ]; do sleep 0.01; done; exit 3", family(&rig));
    rig.start("family", &script).await;
    rig.says("family", MAIN, "daemon").await;
    until(|| Rig::count(&rig.token) >= 3).await;
    rig.touch("family", "go").await;
    let exit = rig.ended("family", MAIN).await;
    assert_eq!((exit.code, exit.stopped), (Some(3), false));
    assert_eq!(Rig::count(&rig.token), 0);
    rig.clean_up(&["family"]).await;
}

pub(crate) async fn delete_ends_daemons(rig: Rig) {
    rig.start("gone", &format!("trap '' TERM; {} wait", family(&rig))).await;
    rig.says("gone", MAIN, "daemon").await;
    until(|| Rig::count(&rig.token) >= 3).await;
    let start = Instant::now();
    rig.driver.delete(&rig.guid("gone")).await.unwrap();
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    assert_eq!(Rig::count(&rig.token), 0);
    assert!(rig.logs("gone", MAIN).exists(), "its logs stay");
    rig.clean_up(&[]).await;
}
