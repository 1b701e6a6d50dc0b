//! Containers of other users.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use nix::unistd::geteuid;

use super::lab::{Lab, is_root};
use crate::containers::{Containers as _, Spec, User};

const USER: User = User::Id { uid: 300_001, gid: 300_002 };

#[tokio::test]
async fn root_runs_each_as_its_own_user() {
    if !is_root("users::root_runs_each_as_its_own_user") {
        return;
    }
    let lab = Lab::new();
    let home = lab.home("user");
    let script = format!(
        "id -u; id -g; id -G; grep CapEff /proc/self/status; touch mine && echo wrote; pwd; \
         cat {0}/spec; ls {0}; exit 3",
        home.display()
    );
    lab.driver.run(Spec { user: USER, ..lab.spec("user", &script) }).await.unwrap();
    assert_eq!(lab.ended("user").await.code, Some(3));
    let want = format!(
        "300001\n300002\n300002\nCapEff:\t0000000000000000\nwrote\n{}/work\n",
        home.display()
    );
    assert_eq!(lab.text("user"), want, "it neither reads its spec nor its home");
    let mine = fs::metadata(home.join("work/mine")).unwrap();
    assert_eq!((mine.uid(), mine.gid()), (300_001, 300_002));
    for name in ["spec", "tag", "exit", "pid"] {
        assert_eq!(fs::metadata(home.join(name)).unwrap().mode() & 0o077, 0, "{name}");
    }
    // It dies with its shim although it has become another user.
    lab.driver.run(Spec { user: USER, ..lab.spec("dies", "sleep 100") }).await.unwrap();
    let shim = nix::unistd::Pid::from_raw(lab.pid("dies", 0));
    nix::sys::signal::kill(shim, nix::sys::signal::Signal::SIGKILL).unwrap();
    assert!(lab.ended("dies").await.trouble.is_some());
    lab.clean_up().await;
}

#[tokio::test]
async fn a_directory_is_entered_as_its_user() {
    if !is_root("users::a_directory_is_entered_as_its_user") {
        return;
    }
    let lab = Lab::new();
    let closed = lab.dir.path().join("closed");
    fs::create_dir(&closed).unwrap();
    let mode = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o700);
    fs::set_permissions(&closed, mode).unwrap();
    let spec = Spec { user: USER, dir: Some(closed.clone()), ..lab.spec("closed", "pwd") };
    let want = format!("directory `{}` may not be entered", closed.display());
    assert_eq!(lab.why_not(spec).await, want);
    lab.clean_up().await;
}

#[tokio::test]
async fn only_root_may_choose_users() {
    if geteuid().is_root() {
        super::lab::skip("users::only_root_may_choose_users", "is only seen when not root");
        return;
    }
    let lab = Lab::new();
    let why = lab.why_not(Spec { user: USER, ..lab.spec("other", "true") }).await;
    assert!(why.starts_with("only root may run a container as user 300001"), "{why}");
    lab.clean_up().await;
}
