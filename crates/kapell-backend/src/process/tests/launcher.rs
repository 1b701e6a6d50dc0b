//! A launcher that starts the real program and ends, as `runc run --detach` does.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use kapell_core::log::Stream;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::lab::{frames, is_alive, until};
use crate::containers::{Error, Exit};
use crate::process::answer::{self, Answer};
use crate::process::groups::Membership;
use crate::process::program::{Broom, Program};
use crate::process::run_home::RunHome;
use crate::process::shim;
use crate::process::spec_file::{Header, Order};

/// As a driver would do it. The program, or why there is none.
async fn launch(dir: &Path, script: &str) -> Result<Program, Error> {
    let (bin, logs, pid_file) = (dir.join("bin"), dir.join("logs"), dir.join("program.pid"));
    for dir in [&bin, &logs, &dir.join("c/run"), &dir.join("c/work")] {
        fs::create_dir_all(dir).unwrap();
    }
    let order = Order {
        boot: "boot",
        guid: "launched",
        name: "main",
        program: "/bin/sh",
        args: &["-c".to_owned(), script.to_owned()],
        env: &[("FILE".to_owned(), pid_file.display().to_string())],
        dir: None,
        user: None,
        own_user: false,
        whole: true,
        own_group: false,
        stop_grace: Duration::from_secs(10),
        logs: Some(&logs),
        log_bytes: 1 << 20,
        log_rate: None,
        descriptors: None,
        pid_file: Some(&pid_file),
        groups: &Membership::default(),
    };
    let text = order.encode()?;
    let home = RunHome::new(dir.join("c/run/main"));
    let lock = home.make(&text)?;
    let started = shim::spawn(&shim::install(&bin)?, home.dir(), lock, None)?;
    let program = Program::new("launched", "main", home.clone(), Broom::default());
    let program = program.with_shim(started.shim);
    match answer::listen(started.status).await {
        Answer::Runs => Ok(program),
        Answer::Failed(failure) => {
            let error = failure.to_error(home.dir(), &Header::parse(&text).unwrap());
            let exit = program.ended().await?;
            assert_eq!(
                exit.trouble.as_deref(),
                Some(error.to_string().as_str()),
                "it is written too"
            );
            Err(error)
        }
        Answer::Nothing => panic!("the shim was killed"),
    }
}

fn out(dir: &Path, stream: Stream) -> String {
    let frames = frames(&dir.join("logs")).into_iter().filter(|frame| frame.stream == stream);
    String::from_utf8(frames.flat_map(|frame| frame.bytes).collect()).unwrap()
}

/// In a session of its own, as a container is.
const PROGRAM: &str = "setsid sh -c 'trap \"echo bye; exit 5\" TERM; echo runs; while :; do sleep 0.02; done' & \
                       echo $! > $FILE; echo launched >&2";

#[tokio::test]
async fn what_a_launcher_has_started_is_the_program() {
    let dir = tempfile::tempdir().unwrap();
    let program = launch(dir.path(), PROGRAM).await.unwrap();
    until(|| out(dir.path(), Stream::Out).contains("runs")).await;
    assert_eq!(out(dir.path(), Stream::Err), "launched\n");
    assert_eq!(program.exit(), None, "it is not the launcher that is waited for");
    program.signal(Signal::SIGTERM).await.unwrap();
    let exit = program.ended().await.unwrap();
    assert_eq!((exit.code, exit.stopped), (Some(5), true), "{exit:?}");
    assert_eq!(out(dir.path(), Stream::Out), "runs\nbye\n");
}

#[tokio::test]
async fn a_launched_program_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let program = launch(dir.path(), &PROGRAM.replace("exit 5", ":")).await.unwrap();
    let pid: i32 =
        fs::read_to_string(dir.path().join("program.pid")).unwrap().trim().parse().unwrap();
    assert!(is_alive(pid));
    program.kill().await.unwrap();
    let exit = program.ended().await.unwrap();
    assert_eq!((exit.signal, exit.stopped), (Some(9), true), "{exit:?}");
    assert!(!is_alive(pid));
}

#[tokio::test]
async fn a_program_that_ends_before_its_launcher_is_not_lost() {
    let dir = tempfile::tempdir().unwrap();
    // Its parent is gone at once, as with a launcher that forks twice.
    let script = "(setsid sh -c 'echo short; exit 7' & echo $! > $FILE); sleep 0.1";
    let exit = launch(dir.path(), script).await.unwrap().ended().await.unwrap();
    assert_eq!(exit, Exit { code: Some(7), last_words: "short".to_owned(), ..Exit::default() });
}

#[tokio::test]
async fn a_shim_that_a_child_of_another_thread_has_open_for_writing_is_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let bin = dir.path().join("bin");
    fs::create_dir_all(&bin).unwrap();
    let program = shim::install(&bin).unwrap();
    let open = fs::File::options().write(true).open(&program).unwrap();
    let (_nobody, never) = std::sync::mpsc::channel::<()>();
    let child = std::thread::spawn(move || {
        assert!(never.recv_timeout(Duration::from_millis(100)).is_err());
        drop(open);
    });
    let why = launch(dir.path(), "exit 1").await.unwrap_err().to_string();
    assert_eq!(why, "`/bin/sh` ended with 1 and said nothing");
    child.join().unwrap();
}

#[tokio::test]
async fn a_launcher_that_fails_says_why() {
    let why = async |script: &str| {
        let dir = tempfile::tempdir().unwrap();
        let error = launch(dir.path(), script).await.unwrap_err();
        assert!(matches!(error, Error::Unstartable(_)), "{error:?}");
        error.to_string()
    };
    let failed = why("sleep 100 & echo no such image >&2; exit 3").await;
    assert_eq!(failed, "`/bin/sh` ended with 3: no such image");
    assert_eq!(why("exit 1").await, "`/bin/sh` ended with 1 and said nothing");
    assert_eq!(why("kill -9 $$").await, "`/bin/sh` was ended by signal 9 and said nothing");
    let nobody = "`/bin/sh` named no process that it has started and said nothing";
    assert_eq!(why("exit 0").await, nobody);
    assert_eq!(why("echo 1 > $FILE").await, nobody, "that is not its own");
    assert_eq!(why("echo $$ > $FILE").await, nobody, "it is gone");
}

#[tokio::test]
async fn pause_waits_for_orphans_until_it_is_told_to_end() {
    let dir = tempfile::tempdir().unwrap();
    let program = shim::install(dir.path()).unwrap();
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        // The shell becomes the one that pauses, and its child is then that one's.
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "true & exec \"$0\" pause"]).arg(&program);
        let mut paused =
            command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        let pid = paused.id();
        let is_paused = || {
            let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
            line.ends_with("pause\0") && children.unwrap_or_default().trim().is_empty()
        };
        until(is_paused).await;
        assert!(paused.try_wait().unwrap().is_none());
        kill(Pid::from_raw(pid.cast_signed()), signal).unwrap();
        assert_eq!(paused.wait().unwrap().code(), Some(0));
    }
}
