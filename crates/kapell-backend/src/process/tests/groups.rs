//! Containers in control groups.

use std::fs;
use std::path::PathBuf;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::lab::{ESCAPES, Job, Lab, MAIN, escaped, is_alive, skip, until};
use crate::containers::{Containers as _, Enforced, Limits, Process, Spec, User};

const LIMITS: Limits = Limits { memory_mb: Some(64), cpu_millis: Some(500), pids: Some(64) };

fn can_limit(lab: &Lab, test: &str) -> bool {
    let all = lab.driver.enforced() == Enforced { memory: true, cpu: true, pids: true };
    if !all {
        skip(test, "needs root and control groups that may be made");
    }
    all
}

/// All groups of a container on this machine.
fn groups(guid: &str) -> Vec<PathBuf> {
    let dirs = |dir: PathBuf| fs::read_dir(dir).into_iter().flatten().flatten();
    let mounts = dirs(PathBuf::from("/sys/fs/cgroup")).map(|entry| entry.path());
    let mounts = mounts.chain([PathBuf::from("/sys/fs/cgroup")]);
    let agents = mounts.flat_map(|mount| dirs(mount.join("kapell"))).map(|entry| entry.path());
    agents.map(|agent| agent.join(guid)).filter(|group| group.is_dir()).collect()
}

#[tokio::test]
async fn who_hides_from_a_killed_shim_is_found_in_its_group() {
    let lab = Lab::new();
    if !can_limit(&lab, "groups::who_hides_from_a_killed_shim_is_found_in_its_group") {
        return;
    }
    // It has no user of its own.
    let user = User::Id { uid: 300_011, gid: 300_011, own: false };
    for at in ["at-once", "later"] {
        let job = lab.job(at, &format!("{ESCAPES} wait"));
        lab.start(Job { user: user.clone(), limits: LIMITS, ..job }).await;
    }
    let hidden = [escaped(&lab, "at-once").await, escaped(&lab, "later").await];
    assert_eq!(groups(&lab.guid("later")).len(), groups(&lab.guid("at-once")).len());
    kill(Pid::from_raw(lab.pid("at-once", 0)), Signal::SIGKILL).unwrap();
    assert!(lab.ended("at-once").await.trouble.is_some());
    assert!(!is_alive(hidden[0]) && is_alive(hidden[1]));
    kill(Pid::from_raw(lab.pid("later", 0)), Signal::SIGKILL).unwrap();
    let lab = lab.restart();
    assert_eq!(lab.driver.recover().await.unwrap().len(), 2);
    assert!(lab.ended("later").await.trouble.is_some());
    assert!(!is_alive(hidden[1]), "the next agent finds it");
    let guids = [lab.guid("at-once"), lab.guid("later")];
    lab.clean_up().await;
    assert_eq!(guids.iter().flat_map(|guid| groups(guid)).count(), 0);
}

#[tokio::test]
async fn groups_come_and_go_with_their_container_and_its_agent() {
    let lab = Lab::new();
    if !can_limit(&lab, "groups::groups_come_and_go_with_their_container_and_its_agent") {
        return;
    }
    lab.start(Job { limits: LIMITS, ..lab.job("limited", "sleep 100") }).await;
    lab.run("free", "sleep 100").await;
    let pid = lab.pid("limited", 1).to_string();
    for group in groups(&lab.guid("limited")) {
        let members = fs::read_to_string(group.join("cgroup.procs")).unwrap();
        assert!(members.lines().any(|line| line == pid), "{}", group.display());
    }
    assert_eq!(groups(&lab.guid("free")).len(), 1, "only where it is found");
    // An agent has died between two steps of a removal.
    let stray = lab.guid("stray");
    let of_agent = groups(&lab.guid("free"))[0].parent().unwrap().to_owned();
    fs::create_dir_all(of_agent.join(&stray).join("below")).unwrap();
    let mut inside = std::process::Command::new("sleep").arg("100").spawn().unwrap();
    fs::write(of_agent.join(&stray).join("below/cgroup.procs"), inside.id().to_string()).unwrap();
    let lab = lab.restart();
    assert_eq!(lab.driver.recover().await.unwrap().len(), 2);
    assert_eq!(groups(&stray).len(), 0);
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&inside.wait().unwrap()), Some(9));
    assert!(!groups(&lab.guid("limited")).is_empty(), "what is known stays");
    lab.clean_up().await;
    assert!(!of_agent.exists(), "nothing is left of the agent");
}

#[tokio::test]
async fn a_killed_shim_of_one_process_leaves_the_others() {
    let lab = Lab::new();
    let guid = lab.guid("cell");
    let job = lab.job("cell", "");
    lab.driver.create(Spec { sole: false, ..job.spec() }).await.unwrap();
    for name in [MAIN, "other"] {
        let script = "sleep 100 & setsid sleep 100 & echo ready; wait".to_owned();
        let args = vec!["-c".to_owned(), script];
        let process = Process { name: name.to_owned(), args, ..job.process() };
        lab.driver.run(&guid, process).await.unwrap();
    }
    let other: i32 = {
        let pids = fs::read_to_string(lab.home("cell").join("run/other/pid")).unwrap();
        pids.lines().nth(1).unwrap().parse().unwrap()
    };
    lab.says("cell", "ready").await;
    let program = lab.pid("cell", 1);
    kill(Pid::from_raw(lab.pid("cell", 0)), Signal::SIGKILL).unwrap();
    assert!(lab.ended("cell").await.trouble.is_some());
    until(|| !is_alive(program)).await;
    assert!(is_alive(other));
    let lab = lab.restart();
    let found = lab.driver.recover().await.unwrap();
    let running = found[0].processes.iter().filter(|process| process.exit.is_none());
    assert_eq!(running.map(|process| process.name.as_str()).collect::<Vec<_>>(), ["other"]);
    lab.clean_up().await;
}
