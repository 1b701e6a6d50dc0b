//! What an agent finds of those before it.

use std::collections::BTreeMap;
use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::lab::{Lab, MAIN, is_alive, until};
use super::stopping::{FAMILY, family};
use crate::containers::{Containers as _, Error, Exit};
use crate::process::ProcessContainers;
use crate::process::about_file::About;
use crate::process::home::Home;
use crate::process::run_home::RunHome;

const KILLED: &str = "its shim was killed, ";

/// What is found of containers with one process each, by guid.
async fn recover(lab: &Lab) -> BTreeMap<String, Option<Exit>> {
    let found = lab.driver.recover().await.unwrap().into_iter();
    let one = |found: crate::containers::Found| {
        assert_eq!(found.tag, format!("tag of {}", found.guid).into_bytes());
        let [process] = <[_; 1]>::try_from(found.processes).unwrap();
        assert_eq!(process.name, MAIN);
        (found.guid, process.exit)
    };
    found.map(one).collect()
}

fn shim_was_killed(exit: &Exit) -> bool {
    let told = exit.trouble.as_ref().is_some_and(|trouble| trouble.starts_with(KILLED));
    told && exit.code.is_none() && exit.signal.is_none()
}

#[tokio::test]
async fn running_and_ended_containers_are_found_again() {
    let lab = Lab::new();
    assert!(lab.driver.recover().await.unwrap().is_empty());
    lab.run("runs", "echo before; while [ ! -e go ]; do sleep 0.01; done; echo after; exit 4")
        .await;
    lab.run("ends", "echo x; while [ ! -e go ]; do sleep 0.01; done; exit 5").await;
    lab.run("stops", "sleep 100").await;
    lab.says("runs", "before").await;
    let (shim, guid) = (lab.pid("runs", 0), |lab: &Lab, name: &str| lab.guid(name));
    drop(lab.driver);
    // The agent is away: one ends meanwhile.
    let ends = lab.dir.path().join("containers");
    let home = fs::read_dir(&ends)
        .unwrap()
        .flatten()
        .find(|entry| entry.file_name().to_string_lossy().starts_with("ends"));
    let home = home.unwrap().path();
    fs::write(home.join("work/go"), "").unwrap();
    let run = home.join("run").join(MAIN);
    until(|| fs::read(run.join("exit")).unwrap().starts_with(b"KPX1")).await;
    let lab = Lab { driver: ProcessContainers::open(lab.dir.path()).unwrap(), dir: lab.dir };
    let run = RunHome::new(run);
    until(|| !run.is_locked().unwrap()).await;
    let found = recover(&lab).await;
    assert_eq!(found.len(), 3);
    assert_eq!(found[&guid(&lab, "runs")], None);
    let exit = found[&guid(&lab, "ends")].clone().unwrap();
    assert_eq!((exit.code, exit.last_words.as_str()), (Some(5), "x"));
    assert_eq!(lab.ended("ends").await, exit);
    fs::write(lab.home("runs").join("work/go"), "").unwrap();
    assert_eq!(lab.ended("runs").await.code, Some(4));
    assert_eq!(lab.text("runs"), "before\nafter\n");
    assert!(!is_alive(shim));
    lab.stop("stops").await;
    assert_eq!(lab.ended("stops").await.signal, Some(15));
    lab.clean_up().await;
}

#[tokio::test]
async fn what_was_never_started_is_cleared_away() {
    let lab = Lab::new();
    let containers = lab.dir.path().join("containers");
    // Killed after the directory was made, and in the midst of removal.
    fs::create_dir_all(containers.join("bare/work")).unwrap();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let spec = |boot: &str| format!("kapell-spec-3\0{boot}\0sh\0\0\0\0\0\0end\0");
    let make = |guid: &str, boot: &str, pid: Option<&str>| {
        let home = Home::new(containers.join(guid));
        home.make(&About::new(&lab.job(guid, "").spec(), boot.trim()).unwrap()).unwrap();
        let run = home.run(MAIN);
        drop(run.make(spec(boot.trim()).as_bytes()).unwrap());
        if let Some(pid) = pid {
            fs::write(run.dir().join("pid"), pid).unwrap();
        }
        home
    };
    // Killed after all was written, and before the shim had said its number.
    make("done", &boot, None);
    make("cut", &boot, Some("123"));
    // Of an earlier boot; its numbers are others' now.
    make("old", "earlier", Some("1\n1\n"));
    make("idle", "earlier", None);
    make("removed", &boot, Some("999999\n"));
    fs::remove_file(containers.join("removed/about")).unwrap();
    let lab = lab.restart();
    let mut found = lab.driver.recover().await.unwrap();
    found.sort_by(|one, other| one.guid.cmp(&other.guid));
    let told: Vec<_> =
        found.iter().map(|each| (each.guid.as_str(), each.processes.len())).collect();
    assert_eq!(told, [("cut", 0), ("done", 0)], "containers in which nothing ran");
    assert_eq!(fs::read_dir(&containers).unwrap().count(), 2);
    assert!(!containers.join("done/run").join(MAIN).exists());
    lab.clean_up().await;
}

