use std::fs;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use super::lab::{Lab, is_alive, is_root, own_user, until};
use crate::containers::{Containers as _, Error, Exec, Exit, Session};

const LIMIT: Duration = Duration::from_secs(20);

fn shell(script: &str) -> Exec {
    let env = vec![("TERM".to_owned(), "dumb".to_owned())];
    Exec { path: "sh".to_owned(), args: vec!["-c".to_owned(), script.to_owned()], env }
}

async fn begin(lab: &Lab, script: &str) -> Session {
    lab.driver.exec(&lab.guid("web"), shell(script)).await.unwrap()
}

/// Runs it to its end: what it wrote to both streams, and how it ended.
async fn finish(session: Session) -> (String, String, Exit) {
    let Session { stdin, mut stdout, mut stderr, ended } = session;
    drop(stdin);
    let (mut out, mut err) = (String::new(), String::new());
    let read = async {
        stdout.read_to_string(&mut out).await.unwrap();
        stderr.read_to_string(&mut err).await.unwrap();
        ended.await.unwrap()
    };
    let exit = timeout(LIMIT, read).await.expect("hangs");
    (out, err, exit)
}

async fn line(session: &mut Session) -> String {
    let read = async {
        let mut line = String::new();
        while !line.ends_with('\n') {
            line.push(char::from(session.stdout.read_u8().await.unwrap()));
        }
        line.trim().to_owned()
    };
    timeout(LIMIT, read).await.expect("hangs")
}

#[tokio::test]
async fn a_program_beside_another_has_its_streams_and_its_own_exit_code() {
    let lab = Lab::new();
    lab.run("web", "exec sleep 1000").await;
    let mut session = begin(&lab, "read word; echo \"out $word\"; echo err >&2; exit 7").await;
    session.stdin.write_all(b"hello\n").await.unwrap();
    let (out, err, exit) = finish(session).await;
    assert_eq!((out.as_str(), err.as_str(), exit.code), ("out hello\n", "err\n", Some(7)));
    let (.., exit) = finish(begin(&lab, "kill -9 $$").await).await;
    assert_eq!((exit.code, exit.signal), (None, Some(9)));
    let (out, ..) = finish(begin(&lab, "cat; echo end").await).await;
    assert_eq!(out, "end\n", "without input");
    lab.clean_up().await;
}

#[tokio::test]
async fn it_has_the_user_the_directory_the_groups_and_the_environment_of_the_process() {
    if !is_root("it_has_the_user_the_directory_the_groups_and_the_environment_of_the_process") {
        return;
    }
    let lab = Lab::new();
    let mut job = lab.job("web", "exec sleep 1000");
    job.env.push(("COLOUR".to_owned(), "blue".to_owned()));
    job.user = own_user();
    lab.start(job).await;
    let tell = "id -u; id -G; pwd; echo $COLOUR $TERM; cat /proc/self/cgroup";
    let (told, err, _) = finish(begin(&lab, tell).await).await;
    let main = lab.pid("web", 1);
    let about = fs::metadata(format!("/proc/{main}")).unwrap();
    let uid = std::os::unix::fs::MetadataExt::uid(&about);
    let dir = fs::read_link(format!("/proc/{main}/cwd")).unwrap();
    let groups = fs::read_to_string(format!("/proc/{main}/cgroup")).unwrap();
    let want = format!("{uid}\n{uid}\n{}\nblue dumb\n{groups}", dir.display());
    assert_eq!(told, want, "{err}");
    lab.clean_up().await;
}

#[tokio::test]
async fn whoever_goes_away_ends_it_and_all_that_it_began() {
    let lab = Lab::new();
    lab.run("web", "exec sleep 1000").await;
    let mut session = begin(&lab, "setsid sleep 1000 & echo $!; echo $$; exec sleep 1000").await;
    let pids: [i32; 2] =
        [line(&mut session).await, line(&mut session).await].map(|it| it.parse().unwrap());
    assert!(pids.iter().all(|pid| is_alive(*pid)));
    drop(session);
    until(|| !pids.iter().any(|pid| is_alive(*pid))).await;
    assert!(is_alive(lab.pid("web", 1)), "the container runs on");
    lab.clean_up().await;
}

#[tokio::test]
async fn it_ends_with_its_container() {
    let lab = Lab::new();
    lab.run("web", "exec sleep 1000").await;
    let mut session = begin(&lab, "echo $$; exec sleep 1000").await;
    let pid: i32 = line(&mut session).await.parse().unwrap();
    lab.driver.delete(&lab.guid("web")).await.unwrap();
    assert!(!is_alive(pid));
    let (.., exit) = finish(session).await;
    assert_eq!(exit.code, None);
    lab.clean_up().await;
}

#[tokio::test]
async fn what_cannot_run_is_told_and_leaves_nothing() {
    let lab = Lab::new();
    lab.run("web", "exec sleep 1000").await;
    let guid = lab.guid("web");
    let none = Exec { path: "no-such-program".to_owned(), args: Vec::new(), env: Vec::new() };
    let error = lab.driver.exec(&guid, none).await.unwrap_err();
    assert_eq!(error.to_string(), "`no-such-program` was not found in PATH");
    kill(Pid::from_raw(lab.pid("web", 1)), Signal::SIGKILL).unwrap();
    lab.driver.ended(&guid, super::lab::MAIN).await.unwrap();
    let error = lab.driver.exec(&guid, shell("true")).await.unwrap_err();
    assert!(error.to_string().ends_with("nothing runs in it now"), "{error}");
    lab.driver.delete(&lab.guid("web")).await.unwrap();
    let error = lab.driver.exec(&guid, shell("true")).await.unwrap_err();
    assert!(matches!(error, Error::Unknown(_)), "{error}");
    lab.clean_up().await;
}
