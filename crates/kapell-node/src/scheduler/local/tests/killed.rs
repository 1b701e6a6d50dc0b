//! A host in a process of its own, killed while it launches.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use kapell_core::run::Evidence;
use tokio::task::JoinSet;

use super::rig::{Lab, count, let_end, open, patient};
use crate::scheduler::backend::{Attempt, Backend as _, News, What};
use crate::scheduler::conformance::{Rig as _, attempt};
use crate::testing::eventually;

const DIR: &str = "KAPELL_TEST_HOST_DIR";
const COUNT: u32 = 24;
const PATIENCE: Duration = Duration::from_secs(30);

fn all() -> impl Iterator<Item = Attempt> {
    (0..COUNT).map(|number| attempt("killed", number))
}

/// Not a test but the host, when [`DIR`] says where.
#[tokio::test]
async fn the_host() {
    let Some(dir) = std::env::var_os(DIR) else { return };
    let dir = Path::new(&dir);
    let (backend, _news) = open(dir).await;
    fs::write(dir.join("place"), backend.place()).unwrap();
    let backend = Arc::new(backend);
    let mut launches = JoinSet::new();
    for attempt in all() {
        let (backend, work) = (Arc::clone(&backend), patient(dir, &attempt));
        launches.spawn(async move { backend.launch(&work).await.unwrap() });
    }
    while let Some(launched) = launches.join_next().await {
        launched.unwrap();
    }
    fs::write(dir.join("done"), "").unwrap();
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn no_kill_of_the_host_has_work_launched_twice_or_lost() {
    for kill_at in [0, 1, 3, 10, 24] {
        let dir = tempfile::tempdir().unwrap();
        let mut host = Command::new(std::env::current_exe().unwrap())
            .args(["scheduler::local::tests::killed::the_host", "--exact"])
            .env(DIR, dir.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let made = || async {
            let place = fs::exists(dir.path().join("place")).unwrap();
            place && all().map(|attempt| count(dir.path(), &attempt)).sum::<u32>() >= kill_at
        };
        eventually("the host launches", PATIENCE, made).await;
        host.kill().unwrap();
        host.wait().unwrap();
        let place = fs::read_to_string(dir.path().join("place")).unwrap();
        let mut lab = Lab::on(dir).await;
        assert_eq!(lab.backend.place(), place, "a host is the same after its restart");
        // What a leader does who finds intents.
        for attempt in all() {
            match lab.backend.find(&attempt, &place).await {
                Evidence::Absent => {
                    let work = patient(lab.dir.path(), &attempt);
                    lab.backend.launch(&work).await.unwrap();
                }
                Evidence::Launched | Evidence::Running { .. } => {}
                other @ (Evidence::Unknown { .. } | Evidence::Ended(_)) => {
                    panic!("{attempt:?}: {other:?}")
                }
            }
            let_end(lab.dir.path(), &attempt, 5);
        }
        let mut ended = 0;
        while ended < COUNT {
            if let News { what: What::Ended(work), .. } = lab.next().await {
                assert_eq!(work.exit_code, Some(5));
                ended += 1;
            }
        }
        for attempt in all() {
            assert_eq!(count(lab.dir.path(), &attempt), 1, "killed at {kill_at}: {attempt:?}");
        }
        lab.close().await;
    }
}

#[tokio::test]
async fn an_end_while_no_host_was_there_is_found() {
    let lab = Lab::new().await;
    let (well, badly) = (attempt("well", 0), attempt("badly", 0));
    for attempt in [&well, &badly] {
        lab.backend.launch(&patient(lab.dir.path(), attempt)).await.unwrap();
        lab.start(attempt).await;
    }
    let Lab { dir, backend, .. } = lab;
    let place = backend.place();
    backend.close().await;
    let_end(dir.path(), &well, 0);
    let_end(dir.path(), &badly, 7);
    let runner = dir.path().join("work/runner/lock");
    let gone = || async { File::open(&runner).unwrap().try_lock().is_ok() };
    eventually("the runner ends, now that nothing runs", PATIENCE, gone).await;
    let lab = Lab::on(dir).await;
    for (attempt, code) in [(&well, 0), (&badly, 7)] {
        let Evidence::Ended(work) = lab.backend.find(attempt, &place).await else { panic!() };
        assert_eq!((work.exit_code, work.failure.is_some()), (Some(code), code != 0));
    }
    lab.close().await;
}
