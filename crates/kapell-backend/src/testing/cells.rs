//! Several processes in one container.

use super::rig::{Rig, until};
use crate::containers::Spec;

/// With three processes that run until they find a file with their name, and know each other's files.
async fn three(rig: &Rig) {
    rig.create(Spec { sole: false, ..rig.spec("cell") }).await;
    for (code, name) in ["a", "b", "c"].into_iter().enumerate() {
        let script = format!(
            "sleep 100 & setsid sh -c 'while :; do sleep 0.02; done; : {0}{name}' & \
             echo {name} > said-{name}; while [ ! -e {name} ]; do sleep 0.01; done; ls said-*; exit {code}",
            rig.token
        );
        rig.run("cell", Rig::process(name, &script)).await;
    }
    for name in ["a", "b", "c"] {
        until(|| Rig::count(&format!("{}{name}", rig.token)) >= 2).await;
    }
}

pub(crate) async fn several_processes_run_side_by_side(rig: Rig) {
    three(&rig).await;
    for (code, name) in [(2, "c"), (0, "a"), (1, "b")] {
        rig.touch("cell", name).await;
        assert_eq!(rig.ended("cell", name).await.code, Some(code));
        assert!(rig.text("cell", name).contains("said-b"), "they share a directory");
    }
    rig.clean_up(&["cell"]).await;
}

pub(crate) async fn one_ends_and_the_others_go_on(rig: Rig) {
    three(&rig).await;
    rig.touch("cell", "b").await;
    assert_eq!(rig.ended("cell", "b").await.code, Some(1));
    assert_eq!(Rig::count(&format!("{}b", rig.token)), 0, "with all that it had started");
    for name in ["a", "c"] {
        assert!(Rig::count(&format!("{}{name}", rig.token)) >= 2, "{name} and its daemon");
    }
    let (rig, found) = rig.restart().await;
    let mut exits: Vec<_> = found[0].processes.iter().collect();
    exits.sort_by(|one, other| one.name.cmp(&other.name));
    let codes: Vec<_> = exits.iter().map(|each| each.exit.as_ref().map(|exit| exit.code)).collect();
    assert_eq!(codes, [None, Some(Some(1)), None]);
    rig.touch("cell", "a").await;
    assert_eq!(rig.ended("cell", "a").await.code, Some(0));
    rig.clean_up(&["cell"]).await;
}

pub(crate) async fn one_is_stopped_and_the_others_go_on(rig: Rig) {
    three(&rig).await;
    rig.driver.stop(&rig.guid("cell"), "a").await.unwrap();
    let exit = rig.ended("cell", "a").await;
    assert_eq!((exit.signal, exit.stopped), (Some(15), true));
    rig.touch("cell", "c").await;
    let exit = rig.ended("cell", "c").await;
    assert_eq!((exit.code, exit.stopped), (Some(2), false));
    rig.clean_up(&["cell"]).await;
}

pub(crate) async fn delete_ends_all_processes(rig: Rig) {
    three(&rig).await;
    rig.driver.delete(&rig.guid("cell")).await.unwrap();
    assert_eq!(Rig::count(&rig.token), 0);
    rig.clean_up(&[]).await;
}
