//! The runner that all ordinary commands share: when it is killed, and what it keeps apart.

use std::fs;
use std::path::Path;
use std::time::Duration;

use kapell_core::run::{Evidence, WorkEnd};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::rig::{Lab, command, count, let_end, patient};
use crate::scheduler::backend::{Attempt, Backend as _, What, Work};
use crate::scheduler::conformance::{Rig as _, attempt};
use crate::testing::eventually;

const PATIENCE: Duration = Duration::from_secs(30);

async fn launched(lab: &mut Lab, work: &Work) {
    lab.backend.launch(work).await.unwrap();
    let news = lab.next().await;
    assert!(matches!(news.what, What::Started { .. }), "{news:?}");
}

async fn ended(lab: &mut Lab) -> (Attempt, WorkEnd) {
    let news = lab.next().await;
    let What::Ended(end) = news.what else { panic!("{news:?}") };
    (news.attempt, end)
}

fn number(path: &Path) -> Option<i32> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn lives(pid: i32) -> bool {
    kill(Pid::from_raw(pid), None).is_ok()
}

/// The parent of a process.
fn parent(pid: i32) -> i32 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields = stat.rsplit_once(')').unwrap().1;
    fields.split_whitespace().nth(1).unwrap().parse().unwrap()
}

async fn kill_runner(lab: &Lab, of: &Attempt) {
    let pid = lab.dir.path().join("of").join(super::super::order::guid(of)).join("pid");
    lab.start(of).await;
    let runner = parent(number(&pid).unwrap());
    kill(Pid::from_raw(runner), Signal::SIGKILL).unwrap();
}

#[tokio::test]
async fn a_killed_runner_takes_all_with_it_and_that_is_told_and_nothing_is_launched_twice() {
    let mut lab = Lab::new().await;
    let (one, other) = (attempt("one", 0), attempt("other", 0));
    for attempt in [&one, &other] {
        let work = patient(lab.dir.path(), attempt);
        launched(&mut lab, &work).await;
        lab.start(attempt).await;
    }
    kill_runner(&lab, &one).await;
    for _ in 0..2 {
        let (_, end) = ended(&mut lab).await;
        let failure = end.failure.unwrap();
        assert!(failure.starts_with("its runner was killed, so it is not known"), "{failure}");
    }
    for attempt in [&one, &other] {
        assert!(!lab.is_under_way(attempt));
        let work = patient(lab.dir.path(), attempt);
        lab.backend.launch(&work).await.unwrap();
        assert_eq!(count(lab.dir.path(), attempt), 1, "an attempt is launched once");
    }
    let next = attempt("one", 1);
    let work = patient(lab.dir.path(), &next);
    launched(&mut lab, &work).await;
    let_end(lab.dir.path(), &next, 0);
    assert_eq!(ended(&mut lab).await.1.failure, None, "the next runner does its work");
    lab.close().await;
}

#[tokio::test]
async fn host_and_runner_may_both_be_killed_and_what_ran_is_known_to_have_been_ended() {
    let mut lab = Lab::new().await;
    let (ran, over) = (attempt("ran", 0), attempt("over", 0));
    for attempt in [&over, &ran] {
        let work = patient(lab.dir.path(), attempt);
        launched(&mut lab, &work).await;
        lab.start(attempt).await;
    }
    let_end(lab.dir.path(), &over, 3);
    ended(&mut lab).await;
    let Lab { dir, backend, .. } = lab;
    let place = backend.place();
    backend.close().await;
    let lab = {
        // Of the host nothing is left that could tell anything.
        let pid = dir.path().join("of").join(super::super::order::guid(&ran)).join("pid");
        kill(Pid::from_raw(parent(number(&pid).unwrap())), Signal::SIGKILL).unwrap();
        Lab::on(dir).await
    };
    let Evidence::Ended(end) = lab.backend.find(&ran, &place).await else { panic!() };
    assert!(end.failure.unwrap().starts_with("its runner was killed"));
    assert!(!lab.is_under_way(&ran));
    let Evidence::Ended(end) = lab.backend.find(&over, &place).await else { panic!() };
    assert_eq!(end.exit_code, Some(3), "what had ended before is as it was");
    let never = attempt("never", 0);
    assert_eq!(lab.backend.find(&never, &place).await, Evidence::Absent);
    lab.close().await;
}

