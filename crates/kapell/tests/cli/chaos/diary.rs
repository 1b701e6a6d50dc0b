//! What was done when, and where the logs are: for whoever looks why a round of chaos failed.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A directory for the logs of failed rounds; otherwise they are among other temporary files.
const LOGS: &str = "KAPELL_CHAOS_LOGS";

/// Told in full if the test fails; then the logs stay.
pub(super) struct Diary {
    seed: u64,
    begun: Instant,
    dir: PathBuf,
    file: File,
    lines: Vec<String>,
    counts: BTreeMap<&'static str, usize>,
}

impl Diary {
    pub(super) fn begin(seed: u64) -> Self {
        let base = std::env::var_os(LOGS).map_or_else(std::env::temp_dir, PathBuf::from);
        let dir = base.join(format!("kapell-chaos-{}-{seed}", std::process::id()));
        fs::create_dir_all(&dir).expect("a directory");
        let file = File::create(dir.join("diary")).expect("a file");
        let (lines, counts) = (Vec::new(), BTreeMap::new());
        Self { seed, begun: Instant::now(), dir, file, lines, counts }
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(super) fn note(&mut self, what: &str) {
        let line = format!("{:8.3} s  {what}", self.begun.elapsed().as_secs_f64());
        // On disk at once: who ends a test that hangs still has it.
        writeln!(self.file, "{line}").expect("a line can be written");
        self.lines.push(line);
    }

    /// Notes one of those deeds that are counted.
    pub(super) fn count(&mut self, kind: &'static str, what: &str) {
        *self.counts.entry(kind).or_default() += 1;
        self.note(&format!("{kind}: {what}"));
    }

    /// Keeps a text beside the logs.
    pub(super) fn keep(&self, name: &str, text: &str) {
        fs::write(self.dir.join(name), text).expect("a file");
    }

    /// One line that `cargo xtask soak` reads, too.
    pub(super) fn summary(&self) -> String {
        let counts: Vec<String> =
            self.counts.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
        format!("chaos: seed {}: {}", self.seed, counts.join(", "))
    }
}

impl Drop for Diary {
    #[expect(
        clippy::print_stderr,
        clippy::print_stdout,
        reason = "for whoever looks why a test failed"
    )]
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _best_effort = fs::remove_dir_all(&self.dir);
            return;
        }
        for line in &self.lines {
            eprintln!("{line}");
        }
        println!("{}", self.summary());
        let (seed, dir) = (self.seed, self.dir.display());
        eprintln!("to draw the same again: KAPELL_SIM_SEED={seed}; logs: {dir}");
    }
}
