//! An agent in a process of its own, killed while it starts containers.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use tokio::task::JoinSet;

use super::lab::{Job, Lab, MAIN, until};
use crate::containers::{Containers as _, Exit, Limits};
use crate::process::ProcessContainers;

const DIR: &str = "KAPELL_TEST_AGENT_DIR";
const COUNT: usize = 60;
const SCRIPT: &str = "echo ran >> \"$RAN\"; echo hello; sleep 0.05; echo there; exit 5";

/// Not a test but the agent, when [`DIR`] says where.
#[tokio::test]
async fn the_agent() {
    let Some(dir) = std::env::var_os(DIR) else { return };
    let dir = Path::new(&dir);
    let driver = Arc::new(ProcessContainers::open(&dir.join("agent")).unwrap());
    let mut starts = JoinSet::new();
    for at in 0..COUNT {
        let job = job(dir, at);
        let driver = Arc::clone(&driver);
        let told = dir.join("told");
        starts.spawn(async move {
            let line = format!("{}\n", job.guid);
            job.start(&driver).await.unwrap();
            let mut file = OpenOptions::new().create(true).append(true).open(told).unwrap();
            file.write_all(line.as_bytes()).unwrap();
        });
    }
    while let Some(ran) = starts.join_next().await {
        ran.unwrap();
    }
    std::future::pending::<()>().await;
}

fn job(dir: &Path, at: usize) -> Job {
    let place = dir.file_name().unwrap().to_str().unwrap().replace('.', "_");
    let guid = format!("killed{at}-{place}");
    let pair = |name: &str, value: String| (name.to_owned(), value);
    Job {
        path: "sh".to_owned(),
        args: vec!["-c".to_owned(), SCRIPT.to_owned()],
        env: vec![
            pair("PATH", "/usr/bin:/bin".to_owned()),
            pair("RAN", dir.join("ran").join(&guid).display().to_string()),
        ],
        dir: None,
        user: crate::containers::User::Same,
        limits: Limits::default(),
        stop_grace: std::time::Duration::ZERO,
        logs: dir.join("logs").join(&guid),
        log_bytes: 1 << 20,
        guid,
    }
}

#[tokio::test]
async fn nothing_is_lost_and_nothing_runs_twice() {
    for kill_at in [1, 2, 10, COUNT / 2, COUNT] {
        let lab = Lab::new();
        let dir = lab.dir.path();
        fs::create_dir(dir.join("ran")).unwrap();
        let mut agent = Command::new(std::env::current_exe().unwrap())
            .args(["process::tests::killed::the_agent", "--exact"])
            .env(DIR, dir)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let containers = dir.join("agent/containers");
        until(|| fs::read_dir(&containers).is_ok_and(|all| all.count() >= kill_at)).await;
        agent.kill().unwrap();
        agent.wait().unwrap();
        let driver = ProcessContainers::open(&dir.join("agent")).unwrap();
        let mut found = BTreeSet::new();
        for each in driver.recover().await.unwrap() {
            // It was killed between the container and its process.
            if each.processes.is_empty() {
                driver.delete(&each.guid).await.unwrap();
                continue;
            }
            let exit = driver.ended(&each.guid, MAIN).await.unwrap();
            let last_words = "there".to_owned();
            assert_eq!(exit, Exit { code: Some(5), last_words, ..Exit::default() });
            let text: Vec<u8> = super::lab::frames(&dir.join("logs").join(&each.guid).join(MAIN))
                .into_iter()
                .flat_map(|frame| frame.bytes)
                .collect();
            assert_eq!(text, b"hello\nthere\n");
            driver.delete(&each.guid).await.unwrap();
            found.insert(each.guid);
        }
        let told = fs::read_to_string(dir.join("told")).unwrap_or_default();
        assert!(told.lines().all(|guid| found.contains(guid)), "what was told to run is known");
        let ran = fs::read_dir(dir.join("ran")).unwrap().map(|entry| {
            let entry = entry.unwrap();
            assert_eq!(fs::read_to_string(entry.path()).unwrap(), "ran\n", "once");
            entry.file_name().into_string().unwrap()
        });
        assert_eq!(ran.collect::<BTreeSet<_>>(), found, "what ran is known");
        assert_eq!(fs::read_dir(&containers).unwrap().count(), 0);
        drop(driver);
        lab.clean_up().await;
    }
}