#[tokio::test]
async fn a_slow_shim_is_not_taken_for_a_dead_one() {
    let lab = Lab::new();
    lab.run("slow", "sleep 100").await;
    // As it is before the shim has come so far as to write its number.
    let path = lab.run_home("slow").join("pid");
    let pids = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    let lab = lab.restart();
    let found = recover(&lab).await;
    assert_eq!(found, BTreeMap::from([(lab.guid("slow"), None)]));
    let guid = lab.guid("slow");
    let stop = lab.driver.stop(&guid, MAIN);
    let late = async { fs::write(&path, &pids).unwrap() };
    let (stopped, ()) = tokio::join!(stop, late);
    stopped.unwrap();
    assert_eq!(lab.ended("slow").await.signal, Some(15));
    lab.clean_up().await;
}

#[tokio::test]
async fn if_the_shim_is_killed_all_of_it_ends() {
    let lab = Lab::new();
    for at in ["at-once", "later"] {
        lab.run(at, &format!("{FAMILY} wait")).await;
    }
    let mut members = family(&lab, "at-once").await;
    members.extend(family(&lab, "later").await);
    assert_eq!(members.len(), 6);
    kill(Pid::from_raw(lab.pid("at-once", 0)), Signal::SIGKILL).unwrap();
    let exit = lab.ended("at-once").await;
    assert!(shim_was_killed(&exit), "{exit:?}");
    kill(Pid::from_raw(lab.pid("later", 0)), Signal::SIGKILL).unwrap();
    // The next agent finds out.
    let later = RunHome::new(lab.run_home("later"));
    until(|| !later.is_locked().unwrap()).await;
    let lab = lab.restart();
    let found = recover(&lab).await;
    assert_eq!(found[&lab.guid("at-once")].as_ref(), Some(&exit));
    assert!(found[&lab.guid("later")].as_ref().is_some_and(shim_was_killed));
    assert_eq!(Some(lab.ended("later").await), found[&lab.guid("later")]);
    assert!(!members.into_iter().any(is_alive));
    lab.clean_up().await;
}

#[tokio::test]
async fn two_agents_never_share_a_directory() {
    let lab = Lab::new();
    let error = ProcessContainers::open(lab.dir.path()).unwrap_err();
    let want = format!(
        "`{}` is in use by process {}: stop that one, or use another directory",
        lab.dir.path().display(),
        std::process::id()
    );
    assert!(matches!(error, Error::Io { .. }));
    assert_eq!(error.to_string(), want);
    lab.run("still", "sleep 100").await;
    let lab = lab.restart();
    assert_eq!(lab.driver.recover().await.unwrap().len(), 1);
    lab.clean_up().await;
}

#[tokio::test]
async fn what_ended_before_the_machine_was_started_anew_is_not_lost() {
    let lab = Lab::new();
    for (name, script) in [("ended", "echo 42 > answer; echo words"), ("cut", "exit 1")] {
        lab.run_to_end(name, script).await;
        let path = lab.run_home(name).join("spec");
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        let text = String::from_utf8(fs::read(&path).unwrap()).unwrap();
        fs::write(&path, text.replace(boot.trim(), "earlier")).unwrap();
    }
    fs::write(lab.run_home("cut").join("exit"), b"KPX1").unwrap();
    let lab = lab.restart();
    let found = recover(&lab).await;
    let exit = Exit { code: Some(0), last_words: "words".to_owned(), ..Exit::default() };
    assert_eq!(found, BTreeMap::from([(lab.guid("ended"), Some(exit))]));
    let answer = lab.driver.read_own(&lab.guid("ended"), "answer", 10).await.unwrap();
    assert_eq!(answer, b"42\n");
    assert!(!lab.home("cut").exists(), "nobody knows how it ended");
    lab.clean_up().await;
}
