//! A place for containers that is checked to be clean at the end of a test.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use kapell_core::log::{Frame, Stream};
use nix::unistd::geteuid;
use tempfile::TempDir;

use crate::containers::{Containers as _, Error, Exit, Limits, Output, Process, Spec, User};
use crate::process::ProcessContainers;
pub(super) use crate::testing::{frames, is_alive, is_root, skip, until};

/// Nothing here takes longer unless it hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// The only process of a container.
pub(super) const MAIN: &str = "main";

/// A container and its only process.
#[derive(Debug, Clone)]
pub(super) struct Job {
    pub(super) guid: String,
    pub(super) path: String,
    pub(super) args: Vec<String>,
    pub(super) env: Vec<(String, String)>,
    pub(super) dir: Option<PathBuf>,
    pub(super) user: User,
    pub(super) limits: Limits,
    pub(super) stop_grace: Duration,
    pub(super) logs: PathBuf,
    pub(super) log_bytes: u64,
}

impl Job {
    pub(super) fn spec(&self) -> Spec {
        Spec {
            guid: self.guid.clone(),
            tag: format!("tag of {}", self.guid).into_bytes(),
            rootfs: None,
            user: self.user.clone(),
            limits: self.limits,
            ports: Vec::new(),
            logs: self.logs.clone(),
            log_bytes: self.log_bytes,
            log_rate: None,
            sole: true,
        }
    }

    pub(super) fn process(&self) -> Process {
        Process {
            name: MAIN.to_owned(),
            path: self.path.clone(),
            args: self.args.clone(),
            env: self.env.clone(),
            secrets: Vec::new(),
            dir: self.dir.clone(),
            user: None,
            stop_grace: self.stop_grace,
            output: Output::Kept,
        }
    }

    /// Whatever fails leaves no container behind.
    pub(super) async fn start(&self, driver: &ProcessContainers) -> Result<(), Error> {
        driver.create(self.spec()).await?;
        let ran = driver.run(&self.guid, self.process()).await;
        if ran.is_err() {
            driver.delete(&self.guid).await?;
        }
        ran
    }
}

/// Whoever has this user is killed with its container, and others run tests on this machine, too.
pub(super) fn own_user() -> User {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let uid = 1_500_000_000 + std::process::id() * 256 + NEXT.fetch_add(1, Ordering::Relaxed);
    if geteuid().is_root() { User::Id { uid, gid: uid, own: true } } else { User::Same }
}

#[derive(Debug)]
pub(super) struct Lab {
    pub(super) dir: TempDir,
    pub(super) driver: ProcessContainers,
}

