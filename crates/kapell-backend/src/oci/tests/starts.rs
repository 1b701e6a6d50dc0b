//! What does not start says why, and what the image says counts.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::containers::{Error, Process, Spec};
use crate::oci::kept::OWN_DIR;
use crate::oci::tests::lab::rig;
use crate::testing::{MAIN, Rig};

async fn why_not(rig: &Rig, path: &str) -> String {
    let process = Process { path: path.to_owned(), ..Rig::process(MAIN, "") };
    match rig.driver.run(&rig.guid("bad"), process).await.unwrap_err() {
        Error::Unstartable(why) => why,
        other @ (Error::Io { .. } | Error::Unknown(_) | Error::Absent(_)) => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_cannot_be_executed_is_told_in_words() {
    let Some(rig) = rig("what_cannot_be_executed_is_told_in_words") else { return };
    for sole in [true, false] {
        rig.create(Spec { sole, ..rig.spec("bad") }).await;
        assert_eq!(why_not(&rig, "no-such").await, "`no-such` was not found in PATH");
        assert_eq!(
            why_not(&rig, "/no/such").await,
            "`/no/such` is not there, or its interpreter is not"
        );
        assert_eq!(
            why_not(&rig, "/etc/not-a-program").await,
            "`/etc/not-a-program` may not be executed"
        );
        assert!(why_not(&rig, "/etc").await.starts_with("`/etc` "));
        let from = rig.dir.path().join("odd");
        fs::write(&from, "neither\n").unwrap();
        fs::set_permissions(&from, fs::Permissions::from_mode(0o755)).unwrap();
        rig.driver.put(&rig.guid("bad"), &from, "odd").await.unwrap();
        // The kernel finds out when the container runs already.
        let odd = Process { path: format!("{OWN_DIR}/odd"), ..Rig::process("odd", "") };
        rig.run("bad", odd).await;
        let exit = rig.ended("bad", "odd").await;
        assert!(exit.code != Some(0) && exit.last_words.contains("exec format error"), "{exit:?}");
        rig.run("bad", Rig::process(MAIN, "exit 3")).await;
        assert_eq!(rig.ended("bad", MAIN).await.code, Some(3), "all that leaves it usable");
        rig.driver.delete(&rig.guid("bad")).await.unwrap();
    }
    rig.clean_up(&[]).await;
}

#[tokio::test]
async fn a_rootfs_that_is_not_there_is_named_and_leaves_nothing() {
    let Some(rig) = rig("a_rootfs_that_is_not_there_is_named_and_leaves_nothing") else { return };
    for (rootfs, word) in [
        (None, "name a rootfs"),
        (Some("dir:///tmp/kapell-no-such-root"), "kapell-no-such-root"),
        (Some("dir:///etc"), "not allowed"),
    ] {
        let rootfs = rootfs.map(str::to_owned);
        let error = rig.driver.create(Spec { rootfs, ..rig.spec("none") }).await.unwrap_err();
        assert!(matches!(&error, Error::Unstartable(why) if why.contains(word)), "{error:?}");
        assert!(!rig.dir.path().join("agent/containers").join(rig.guid("none")).exists());
    }
    rig.clean_up(&[]).await;
}
