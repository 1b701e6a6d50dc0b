//! Files that go into a container and come out of it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use super::rig::{MAIN, Rig};

fn why(error: &crate::containers::Error) -> String {
    std::error::Error::source(error).map_or(error.to_string(), ToString::to_string)
}

pub(crate) async fn what_is_put_is_the_users_own(rig: Rig) {
    let from = rig.dir.path().join("from");
    fs::write(&from, "#!/bin/sh\necho it runs\n").unwrap();
    rig.create(rig.spec("put")).await;
    let guid = rig.guid("put");
    rig.driver.put(&guid, &from, "plain").await.unwrap();
    fs::set_permissions(&from, fs::Permissions::from_mode(0o700)).unwrap();
    rig.driver.put(&guid, &from, "a/b/./tool").await.unwrap();
    fs::write(&from, "second\n").unwrap();
    rig.driver.put(&guid, &from, "plain").await.unwrap();
    let script = "./a/b/tool; cat plain; [ -O plain ] && [ -O a/b ] && [ ! -x a/none ] && echo own; \
                  echo more >> plain && ls -A";
    rig.run("put", Rig::process(MAIN, script)).await;
    assert_eq!(rig.ended("put", MAIN).await.code, Some(0));
    assert_eq!(rig.text("put", MAIN), "it runs\nsecond\nown\na\nplain\n");
    let error = rig.driver.put(&guid, &rig.dir.path().join("absent"), "x").await.unwrap_err();
    assert!(why(&error).contains("No such file"), "{error:?}");
    rig.clean_up(&["put"]).await;
}

pub(crate) async fn what_it_leaves_can_be_read(rig: Rig) {
    rig.run_to_end("left", "mkdir d; echo 0123456789abc > d/answer").await;
    let guid = rig.guid("left");
    assert_eq!(rig.driver.read_own(&guid, "d/answer", 10).await.unwrap(), b"0123456789");
    assert!(rig.driver.read_own(&guid, "absent", 10).await.is_err());
    let (rig, _) = rig.restart().await;
    assert_eq!(rig.driver.read_own(&guid, "d/answer", 2).await.unwrap(), b"01");
    rig.clean_up(&["left"]).await;
}

pub(crate) async fn no_link_is_followed(rig: Rig) {
    let outside = rig.dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::set_permissions(&outside, fs::Permissions::from_mode(0o777)).unwrap();
    fs::write(outside.join("secret"), "secret").unwrap();
    let script = format!(
        "ln -s {0} dir; ln -s {0}/secret file; ln -s / root; mkfifo pipe; echo done",
        outside.display()
    );
    assert_eq!(rig.run_to_end("links", &script).await.code, Some(0));
    let guid = rig.guid("links");
    for file in ["dir/secret", "file", "root/etc/passwd", "../about", "/etc/passwd", "pipe", "."] {
        assert!(rig.driver.read_own(&guid, file, 10).await.is_err(), "{file}");
    }
    let from = rig.dir.path().join("from");
    fs::write(&from, "new").unwrap();
    for file in ["dir/new", "root/tmp/new", "../new", "/tmp/new", ".", ""] {
        assert!(rig.driver.put(&guid, &from, file).await.is_err(), "{file}");
    }
    // The link itself is replaced, not what it leads to.
    rig.driver.put(&guid, &from, "file").await.unwrap();
    assert_eq!(rig.driver.read_own(&guid, "file", 10).await.unwrap(), b"new");
    assert_eq!(fs::read(outside.join("secret")).unwrap(), b"secret");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    rig.clean_up(&["links"]).await;
}