impl Lab {
    pub(super) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        // Other users must be able to walk to their working directories.
        let open = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
        fs::set_permissions(dir.path(), open).unwrap();
        let driver = ProcessContainers::open(dir.path()).unwrap();
        Self { dir, driver }
    }

    /// As if the agent were killed and started again.
    pub(super) fn restart(self) -> Self {
        drop(self.driver);
        let driver = ProcessContainers::open(self.dir.path()).unwrap();
        Self { driver, dir: self.dir }
    }

    /// Names differ from test to test: they run side by side.
    pub(super) fn guid(&self, name: &str) -> String {
        let lab: String = self.dir.path().to_string_lossy().chars().rev().take(5).collect();
        format!("{name}-{}", lab.replace('.', "_"))
    }

    pub(super) fn job(&self, name: &str, script: &str) -> Job {
        Job {
            guid: self.guid(name),
            path: "sh".to_owned(),
            args: vec!["-c".to_owned(), script.to_owned()],
            env: vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())],
            dir: None,
            user: User::Same,
            limits: Limits::default(),
            stop_grace: Duration::from_secs(10),
            logs: self.dir.path().join("logs").join(name),
            log_bytes: 1 << 30,
        }
    }

    pub(super) fn logs(&self, name: &str) -> PathBuf {
        self.dir.path().join("logs").join(name).join(MAIN)
    }

    pub(super) fn home(&self, name: &str) -> PathBuf {
        self.dir.path().join("containers").join(self.guid(name))
    }

    pub(super) fn run_home(&self, name: &str) -> PathBuf {
        self.home(name).join("run").join(MAIN)
    }

    pub(super) fn pid(&self, name: &str, line: usize) -> i32 {
        let text = fs::read_to_string(self.run_home(name).join("pid")).unwrap();
        text.lines().nth(line).unwrap().parse().unwrap()
    }

    pub(super) async fn run(&self, name: &str, script: &str) {
        self.start(self.job(name, script)).await;
    }

    pub(super) async fn start(&self, job: Job) {
        job.start(&self.driver).await.unwrap();
    }

    pub(super) async fn stop(&self, name: &str) {
        self.driver.stop(&self.guid(name), MAIN).await.unwrap();
    }

    pub(super) async fn ended(&self, name: &str) -> Exit {
        let guid = self.guid(name);
        let ended = self.driver.ended(&guid, MAIN);
        tokio::time::timeout(PATIENCE, ended).await.expect("it ends").unwrap()
    }

    pub(super) async fn run_to_end(&self, name: &str, script: &str) -> Exit {
        self.run(name, script).await;
        self.ended(name).await
    }

    pub(super) async fn why_not(&self, job: Job) -> String {
        let home = self.dir.path().join("containers").join(&job.guid);
        let error = job.start(&self.driver).await.unwrap_err();
        assert!(matches!(error, Error::Unstartable(_)), "{error:?}");
        assert!(!home.exists(), "nothing is left");
        error.to_string()
    }

    pub(super) fn frames(&self, name: &str) -> Vec<Frame> {
        frames(&self.logs(name))
    }

    pub(super) fn output(&self, name: &str, stream: Stream) -> Vec<u8> {
        let frames = self.frames(name).into_iter().filter(|frame| frame.stream == stream);
        frames.flat_map(|frame| frame.bytes).collect()
    }

    /// What it wrote to its standard output so far.
    pub(super) fn text(&self, name: &str) -> String {
        String::from_utf8(self.output(name, Stream::Out)).unwrap()
    }

    /// Waits until it has written this.
    pub(super) async fn says(&self, name: &str, text: &str) {
        until(|| self.text(name).contains(text)).await;
    }

    /// Deletes all containers, and finds nothing left of them.
    pub(super) async fn clean_up(self) {
        let containers = self.dir.path().join("containers");
        for entry in fs::read_dir(&containers).unwrap() {
            let guid = entry.unwrap().file_name().into_string().unwrap();
            let runs = fs::read_dir(containers.join(&guid).join("run")).unwrap();
            let pids: Vec<String> = runs
                .map(|run| fs::read_to_string(run.unwrap().path().join("pid")).unwrap())
                .collect();
            self.driver.delete(&guid).await.unwrap();
            assert!(!containers.join(&guid).exists());
            for pids in pids {
                let mut pids = pids.lines();
                let (shim, program) = (pids.next().unwrap(), pids.next().unwrap());
                assert!(!Path::new("/proc").join(shim).exists(), "shim {shim} of {guid} is left");
                // If its shim was killed, the system is its parent and may leave it a zombie for a while.
                assert!(!is_alive(program.parse().unwrap()), "{program} of {guid} is left");
            }
        }
        let strays = strays(self.dir.path());
        assert!(strays.is_empty(), "{strays:?}");
    }
}

/// Processes that mention the lab: its shims by their arguments, what they started by the guid.
fn strays(dir: &Path) -> Vec<String> {
    let place = dir.to_string_lossy().into_owned();
    let lab: String = place.chars().rev().take(5).collect();
    let mark = format!("-{}", lab.replace('.', "_"));
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let read = |name: &str| {
            String::from_utf8_lossy(&fs::read(entry.path().join(name)).unwrap_or_default())
                .into_owned()
        };
        let is_ours =
            |variable: &str| variable.starts_with("KAPELL_CONTAINER=") && variable.ends_with(&mark);
        if read("cmdline").contains(&place) || read("environ").split('\0').any(is_ours) {
            found.push(format!("{:?}: {}", entry.file_name(), read("cmdline")));
        }
    }
    found
}

/// Leaves the session, its marks and its parents behind, and tells its number.
pub(crate) const ESCAPES: &str =
    "env -i /usr/bin/setsid /bin/sh -c 'echo escaped $$; exec /bin/sleep 100' & ";

/// The number that it told.
pub(crate) async fn escaped(lab: &Lab, name: &str) -> i32 {
    lab.says(name, "escaped ").await;
    lab.says(name, "\n").await;
    lab.text(name).trim().rsplit(' ').next().unwrap().parse().unwrap()
}
