//! Programs that somebody wants beside those of a container.

use std::time::Duration;

use kapell_core::exec::Size;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use super::rig::{MAIN, Rig, until};
use crate::containers::{Error, Exec, Exit, Process, Session};

const LIMIT: Duration = Duration::from_secs(20);
const SIZE: Size = Size { rows: 33, cols: 99 };

fn shell(script: &str) -> Exec {
    Exec {
        path: "sh".to_owned(),
        args: vec!["-c".to_owned(), script.to_owned()],
        env: vec![("TERM".to_owned(), "dumb".to_owned())],
        terminal: None,
    }
}

async fn begin(rig: &Rig, name: &str, script: &str) -> Session {
    rig.driver.exec(&rig.guid(name), shell(script)).await.unwrap()
}

async fn begin_on_terminal(rig: &Rig, name: &str, script: &str) -> Session {
    let exec = Exec { terminal: Some(SIZE), ..shell(script) };
    rig.driver.exec(&rig.guid(name), exec).await.unwrap()
}

/// Runs it to its end: what it wrote to both streams, and how it ended.
async fn finish(session: Session) -> (String, String, Exit) {
    let Session { stdin, mut stdout, mut stderr, ended, .. } = session;
    drop(stdin);
    let (mut out, mut err) = (String::new(), String::new());
    let read = async {
        let (out, err) =
            tokio::join!(stdout.read_to_string(&mut out), stderr.read_to_string(&mut err));
        out.and(err).unwrap();
        ended.await.unwrap()
    };
    let exit = timeout(LIMIT, read).await.expect("hangs");
    (out, err, exit)
}

/// Reads until it has written this, and returns all that came.
async fn says(session: &mut Session, text: &str) -> String {
    let mut seen = String::new();
    let read = async {
        while !seen.contains(text) {
            seen.push(char::from(session.stdout.read_u8().await.unwrap()));
        }
    };
    let came = timeout(LIMIT, read).await;
    assert!(came.is_ok(), "`{text}` does not come: {seen}");
    seen
}

/// A loop that can be counted.
fn forever(mark: &str) -> String {
    format!("while :; do sleep 0.02; done; : {mark}")
}

pub(crate) async fn it_has_its_streams_and_its_own_exit_code(rig: Rig) {
    rig.start("web", "sleep 1000").await;
    let script = "read word; echo \"out $word\"; echo err >&2; exit 7";
    let mut session = begin(&rig, "web", script).await;
    session.stdin.write_all(b"hello\n").await.unwrap();
    let (out, err, exit) = finish(session).await;
    assert_eq!((out.as_str(), err.as_str(), exit.code), ("out hello\n", "err\n", Some(7)));
    let (.., exit) = finish(begin(&rig, "web", "kill -9 $$").await).await;
    assert_eq!((exit.code, exit.signal), (None, Some(9)));
    let (out, ..) = finish(begin(&rig, "web", "cat; echo end").await).await;
    assert_eq!(out, "end\n", "without input");
    let big = "head -c 300000 /dev/zero | tr '\\0' x; head -c 70000 /dev/zero | tr '\\0' y >&2";
    let (out, err, exit) = finish(begin(&rig, "web", big).await).await;
    assert_eq!((out.len(), err.len(), exit.code), (300_000, 70_000, Some(0)));
    rig.clean_up(&["web"]).await;
}

pub(crate) async fn it_has_the_user_the_directory_and_the_environment_of_the_process(rig: Rig) {
    let tell = "id -u; id -G; pwd; echo \"$COLOUR $KAPELL_CONTAINER\"";
    let env = ("COLOUR".to_owned(), "blue".to_owned());
    let mut process = Rig::process(MAIN, &format!("{{ {tell}; }}; echo ready; sleep 1000"));
    process.env.push(env);
    rig.create(rig.spec("web")).await;
    rig.run("web", process).await;
    rig.says("web", MAIN, "ready\n").await;
    let own = rig.text("web", MAIN).replace("ready\n", "");
    let (told, err, exit) = finish(begin(&rig, "web", tell).await).await;
    assert_eq!((told, err.as_str(), exit.code), (own, "", Some(0)));
    let (told, ..) = finish(begin(&rig, "web", "echo $TERM; unset TERM; echo $TERM").await).await;
    assert_eq!(told, "dumb\n\n");
    let bad = Exec { env: vec![("A=B".to_owned(), String::new())], ..shell("true") };
    let error = rig.driver.exec(&rig.guid("web"), bad).await.unwrap_err();
    assert!(error.to_string().contains("`A=B` is no name"), "{error}");
    rig.clean_up(&["web"]).await;
}

