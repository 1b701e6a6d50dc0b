//! Containers of other users.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use nix::unistd::geteuid;

use super::lab::{Lab, is_alive, is_root};
use crate::containers::{Containers as _, Spec, User};

const USER: User = User::Id { uid: 300_001, gid: 300_002, own: false };

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

/// Others run tests on this machine, too, and whoever has this user is killed.
fn own_user(at: u32) -> User {
    let uid = 1_000_000_000 + std::process::id() * 4 + at;
    User::Id { uid, gid: uid, own: true }
}

/// Leaves the session and the shim behind, without any mark, and tells its number.
const ESCAPES: &str = "env -i /usr/bin/setsid /bin/sh -c 'echo escaped $$; exec /bin/sleep 100' & ";

async fn escaped(lab: &Lab, name: &str) -> i32 {
    lab.says(name, "escaped ").await;
    lab.says(name, "\n").await;
    lab.text(name).trim().rsplit(' ').next().unwrap().parse().unwrap()
}

#[tokio::test]
async fn whatever_runs_as_its_own_user_ends_with_it() {
    if !is_root("users::whatever_runs_as_its_own_user_ends_with_it") {
        return;
    }
    let lab = Lab::new();
    let script = format!("{ESCAPES} wait");
    lab.driver.run(Spec { user: own_user(0), ..lab.spec("swept", &script) }).await.unwrap();
    let pid = escaped(&lab, "swept").await;
    assert!(is_alive(pid));
    let shim = nix::unistd::Pid::from_raw(lab.pid("swept", 0));
    nix::sys::signal::kill(shim, nix::sys::signal::Signal::SIGKILL).unwrap();
    assert!(lab.ended("swept").await.trouble.is_some());
    assert!(!is_alive(pid), "it is found by its user");
    // One that is no descendant at all, such as what a timer of the system has started.
    let User::Id { uid, .. } = own_user(1) else { unreachable!() };
    let mut stranger = std::os::unix::process::CommandExt::uid(
        std::process::Command::new("/bin/sleep").arg("100"),
        uid,
    )
    .spawn()
    .unwrap();
    lab.driver.run(Spec { user: own_user(1), ..lab.spec("ends", "exit 3") }).await.unwrap();
    assert_eq!(lab.ended("ends").await.code, Some(3));
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&stranger.wait().unwrap()), Some(9));
    lab.clean_up().await;
}

#[tokio::test]
async fn others_of_a_user_that_is_not_its_own_are_left_alone() {
    if !is_root("users::others_of_a_user_that_is_not_its_own_are_left_alone") {
        return;
    }
    let lab = Lab::new();
    let User::Id { uid, gid, .. } = own_user(2) else { unreachable!() };
    let user = User::Id { uid, gid, own: false };
    let mut stranger = std::os::unix::process::CommandExt::uid(
        std::process::Command::new("/bin/sleep").arg("100"),
        uid,
    )
    .spawn()
    .unwrap();
    for (name, script) in [("ends", "exit 3"), ("killed", "sleep 100")] {
        lab.driver.run(Spec { user: user.clone(), ..lab.spec(name, script) }).await.unwrap();
        if name == "killed" {
            let shim = nix::unistd::Pid::from_raw(lab.pid(name, 0));
            nix::sys::signal::kill(shim, nix::sys::signal::Signal::SIGKILL).unwrap();
        }
        lab.ended(name).await;
    }
    assert!(is_alive(stranger.id().cast_signed()));
    stranger.kill().unwrap();
    stranger.wait().unwrap();
    lab.clean_up().await;
}

#[tokio::test]
async fn only_files_of_its_user_are_read() {
    if !is_root("users::only_files_of_its_user_are_read") {
        return;
    }
    let lab = Lab::new();
    let own = Spec { user: USER, ..lab.spec("own", "echo 42 > answer; ln -s /etc/shadow link") };
    lab.driver.run(own).await.unwrap();
    lab.ended("own").await;
    let etc = Some(std::path::PathBuf::from("/etc"));
    lab.driver.run(Spec { user: USER, dir: etc, ..lab.spec("etc", "true") }).await.unwrap();
    lab.ended("etc").await;
    let read = async |name: &str, file: &str| {
        let read = lab.driver.read_own(&lab.guid(name), file, 10).await;
        read.map_err(|error| std::error::Error::source(&error).unwrap().to_string())
    };
    assert_eq!(read("own", "answer").await.unwrap(), b"42\n");
    assert!(read("own", "link").await.unwrap_err().contains("symbolic link"));
    let why = read("etc", "shadow").await.unwrap_err();
    assert_eq!(why, "it belongs to user 0, not to the task's user 300001");
    lab.clean_up().await;
}
