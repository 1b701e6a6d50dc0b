//! What a container may use at most. What a machine cannot enforce is reported as skipped.

use std::fs;
use std::io::Write as _;
use std::time::{Duration, Instant};

use nix::unistd::geteuid;

use super::rig::{MAIN, Rig, until};
use crate::containers::{Enforced, Limits, Spec};

/// Whether control groups could be made here by whoever wants to.
fn are_groups_writable() -> bool {
    let try_in = |dir: &std::path::Path| {
        let trial = dir.join(format!("kapell-trial-{}", std::process::id()));
        fs::create_dir(&trial).is_ok() && fs::remove_dir(&trial).is_ok()
    };
    let root = std::path::Path::new("/sys/fs/cgroup");
    let unified = fs::read_to_string(root.join("cgroup.controllers")).unwrap_or_default();
    let has = |name: &str| unified.split_whitespace().any(|each| each == name);
    geteuid().is_root()
        && ["memory", "pids", "cpu"].into_iter().any(|name| {
            (root.join(name).join("cgroup.procs").exists() && try_in(&root.join(name)))
                || (has(name) && try_in(root))
        })
}

pub(crate) async fn limits_are_enforced_where_they_can_be(rig: Rig) {
    let Enforced { memory, cpu, pids } = rig.driver.enforced();
    // Past the capture of the test runner: it is to be read.
    let line = format!("limits enforced here: memory {memory}, cpu {cpu}, pids {pids}\n");
    let _printed = std::io::stdout().write_all(line.as_bytes());
    if are_groups_writable() {
        assert!(memory || cpu || pids, "control groups can be made here, but no limit is enforced");
    }
    if !(memory && cpu && pids) {
        rig.skip(line.trim());
    }
    // Where they are not enforced, containers run without.
    let limits = Limits { memory_mb: Some(64), cpu_millis: Some(900), pids: Some(50) };
    rig.create(Spec { limits, ..rig.spec("limited") }).await;
    rig.run("limited", Rig::process(MAIN, "echo fine; exit 3")).await;
    let exit = rig.ended("limited", MAIN).await;
    assert_eq!((exit.code, exit.out_of_memory), (Some(3), false));
    rig.clean_up(&["limited"]).await;
}

fn limited(rig: &Rig, name: &str, limits: Limits) -> Spec {
    Spec { limits, ..rig.spec(name) }
}

const SMALL: Limits = Limits { memory_mb: Some(24), cpu_millis: None, pids: None };

pub(crate) async fn who_needs_too_much_memory_is_ended_and_that_is_told(rig: Rig) {
    if !rig.driver.enforced().memory {
        rig.skip("no limit of memory here");
        return;
    }
    rig.create(limited(&rig, "hungry", SMALL)).await;
    rig.run("hungry", Rig::process(MAIN, "exec tail /dev/zero")).await;
    let exit = rig.ended("hungry", MAIN).await;
    assert_eq!((exit.signal, exit.out_of_memory, exit.stopped), (Some(9), true, false), "{exit:?}");
    let (rig, found) = rig.restart().await;
    assert_eq!(found[0].processes[0].exit, Some(exit));
    rig.clean_up(&["hungry"]).await;
}

pub(crate) async fn a_child_that_needs_too_much_memory_is_told_too(rig: Rig) {
    if !rig.driver.enforced().memory {
        rig.skip("no limit of memory here");
        return;
    }
    rig.create(Spec { sole: false, ..limited(&rig, "child", SMALL) }).await;
    rig.run("child", Rig::process("first", "tail /dev/zero; echo on; exit 1")).await;
    let exit = rig.ended("child", "first").await;
    assert_eq!((exit.code, exit.out_of_memory), (Some(1), true), "{exit:?}");
    rig.run("child", Rig::process("second", "exit 2")).await;
    let exit = rig.ended("child", "second").await;
    assert_eq!((exit.code, exit.out_of_memory), (Some(2), false), "it was not its time");
    rig.clean_up(&["child"]).await;
}

pub(crate) async fn a_fork_bomb_stays_inside_its_limit_and_can_be_deleted(rig: Rig) {
    if !rig.driver.enforced().pids {
        rig.skip("no limit of processes here");
        return;
    }
    let limits = Limits { pids: Some(40), ..Limits::default() };
    for (name, sole) in [("bomb", true), ("cell", false)] {
        rig.create(Spec { sole, ..limited(&rig, name, limits) }).await;
        let bomb = format!("b() {{ b | b & sleep 0.05; b; }}; b; : {}", rig.token);
        let script = format!("sleep 100 & held=$!; sh -c '{bomb}' 2>/dev/null & wait $held");
        rig.run(name, Rig::process(MAIN, &script)).await;
        let start = Instant::now();
        let mut most = 0;
        until(|| {
            most = most.max(Rig::count(&rig.token));
            start.elapsed() > Duration::from_millis(500)
        })
        .await;
        assert!((5..=40).contains(&most), "{most}");
        let start = Instant::now();
        rig.driver.delete(&rig.guid(name)).await.unwrap();
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
        assert_eq!(Rig::count(&rig.token), 0);
    }
    rig.clean_up(&[]).await;
}

pub(crate) async fn a_busy_loop_gets_its_share_of_the_processor(rig: Rig) {
    if !rig.driver.enforced().cpu {
        rig.skip("no limit of the processor here");
        return;
    }
    let limits = Limits { cpu_millis: Some(100), ..Limits::default() };
    rig.create(limited(&rig, "busy", limits)).await;
    let script = "trap 'times; exit 0' TERM; echo ready; while :; do :; done";
    let start = Instant::now();
    rig.run("busy", Rig::process(MAIN, script)).await;
    rig.says("busy", MAIN, "ready").await;
    until(|| start.elapsed() > Duration::from_secs(2)).await;
    rig.driver.stop(&rig.guid("busy"), MAIN).await.unwrap();
    assert_eq!(rig.ended("busy", MAIN).await.code, Some(0));
    let took = start.elapsed();
    let text = rig.text("busy", MAIN);
    let used = seconds(text.lines().nth(1).unwrap());
    assert!(used > 0.05, "{text}");
    assert!(used < 0.2 * took.as_secs_f64(), "a tenth of {took:?}, but {text}");
    rig.clean_up(&["busy"]).await;
}

/// What `times` says: `0m0.120s 0m0.010s`, user and system.
fn seconds(line: &str) -> f64 {
    let one = |text: &str| {
        let (minutes, seconds) = text.trim_end_matches('s').split_once('m').unwrap();
        minutes.parse::<f64>().unwrap() * 60.0 + seconds.parse::<f64>().unwrap()
    };
    line.split_whitespace().map(one).sum()
}