#[tokio::test]
async fn what_a_command_leaves_running_ends_with_it_and_others_go_on() {
    let mut lab = Lab::new().await;
    let stays = attempt("stays", 0);
    let work = patient(lab.dir.path(), &stays);
    launched(&mut lab, &work).await;
    let of = lab.dir.path().to_owned();
    let cases = [
        ("group", "sleep 300 & echo $! > $P"),
        ("session", "setsid sleep 300 & sleep 0.1; echo $! > $P"),
        ("daemon", "(setsid sh -c 'echo $$ > $P; exec sleep 300' &) ; until [ -s $P ]; do :; done"),
    ];
    for (job, script) in cases {
        let one = attempt(job, 0);
        let file = of.join(job);
        let text =
            format!("P={}; export P; {script}; exec >/dev/null 2>&1; exit 4", file.display());
        launched(&mut lab, &command(&one, &text)).await;
        let (attempt, end) = ended(&mut lab).await;
        assert_eq!((attempt, end.exit_code), (one, Some(4)), "{job}");
        assert!(!lives(number(&file).unwrap()), "{job}: it was ended before the end was told");
    }
    lab.start(&stays).await;
    assert!(lab.is_under_way(&stays), "others are left alone");
    let_end(&of, &stays, 0);
    ended(&mut lab).await;
    lab.close().await;
}

#[tokio::test]
async fn who_hides_from_the_runner_ends_when_nothing_runs_that_it_could_be_of() {
    let mut lab = Lab::new().await;
    let (hides, file) = (attempt("hides", 0), lab.dir.path().join("hidden"));
    let script = format!(
        "(env -i PATH=$PATH setsid sh -c 'echo $$ > {0}; exec sleep 300' >/dev/null 2>&1 &); \
         until [ -s {0} ]; do :; done",
        file.display()
    );
    launched(&mut lab, &command(&hides, &script)).await;
    ended(&mut lab).await;
    // It is looked for whenever something ends.
    let gone = || async { !lives(number(&file).unwrap()) };
    let mut later = 0;
    while !gone().await && later < 5 {
        launched(&mut lab, &command(&attempt("later", later), "sleep 0.02")).await;
        ended(&mut lab).await;
        later += 1;
    }
    eventually("it is gone", PATIENCE, gone).await;
    lab.close().await;
}

#[tokio::test]
async fn each_command_has_an_empty_directory_of_its_own_and_home_is_there() {
    let mut lab = Lab::new().await;
    let text = "pwd; [ $HOME = $PWD ] && ls -A && echo left > file && chmod 500 .";
    let mut places = Vec::new();
    for number in 0..3 {
        let one = attempt("places", number);
        launched(&mut lab, &command(&one, text)).await;
        assert_eq!(ended(&mut lab).await.1.failure, None);
        places.push(lab.output(&one));
    }
    places.dedup();
    assert_eq!(places.len(), 3, "one with something in it is not used again: {places:?}");
    let all = || async { places.iter().all(|place| !Path::new(place.trim()).exists()) };
    eventually("what they left is removed", PATIENCE, all).await;
    let one = attempt("home", 0);
    let mut work = command(&one, "echo $HOME");
    work.parameters.insert("HOME".to_owned(), "/elsewhere".to_owned());
    launched(&mut lab, &work).await;
    ended(&mut lab).await;
    assert_eq!(lab.output(&one), "/elsewhere\n");
    lab.close().await;
}

#[tokio::test]
async fn what_writes_nothing_leaves_no_files() {
    let mut lab = Lab::new().await;
    launched(&mut lab, &command(&attempt("quiet", 0), "true")).await;
    assert_eq!(ended(&mut lab).await.1.failure, None);
    assert!(!lab.dir.path().join("runs").exists());
    lab.close().await;
}