pub(crate) async fn it_is_in_the_namespaces_and_the_groups_of_the_process(rig: Rig) {
    let of = "for it in cgroup ipc mnt net pid user uts; do readlink /proc/self/ns/$it; done; \
              grep -E '^(Cap|NoNew|Seccomp:)' /proc/self/status; grep -E 'memory' /proc/self/cgroup";
    let mut spec = rig.spec("web");
    spec.limits.memory_mb = Some(64);
    rig.create(spec).await;
    rig.run("web", Rig::process(MAIN, &format!("{{ {of}; }}; echo ready; sleep 1000"))).await;
    rig.says("web", MAIN, "ready\n").await;
    let own = rig.text("web", MAIN).replace("ready\n", "");
    let (told, err, _) = finish(begin(&rig, "web", of).await).await;
    assert_eq!((told, err.as_str()), (own, ""));
    rig.clean_up(&["web"]).await;
}

pub(crate) async fn what_cannot_run_is_told_and_leaves_nothing(rig: Rig) {
    rig.start("web", "while [ ! -e go ]; do sleep 0.01; done").await;
    let guid = rig.guid("web");
    for terminal in [None, Some(SIZE)] {
        for path in ["no-such-program", "/no/such/program"] {
            let none = Exec { path: path.to_owned(), args: Vec::new(), env: Vec::new(), terminal };
            let error = rig.driver.exec(&guid, none).await.unwrap_err();
            assert!(matches!(&error, Error::Absent(why) if why.contains(path)), "{error:?}");
        }
        let not = Exec { path: "/etc".to_owned(), args: Vec::new(), env: Vec::new(), terminal };
        let error = rig.driver.exec(&guid, not).await.unwrap_err();
        assert!(matches!(&error, Error::Unstartable(why) if why.contains("/etc")), "{error:?}");
    }
    rig.touch("web", "go").await;
    rig.ended("web", MAIN).await;
    let error = rig.driver.exec(&guid, shell("true")).await.unwrap_err();
    assert!(error.to_string().ends_with("nothing runs in it now"), "{error}");
    rig.driver.delete(&guid).await.unwrap();
    let error = rig.driver.exec(&guid, shell("true")).await.unwrap_err();
    assert!(matches!(error, Error::Unknown(_)), "{error}");
    rig.clean_up(&[]).await;
}

pub(crate) async fn whoever_goes_away_ends_it_and_all_that_it_began(rig: Rig) {
    rig.start("web", "echo up; sleep 1000").await;
    let mark = format!("{}beside", rig.token);
    let loops = forever(&mark);
    let script = format!("setsid sh -c '{loops}' & sh -c '{loops}' & echo ready; {loops}");
    for on_terminal in [false, true] {
        let mut session = if on_terminal {
            begin_on_terminal(&rig, "web", &script).await
        } else {
            begin(&rig, "web", &script).await
        };
        says(&mut session, "ready").await;
        until(|| Rig::count(&mark) >= 3).await;
        drop(session);
        until(|| Rig::count(&mark) == 0).await;
    }
    let (out, ..) = finish(begin(&rig, "web", "echo still").await).await;
    assert_eq!(out, "still\n", "the container runs on");
    rig.clean_up(&["web"]).await;
}

pub(crate) async fn it_ends_with_its_container(rig: Rig) {
    rig.start("web", "sleep 1000").await;
    let mark = format!("{}beside", rig.token);
    let script = format!("setsid sh -c '{0}' & echo ready; {0}", forever(&mark));
    let mut session = begin(&rig, "web", &script).await;
    says(&mut session, "ready").await;
    until(|| Rig::count(&mark) >= 2).await;
    rig.driver.delete(&rig.guid("web")).await.unwrap();
    assert_eq!(Rig::count(&mark), 0);
    let (.., exit) = finish(session).await;
    assert_eq!(exit.code, None, "{exit:?}");
    rig.clean_up(&[]).await;
}

pub(crate) async fn it_ends_with_the_sole_process(rig: Rig) {
    if !rig.driver.enforced().pids {
        rig.skip("needs control groups that can be written");
        return;
    }
    rig.start("web", "while [ ! -e go ]; do sleep 0.01; done; exit 3").await;
    let mark = format!("{}beside", rig.token);
    let mut session = begin(&rig, "web", &format!("echo ready; {}", forever(&mark))).await;
    says(&mut session, "ready").await;
    rig.touch("web", "go").await;
    assert_eq!(rig.ended("web", MAIN).await.code, Some(3), "it is not waited for");
    let (.., exit) = finish(session).await;
    assert_eq!(exit.signal, Some(9), "{exit:?}");
    assert_eq!(Rig::count(&mark), 0);
    rig.clean_up(&["web"]).await;
}

