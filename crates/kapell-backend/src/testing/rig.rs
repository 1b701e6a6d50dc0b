//! A driver with a place of its own.

use std::fmt;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use kapell_core::log::{Decoder, Frame, Stream};
use nix::unistd::geteuid;
use tempfile::TempDir;

use crate::containers::{Containers, Exit, Found, Limits, Output, Process, Spec, User};

/// Nothing here takes longer unless it hangs.
const PATIENCE: Duration = Duration::from_secs(20);
/// The only process of most containers.
pub(crate) const MAIN: &str = "main";

/// Opens the driver in its place, as an agent does that is started there.
type Open = Box<dyn Fn(&Path) -> Arc<dyn Containers>>;

pub(crate) struct Rig {
    pub(crate) dir: TempDir,
    pub(crate) driver: Arc<dyn Containers>,
    open: Open,
    rootfs: Option<String>,
    users: Box<dyn Fn() -> User>,
    test: &'static str,
    /// Names the processes of this rig among all of the machine.
    pub(crate) token: String,
}

impl fmt::Debug for Rig {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Rig").field("dir", &self.dir).finish_non_exhaustive()
    }
}

impl Rig {
    /// With containers that have this root file system, and each one of these users.
    pub(crate) fn new(
        rootfs: Option<String>,
        users: impl Fn() -> User + 'static,
        open: impl Fn(&Path) -> Arc<dyn Containers> + 'static,
    ) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let dir = tempfile::tempdir().unwrap();
        // Other users must be able to walk to their working directories.
        let mode = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
        fs::set_permissions(dir.path(), mode).unwrap();
        let driver = open(&dir.path().join("agent"));
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let token = format!("rig{}x{number}x", std::process::id());
        Self { dir, driver, open: Box::new(open), rootfs, users: Box::new(users), test: "", token }
    }

    /// For the test with this name.
    pub(crate) fn named(self, test: &'static str) -> Self {
        Self { test, ..self }
    }

    /// Reports that the test cannot run here, or not all of it.
    pub(crate) fn skip(&self, reason: &str) {
        skip(self.test, reason);
    }

    /// As if the agent were killed and started again.
    pub(crate) async fn restart(self) -> (Self, Vec<Found>) {
        let Self { dir, driver, open, rootfs, users, test, token } = self;
        drop(driver);
        let driver = open(&dir.path().join("agent"));
        let found = driver.recover().await.unwrap();
        (Self { dir, driver, open, rootfs, users, test, token }, found)
    }

    /// Names differ from test to test: they run side by side.
    pub(crate) fn guid(&self, name: &str) -> String {
        format!("{}{name}", self.token)
    }

    pub(crate) fn spec(&self, name: &str) -> Spec {
        Spec {
            guid: self.guid(name),
            tag: format!("tag\0of {name}").into_bytes(),
            rootfs: self.rootfs.clone(),
            user: (self.users)(),
            limits: Limits::default(),
            ports: Vec::new(),
            logs: self.dir.path().join("logs").join(name),
            log_bytes: 1 << 30,
            log_rate: None,
            sole: true,
        }
    }

    /// A shell with this script.
    pub(crate) fn process(process: &str, script: &str) -> Process {
        Process {
            name: process.to_owned(),
            path: "/bin/sh".to_owned(),
            args: vec!["-c".to_owned(), script.to_owned()],
            env: vec![("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())],
            secrets: Vec::new(),
            dir: None,
            user: None,
            stop_grace: Duration::from_secs(10),
            output: Output::Kept,
        }
    }

    pub(crate) async fn create(&self, spec: Spec) {
        self.driver.create(spec).await.unwrap();
    }

    pub(crate) async fn run(&self, name: &str, process: Process) {
        self.driver.run(&self.guid(name), process).await.unwrap();
    }

    /// In a container of its own.
    pub(crate) async fn start(&self, name: &str, script: &str) {
        self.create(self.spec(name)).await;
        self.run(name, Self::process(MAIN, script)).await;
    }

    pub(crate) async fn ended(&self, name: &str, process: &str) -> Exit {
        let guid = self.guid(name);
        let ended = self.driver.ended(&guid, process);
        tokio::time::timeout(PATIENCE, ended).await.expect("it ends").unwrap()
    }

    pub(crate) async fn run_to_end(&self, name: &str, script: &str) -> Exit {
        self.start(name, script).await;
        self.ended(name, MAIN).await
    }

    /// Lets a script go on that waits for this file in its directory.
    pub(crate) async fn touch(&self, name: &str, file: &str) {
        let from = self.dir.path().join("empty");
        fs::write(&from, "").unwrap();
        self.driver.put(&self.guid(name), &from, file).await.unwrap();
    }

    pub(crate) fn logs(&self, name: &str, process: &str) -> PathBuf {
        self.dir.path().join("logs").join(name).join(process)
    }

    pub(crate) fn output(&self, name: &str, process: &str, stream: Stream) -> Vec<u8> {
        let frames = frames(&self.logs(name, process)).into_iter();
        frames.filter(|frame| frame.stream == stream).flat_map(|frame| frame.bytes).collect()
    }

    /// What it wrote to its standard output so far.
    pub(crate) fn text(&self, name: &str, process: &str) -> String {
        String::from_utf8(self.output(name, process, Stream::Out)).unwrap()
    }

    /// Waits until it has written this.
    pub(crate) async fn says(&self, name: &str, process: &str, text: &str) {
        until(|| self.text(name, process).contains(text)).await;
    }

    /// How many processes of the machine have this in their arguments.
    pub(crate) fn count(mark: &str) -> usize {
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let has_mark = |pid: &i32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(mark)
        };
        pids.filter(has_mark).filter(|pid| is_alive(*pid)).count()
    }

    /// Deletes these containers, and finds nothing left of them.
    pub(crate) async fn clean_up(self, names: &[&str]) {
        for name in names {
            self.driver.delete(&self.guid(name)).await.unwrap();
        }
        assert_eq!(Self::count(&self.token), 0, "nothing is left");
        let (rig, found) = self.restart().await;
        assert_eq!(found, [], "all of them were deleted");
        drop(rig);
    }
}

/// What stands in a directory of logs.
pub(crate) fn frames(logs: &Path) -> Vec<Frame> {
    let mut files: Vec<PathBuf> = fs::read_dir(logs)
        .map(|entries| entries.map(|entry| entry.unwrap().path()).collect())
        .unwrap_or_default();
    files.sort();
    let mut frames = Vec::new();
    for file in files {
        let mut decoder = Decoder::default();
        decoder.push(&fs::read(file).unwrap());
        while let Some(frame) = decoder.next_frame().unwrap() {
            frames.push(frame);
        }
    }
    frames
}

/// Looks again and again until it is so.
pub(crate) async fn until(mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "it does not come to pass");
        tokio::time::sleep(Duration::from_millis(2)).await; // tidy: allow(sleep) polling
    }
}

/// Whether it is there and no zombie.
pub(crate) fn is_alive(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// False, and the test is reported as skipped, unless we are root.
pub(crate) fn is_root(test: &str) -> bool {
    let is_root = geteuid().is_root();
    if !is_root {
        skip(test, "needs root");
    }
    is_root
}

pub(crate) fn skip(test: &str, reason: &str) {
    let Some(file) = std::env::var_os("KAPELL_TEST_SKIPS") else { return };
    let mut file = fs::OpenOptions::new().create(true).append(true).open(file).unwrap();
    file.write_all(format!("SKIP {test}: {reason}\n").as_bytes()).unwrap();
}