#[tokio::test]
async fn hundreds_at_once_each_end_as_they_end() {
    let mut lab = Lab::new().await;
    for number in 0..300 {
        let work =
            command(&attempt("many", number), &format!("echo {number}; exit $(({number} % 7))"));
        lab.backend.launch(&work).await.unwrap();
    }
    let mut left = 300;
    while left > 0 {
        let news = lab.next().await;
        if let What::Ended(end) = news.what {
            let number = news.attempt.number;
            assert_eq!(end.exit_code, Some(i32::try_from(number % 7).unwrap()));
            assert_eq!(lab.output(&news.attempt), format!("{number}\n"));
            left -= 1;
        }
    }
    lab.close().await;
}

#[tokio::test]
async fn when_the_lease_is_over_nothing_runs_any_more_whatever_became_of_the_host() {
    let mut lab = Lab::new().await;
    let (plain, hidden) = (attempt("plain", 0), attempt("hidden", 0));
    let work = patient(lab.dir.path(), &plain);
    launched(&mut lab, &work).await;
    // With a secret it has a shim of its own.
    let of = lab.dir.path().join("of").join(super::super::order::guid(&hidden));
    fs::create_dir_all(&of).unwrap();
    let text = format!("echo $$ > {}/pid; exec sleep 300", of.display());
    let env = serde_json::json!([{"name": "HIDDEN", "secret": "password"}]);
    let payload = serde_json::json!({"command": {"command": text, "env": env}});
    launched(&mut lab, &super::rig::work(&hidden, &payload)).await;
    let both = || async { lab.is_under_way(&plain) && lab.is_under_way(&hidden) };
    eventually("both run", PATIENCE, both).await;
    let Lab { dir, backend, news } = lab;
    backend.inner.runner.lease(Duration::from_millis(300));
    // Behind what was said before.
    let place = backend.place();
    backend.stop(&attempt("none", 0), &place, kapell_core::run::StopKind::AtOnce).await.unwrap();
    backend.close().await;
    drop(news);
    let pids = [&plain, &hidden].map(|of| {
        number(&dir.path().join("of").join(super::super::order::guid(of)).join("pid")).unwrap()
    });
    let gone = || async { !pids.iter().any(|pid| lives(*pid)) };
    eventually("both are ended without a host", PATIENCE, gone).await;
    let lab = Lab::on(dir).await;
    for attempt in [&plain, &hidden] {
        let known =
            || async { matches!(lab.backend.find(attempt, &place).await, Evidence::Ended(_)) };
        eventually("its end is known", PATIENCE, known).await;
    }
    lab.close().await;
}

#[tokio::test]
async fn a_host_that_leaves_ends_its_work_and_what_is_known_stays_known() {
    let mut lab = Lab::new().await;
    let one = attempt("leaves", 0);
    let work = patient(lab.dir.path(), &one);
    launched(&mut lab, &work).await;
    lab.start(&one).await;
    lab.backend.leave(kapell_core::run::StopKind::Graceful).await;
    assert!(!lab.is_under_way(&one));
    let lab = lab.reopen().await;
    let Evidence::Ended(end) = lab.backend.find(&one, &lab.backend.place()).await else { panic!() };
    assert!(end.failure.unwrap().contains("signal 15"), "it was asked to end");
    lab.close().await;
}

#[tokio::test]
async fn hosts_that_come_as_soon_as_others_have_gone_are_each_welcomed() {
    let mut lab = Lab::new().await;
    let over = attempt("over", 0);
    let work = patient(lab.dir.path(), &over);
    launched(&mut lab, &work).await;
    let_end(lab.dir.path(), &over, 0);
    ended(&mut lab).await;
    // With nothing running, the runner is about to end each time that its host has gone.
    for _ in 0..100 {
        lab = tokio::time::timeout(PATIENCE, lab.reopen()).await.expect("a welcome");
    }
    assert_eq!(count(lab.dir.path(), &over), 1);
    lab.close().await;
}