pub(crate) async fn it_runs_beside_one_of_several(rig: Rig) {
    let mut spec = rig.spec("web");
    spec.sole = false;
    rig.create(spec).await;
    let named = |name: &str| {
        let process = Rig::process(name, "sleep 1000");
        let env = [process.env.clone(), vec![("NAME".to_owned(), name.to_owned())]].concat();
        Process { env, ..process }
    };
    rig.run("web", named("b")).await;
    rig.run("web", named("a")).await;
    let mut lasting = begin(&rig, "web", "echo $NAME; sleep 1000").await;
    says(&mut lasting, "a\n").await;
    let (out, ..) = finish(begin(&rig, "web", "echo $NAME").await).await;
    assert_eq!(out, "a\n");
    rig.clean_up(&["web"]).await;
}

pub(crate) async fn what_a_killed_agent_left_is_in_nobodys_way(mut rig: Rig) {
    rig.start("web", "sleep 1000").await;
    let mark = format!("{}beside", rig.token);
    let script = format!("echo ready; {}", forever(&mark));
    for terminal in [None, Some(SIZE)] {
        let exec = Exec { terminal, ..shell(&script) };
        let mut session = rig.driver.exec(&rig.guid("web"), exec).await.unwrap();
        says(&mut session, "ready").await;
        let (next, found) = rig.restart().await;
        assert_eq!(found.len(), 1);
        rig = next;
        drop(session);
        until(|| Rig::count(&mark) == 0).await;
        let exec = Exec { terminal, ..shell("sh -c 'echo one; exit 5'; echo $?") };
        let session = rig.driver.exec(&rig.guid("web"), exec).await.unwrap();
        let (out, err, _) = finish(session).await;
        assert_eq!((out.replace('\r', "").as_str(), err.as_str()), ("one\n5\n", ""));
    }
    rig.clean_up(&["web"]).await;
}

pub(crate) async fn a_terminal_is_its_own_and_has_a_size(rig: Rig) {
    rig.start("web", "sleep 1000").await;
    let script = "test -t 0 && test -t 1 && test -t 2 && echo terminal; stty size; \
                  echo here > /dev/tty; trap 'stty size; exit 9' WINCH; echo ready; \
                  while :; do sleep 0.02; done";
    let mut session = begin_on_terminal(&rig, "web", script).await;
    let told = says(&mut session, "ready\r\n").await;
    assert_eq!(told, "terminal\r\n33 99\r\nhere\r\nready\r\n");
    let resize = session.resize.take().unwrap();
    resize(Size { rows: 12, cols: 34 });
    let (out, err, exit) = finish(session).await;
    assert_eq!((out.as_str(), err.as_str(), exit.code), ("12 34\r\n", "", Some(9)));
    let mut session = begin_on_terminal(&rig, "web", "cat; echo end").await;
    session.stdin.write_all(b"line\n").await.unwrap();
    says(&mut session, "line\r\nline\r\n").await;
    session.stdin.shutdown().await.unwrap();
    let (out, _, exit) = finish(session).await;
    assert!(out.ends_with("end\r\n") && exit.code == Some(0), "{out:?} {exit:?}");
    rig.clean_up(&["web"]).await;
}

pub(crate) async fn job_control_works_on_a_terminal(rig: Rig) {
    rig.start("web", "sleep 1000").await;
    let exec = Exec { args: vec!["-i".to_owned()], terminal: Some(SIZE), ..shell("") };
    let mut session = rig.driver.exec(&rig.guid("web"), exec).await.unwrap();
    let sleeps = b"sh -c 'echo go\"\"ing; exec sleep 1000'\n";
    session.stdin.write_all(sleeps).await.unwrap();
    let told = says(&mut session, "going\r\n").await;
    assert!(!told.contains("job control"), "{told}");
    // The shell goes on, what it runs ends.
    session.stdin.write_all(b"\x03").await.unwrap();
    session.stdin.write_all(b"echo af''ter $?\n").await.unwrap();
    says(&mut session, "after 130\r\n").await;
    session.stdin.write_all(sleeps).await.unwrap();
    says(&mut session, "going\r\n").await;
    session.stdin.write_all(b"\x1a").await.unwrap();
    says(&mut session, "Stopped").await;
    session.stdin.write_all(b"exit 4\nexit 4\n").await.unwrap();
    let (out, _, exit) = finish(session).await;
    assert_eq!(exit.code, Some(4), "{out}");
    rig.clean_up(&["web"]).await;
}
