//! A place for containers that is checked to be clean at the end of a test.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kapell_core::log::{Decoder, Frame, Stream};
use nix::unistd::geteuid;
use tempfile::TempDir;

use crate::containers::{Containers as _, Error, Exit, Spec, User};
use crate::process::ProcessContainers;

/// Nothing here takes longer unless it hangs.
const PATIENCE: Duration = Duration::from_secs(20);

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

    pub(super) fn spec(&self, name: &str, script: &str) -> Spec {
        let guid = self.guid(name);
        Spec {
            tag: format!("tag of {name}").into_bytes(),
            path: "sh".to_owned(),
            args: vec!["-c".to_owned(), script.to_owned()],
            env: vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())],
            dir: None,
            user: User::Same,
            stop_grace: Duration::from_secs(10),
            logs: self.logs(name),
            log_bytes: 1 << 30,
            guid,
        }
    }

    pub(super) fn logs(&self, name: &str) -> PathBuf {
        self.dir.path().join("logs").join(name)
    }

    pub(super) fn home(&self, name: &str) -> PathBuf {
        self.dir.path().join("containers").join(self.guid(name))
    }

    pub(super) fn pid(&self, name: &str, line: usize) -> i32 {
        let text = fs::read_to_string(self.home(name).join("pid")).unwrap();
        text.lines().nth(line).unwrap().parse().unwrap()
    }

    pub(super) async fn run(&self, name: &str, script: &str) {
        self.driver.run(self.spec(name, script)).await.unwrap();
    }

    pub(super) async fn ended(&self, name: &str) -> Exit {
        let guid = self.guid(name);
        let ended = self.driver.ended(&guid);
        tokio::time::timeout(PATIENCE, ended).await.expect("it ends").unwrap()
    }

    pub(super) async fn run_to_end(&self, name: &str, script: &str) -> Exit {
        self.run(name, script).await;
        self.ended(name).await
    }

    pub(super) async fn why_not(&self, spec: Spec) -> String {
        let home = self.dir.path().join("containers").join(&spec.guid);
        let error = self.driver.run(spec).await.unwrap_err();
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
            let pids = fs::read_to_string(containers.join(&guid).join("pid")).unwrap();
            self.driver.delete(&guid).await.unwrap();
            assert!(!containers.join(&guid).exists());
            let mut pids = pids.lines();
            let (shim, program) = (pids.next().unwrap(), pids.next().unwrap());
            assert!(!Path::new("/proc").join(shim).exists(), "shim {shim} of {guid} is left");
            // If its shim was killed, the system is its parent and may leave it a zombie for a while.
            assert!(!is_alive(program.parse().unwrap()), "{program} of {guid} is left");
        }
        let strays = strays(self.dir.path());
        assert!(strays.is_empty(), "{strays:?}");
    }
}

pub(super) fn frames(logs: &Path) -> Vec<Frame> {
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

/// Looks again and again until it is so.
pub(super) async fn until(mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "it does not come to pass");
        tokio::time::sleep(Duration::from_millis(2)).await; // tidy: allow(sleep) polling
    }
}

/// Whether it is there and no zombie.
pub(super) fn is_alive(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// False, and the test is reported as skipped, unless we are root.
pub(super) fn is_root(test: &str) -> bool {
    let is_root = geteuid().is_root();
    if !is_root {
        skip(test, "needs root");
    }
    is_root
}

pub(super) fn skip(test: &str, reason: &str) {
    let Some(file) = std::env::var_os("KAPELL_TEST_SKIPS") else { return };
    let mut file = fs::OpenOptions::new().create(true).append(true).open(file).unwrap();
    file.write_all(format!("SKIP {test}: {reason}\n").as_bytes()).unwrap();
}
