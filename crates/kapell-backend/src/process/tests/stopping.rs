//! How containers are stopped, and that nothing of them is left.

use std::time::{Duration, Instant};

use super::lab::{Lab, is_alive};
use crate::containers::Containers as _;

#[tokio::test]
async fn a_stop_right_after_the_start_is_not_lost() {
    let lab = Lab::new();
    for at in 0..20 {
        let name = format!("soon{at}");
        lab.run(&name, "sleep 100").await;
        lab.stop(&name).await;
        let exit = lab.ended(&name).await;
        assert_eq!((exit.signal, exit.stopped, exit.trouble), (Some(15), true, None));
    }
    lab.clean_up().await;
}

#[tokio::test]
async fn a_stopped_program_hears_that_it_is_to_end() {
    let lab = Lab::new();
    lab.run("frozen", "echo ready; kill -STOP $$; sleep 100").await;
    lab.says("frozen", "ready").await;
    lab.stop("frozen").await;
    assert_eq!(lab.ended("frozen").await.signal, Some(15));
    lab.clean_up().await;
}

/// A shell, a child, a daemon in a session of its own that heeds nothing, and one without its mark.
pub(super) const FAMILY: &str = "sleep 100 & echo child $!; \
    setsid sh -c 'trap \"\" TERM HUP; echo daemon $$; while :; do sleep 0.02; done' & \
    env -i /bin/sleep 100 & echo unmarked $!; ";

/// The numbers of child, daemon and the one without a mark, once all are told.
pub(super) async fn family(lab: &Lab, name: &str) -> Vec<i32> {
    for member in ["child ", "daemon ", "unmarked "] {
        lab.says(name, member).await;
    }
    lab.says(name, "\n").await;
    let text = lab.text(name);
    text.lines().filter_map(|line| line.split_once(' ')?.1.parse().ok()).collect()
}

#[tokio::test]
async fn nothing_outlives_the_main_process() {
    let lab = Lab::new();
    let script = format!("{FAMILY} while [ ! -e go ]; do sleep 0.01; done; exit 3");
    lab.run("family", &script).await;
    let members = family(&lab, "family").await;
    assert_eq!(members.len(), 3);
    assert!(members.iter().all(|pid| is_alive(*pid)));
    std::fs::write(lab.home("family").join("work/go"), "").unwrap();
    let exit = lab.ended("family").await;
    assert_eq!((exit.code, exit.stopped), (Some(3), false));
    assert!(!members.into_iter().any(is_alive));
    lab.clean_up().await;
}

#[tokio::test]
async fn a_daemon_that_holds_the_pipes_delays_nothing() {
    let lab = Lab::new();
    let start = Instant::now();
    let exit = lab.run_to_end("daemon", "setsid sleep 100 & echo here").await;
    assert_eq!((exit.code, exit.last_words.as_str()), (Some(0), "here"));
    assert!(start.elapsed() < Duration::from_secs(5));
    lab.clean_up().await;
}

#[tokio::test]
async fn delete_ends_all_of_it_at_once() {
    let lab = Lab::new();
    lab.run("gone", &format!("trap '' TERM; {FAMILY} wait")).await;
    let members = family(&lab, "gone").await;
    let (shim, program) = (lab.pid("gone", 0), lab.pid("gone", 1));
    // Directories that may not be changed do not stand in the way.
    let script = "mkdir -p work/a/b; chmod 0 work/a/b work/a";
    let changed = std::process::Command::new("sh")
        .args(["-c", script])
        .current_dir(lab.home("gone"))
        .status();
    assert!(changed.unwrap().success());
    let start = Instant::now();
    lab.driver.delete(&lab.guid("gone")).await.unwrap();
    assert!(start.elapsed() < Duration::from_secs(5));
    assert!(!members.into_iter().chain([shim, program]).any(is_alive));
    assert!(lab.logs("gone").exists(), "its logs stay");
    lab.clean_up().await;
}

#[tokio::test]
async fn a_stopped_shim_is_no_way_to_live_on() {
    let lab = Lab::new();
    let freeze = |pid| {
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGSTOP)
    };
    lab.run("stops", "sleep 100").await;
    freeze(lab.pid("stops", 0)).unwrap();
    lab.stop("stops").await;
    assert_eq!(lab.ended("stops").await.signal, Some(15));
    lab.run("deleted", &format!("trap '' TERM; {FAMILY} wait")).await;
    let members = family(&lab, "deleted").await;
    let (shim, program) = (lab.pid("deleted", 0), lab.pid("deleted", 1));
    freeze(shim).unwrap();
    let start = Instant::now();
    lab.driver.delete(&lab.guid("deleted")).await.unwrap();
    assert!(start.elapsed() < Duration::from_secs(5));
    assert!(!members.into_iter().chain([shim, program]).any(is_alive));
    lab.clean_up().await;
}
