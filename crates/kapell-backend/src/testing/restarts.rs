//! What an agent finds of the one before.

use super::rig::{MAIN, Rig};
use crate::containers::FoundProcess;

pub(crate) async fn running_and_ended_processes_are_found_again(rig: Rig) {
    let script = "echo before; while [ ! -e go ]; do sleep 0.01; done; echo after; exit 4";
    rig.start("runs", script).await;
    rig.says("runs", MAIN, "before").await;
    let exit = rig.run_to_end("ends", "echo words; exit 5").await;
    rig.start("stops", "sleep 100").await;
    let (rig, mut found) = rig.restart().await;
    found.sort_by(|one, other| one.guid.cmp(&other.guid));
    let guids: Vec<_> = found.iter().map(|each| each.guid.clone()).collect();
    assert_eq!(guids, ["ends", "runs", "stops"].map(|name| rig.guid(name)));
    assert_eq!(found[1].tag, b"tag\0of runs");
    let process = |exit| vec![FoundProcess { name: MAIN.to_owned(), exit }];
    assert_eq!(found[0].processes, process(Some(exit.clone())));
    assert_eq!(found[1].processes, process(None));
    assert_eq!(rig.ended("ends", MAIN).await, exit);
    rig.touch("runs", "go").await;
    assert_eq!(rig.ended("runs", MAIN).await.code, Some(4));
    assert_eq!(rig.text("runs", MAIN), "before\nafter\n");
    rig.driver.stop(&rig.guid("stops"), MAIN).await.unwrap();
    assert!(rig.ended("stops", MAIN).await.stopped);
    rig.run("runs", Rig::process("more", "exit 6")).await;
    assert_eq!(rig.ended("runs", "more").await.code, Some(6), "it can be used as before");
    rig.clean_up(&["runs", "ends", "stops"]).await;
}

pub(crate) async fn a_container_without_processes_is_found_again(rig: Rig) {
    rig.create(rig.spec("empty")).await;
    let (rig, found) = rig.restart().await;
    assert_eq!((found.len(), found[0].processes.len()), (1, 0));
    rig.run("empty", Rig::process(MAIN, "exit 3")).await;
    assert_eq!(rig.ended("empty", MAIN).await.code, Some(3));
    rig.clean_up(&["empty"]).await;
}
