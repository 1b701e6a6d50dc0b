//! Work that counts itself: a line a launch, with its run and the number of its attempt.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::platform::fleet::open_dir;

pub(super) const FAILPOINT: &str = "KAPELL_FAILPOINT";
/// The value of a host that nothing happens to.
pub(super) const NOWHERE: &str = "none";

/// The first attempt fails, the second does not.
pub(super) const BRIEF: &str = "exit $((KAPELL_ATTEMPT < 1))";

/// Everything that a run waits for, before and after.
pub(super) const POINTS: [&str; 18] = [
    "check",
    "checked",
    "act",
    "acted",
    "intent",
    "intent-stored",
    "launch",
    "launched",
    "started",
    "started-stored",
    "check-post",
    "checked-post",
    "retry",
    "retry-stored",
    "ended",
    "ended-stored",
    "release",
    "released",
];

/// What is run, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Where {
    Host,
    Cell,
    Workflow,
}

impl Where {
    pub(super) const ALL: [Self; 3] = [Self::Host, Self::Cell, Self::Workflow];

    /// The id of its job.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Host => "on-the-host",
            Self::Cell => "on-a-cell",
            Self::Workflow => "a-workflow",
        }
    }

    /// The part of a job that says what it does.
    pub(super) fn payload(self, script: &str) -> Value {
        match self {
            Self::Host => json!({"command": {"command": script, "stop_grace": "2s"}}),
            Self::Cell => {
                json!({"task": {"action": {"run": {"path": "sh", "args": ["-c", script]}}}})
            }
            Self::Workflow => {
                let step = json!({"name": "one", "command": script}).to_string();
                json!({"workflow": {"text": format!("steps: [{step}]")}})
            }
        }
    }
}

/// Work may run as another user: a file that everybody may write to.
pub(super) fn open_file(file: PathBuf) -> PathBuf {
    fs::write(&file, "").expect("a file can be written");
    fs::set_permissions(&file, Permissions::from_mode(0o666)).expect("our own");
    file
}

/// Where work counts itself.
#[derive(Debug, Clone)]
pub(super) struct Ledger(PathBuf);

impl Ledger {
    /// Everybody may write to it.
    pub(super) fn new(dir: &Path) -> Self {
        open_dir(dir);
        Self(open_file(dir.join("counted")))
    }

    /// Counts itself, as every launch does first.
    pub(super) fn count(&self) -> String {
        format!("echo $KAPELL_RUN_ID $KAPELL_ATTEMPT >> {}", self.0.display())
    }

    /// A job whose first attempt fails, and whose second does not; a constraint with an action comes before it and
    /// another one after it.
    pub(super) fn job(&self, place: Where) -> Value {
        self.job_of(place, BRIEF)
    }

    /// The same, with other work.
    pub(super) fn job_of(&self, place: Where, script: &str) -> Value {
        let mut job = json!({
            "job_id": place.name(),
            "overlap": "allow",
            // Attempts are lost with hosts, too.
            "retry": {"max_retries": 20, "initial_delay": "100ms", "max_delay": "2s", "on": ["launch"]},
            "history": {"succeeded": 10000, "failed": 10000},
            "constraints": [
                {"time_window": {"config": {"start": "00:00", "end": "24:00"}, "onMet": [{"log": {"message": "goes"}}]}},
                {"maxExpectedRunTime": {"config": "1h"}},
            ],
        });
        let work = place.payload(&format!("{}; {script}", self.count()));
        if let (Some(all), Some(work)) = (job.as_object_mut(), work.as_object()) {
            all.extend(work.clone());
        }
        job
    }

    /// How often each attempt of each run was launched, as the work itself has it.
    pub(super) fn launches(&self) -> BTreeMap<String, usize> {
        let text = fs::read_to_string(&self.0).unwrap_or_default();
        let mut counts = BTreeMap::new();
        for line in text.lines() {
            *counts.entry(line.to_owned()).or_default() += 1;
        }
        counts
    }

    #[track_caller]
    pub(super) fn nothing_twice(&self, about: &str) {
        let mut launches = self.launches();
        launches.retain(|_, count| *count != 1);
        assert!(launches.is_empty(), "{about}: launched twice: {launches:?}");
    }
}
