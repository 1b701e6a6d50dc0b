//! Containers of other users.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use nix::unistd::geteuid;

use super::lab::{ESCAPES, Job, Lab, escaped, is_alive, is_root, own_user};
use crate::containers::{Containers as _, User};

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
         cat {0}/about {0}/run/main/spec; ls {0} {0}/run; exit 3",
        home.display()
    );
    lab.start(Job { user: USER, ..lab.job("user", &script) }).await;
    assert_eq!(lab.ended("user").await.code, Some(3));
    let want = format!(
        "300001\n300002\n300002\nCapEff:\t0000000000000000\nwrote\n{}/work\n",
        home.display()
    );
    assert_eq!(lab.text("user"), want, "it neither reads its spec nor its home");
    let mine = fs::metadata(home.join("work/mine")).unwrap();
    assert_eq!((mine.uid(), mine.gid()), (300_001, 300_002));
    for name in ["about", "run", "run/main", "run/main/spec", "run/main/exit", "run/main/pid"] {
        assert_eq!(fs::metadata(home.join(name)).unwrap().mode() & 0o077, 0, "{name}");
    }
    // It dies with its shim although it has become another user.
    lab.start(Job { user: USER, ..lab.job("dies", "sleep 100") }).await;
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
    let spec = Job { user: USER, dir: Some(closed.clone()), ..lab.job("closed", "pwd") };
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
    let why = lab.why_not(Job { user: USER, ..lab.job("other", "true") }).await;
    assert!(why.starts_with("only root may run a container as user 300001"), "{why}");
    lab.clean_up().await;
}

#[tokio::test]
async fn whatever_runs_as_its_own_user_ends_with_it() {
    if !is_root("users::whatever_runs_as_its_own_user_ends_with_it") {
        return;
    }
    let lab = Lab::new();
    let script = format!("{ESCAPES} wait");
    lab.start(Job { user: own_user(), ..lab.job("swept", &script) }).await;
    let pid = escaped(&lab, "swept").await;
    assert!(is_alive(pid));
    let shim = nix::unistd::Pid::from_raw(lab.pid("swept", 0));
    nix::sys::signal::kill(shim, nix::sys::signal::Signal::SIGKILL).unwrap();
    assert!(lab.ended("swept").await.trouble.is_some());
    assert!(!is_alive(pid), "it is found by its user");
    // One that is no descendant at all, such as what a timer of the system has started.
    let user = own_user();
    let User::Id { uid, .. } = user else { unreachable!() };
    let mut stranger = std::os::unix::process::CommandExt::uid(
        std::process::Command::new("/bin/sleep").arg("100"),
        uid,
    )
    .spawn()
    .unwrap();
    lab.start(Job { user, ..lab.job("ends", "exit 3") }).await;
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
    let User::Id { uid, gid, .. } = own_user() else { unreachable!() };
    let user = User::Id { uid, gid, own: false };
    let mut stranger = std::os::unix::process::CommandExt::uid(
        std::process::Command::new("/bin/sleep").arg("100"),
        uid,
    )
    .spawn()
    .unwrap();
    for (name, script) in [("ends", "exit 3"), ("killed", "sleep 100")] {
        lab.start(Job { user: user.clone(), ..lab.job(name, script) }).await;
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
    let script = "echo 42 > answer; ln -s /etc/shadow link";
    lab.start(Job { user: USER, ..lab.job("own", script) }).await;
    lab.ended("own").await;
    // As if somebody else had put it there.
    fs::write(lab.home("own").join("work/other"), "x").unwrap();
    let read = async |name: &str, file: &str| {
        let read = lab.driver.read_own(&lab.guid(name), file, 10).await;
        read.map_err(|error| std::error::Error::source(&error).unwrap().to_string())
    };
    assert_eq!(read("own", "answer").await.unwrap(), b"42\n");
    assert!(read("own", "link").await.unwrap_err().contains("symbolic link"));
    let why = read("own", "other").await.unwrap_err();
    assert_eq!(why, "it belongs to user 0, not to the task's user 300001");
    lab.clean_up().await;
}
