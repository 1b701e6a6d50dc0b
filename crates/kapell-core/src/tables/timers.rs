//! How long everything waits.

use std::time::Duration;

use super::{Page, table};
use crate::access::CERTIFICATE_LIFE;
use crate::board::{Check, Settings};
use crate::recipe::Wait;

/// A time that can be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timer {
    /// Its name in the settings.
    pub key: &'static str,
    pub usual: Duration,
    pub about: &'static str,
}

const fn timer(key: &'static str, usual: Duration, about: &'static str) -> Timer {
    Timer { key, usual, about }
}

/// Every timer of the board, of hosts and of a cell.
pub fn timers() -> Vec<Timer> {
    let board = Settings::default();
    let mut all = vec![
        timer(
            "presence_ttl",
            board.presence_ttl,
            "A cell that is not heard of for so long is lost; it says that it is there three times as often. A new leader waits so long for the cells that it knows of.",
        ),
        timer(
            "converge_every",
            board.converge_every,
            "How often convergence looks at everything, besides whenever a cell is lost or something falls due.",
        ),
        timer(
            "stale_unclaimed",
            board.stale_unclaimed,
            "An instance that is UNCLAIMED for so long is asked for again.",
        ),
        timer(
            "kick_task",
            board.kick_task,
            "A task that is PENDING for so long is asked for again; one with a callback that is COMPLETED for so long is resolved; one that is RESOLVING for so long is COMPLETED again.",
        ),
        timer("pending_task", board.pending_task, "A task that is PENDING for so long has failed."),
        timer(
            "completed_task",
            board.completed_task,
            "So long after it first completed a task is forgotten.",
        ),
        timer(
            "evacuation_timeout",
            board.evacuation,
            "How long an evacuating twin lasts, and how long a cell takes at most to be evacuated; tasks that still run have then failed.",
        ),
        timer(
            "crash_wait",
            board.crash_wait,
            "The unit of the crash dance: doubled with every crash.",
        ),
        timer(
            "longest_crash_wait",
            board.longest_crash_wait,
            "The most that a crashed instance waits.",
        ),
        timer(
            "crash_reset",
            board.crash_reset,
            "Having run for so long, the crashes of an instance are forgotten.",
        ),
        timer(
            "certificate_life",
            CERTIFICATE_LIFE,
            "How long a certificate of a host or a cell counts; the next one is made when two thirds of it are over.",
        ),
    ];
    all.extend(OF_CELLS);
    all.extend(OF_RUNS);
    all
}

/// A test of the settings holds them to what a cell really does.
const OF_CELLS: [Timer; 11] = [
    timer(
        "cell_poll",
        Duration::from_secs(30),
        "How often a cell compares all its containers with the board's records.",
    ),
    timer("cell_poll_evacuating", Duration::from_secs(10), "The same while it is evacuated."),
    timer(
        "reservation_expiry",
        Duration::from_secs(60),
        "A reservation that nobody has used for so long is given up.",
    ),
    timer(
        "stop_grace",
        Duration::from_secs(10),
        "Between asking a container to stop and killing it, where it says nothing itself.",
    ),
    timer(
        "first_checks",
        Wait::USUAL.first,
        "How often an instance is checked until it is healthy, and one that is not ready.",
    ),
    timer(
        "later_checks",
        Wait::USUAL.then,
        "How often an instance that is healthy is checked, where `every_ms` says nothing.",
    ),
    timer("monitor_timeout", Duration::from_secs(60), "How long a `monitor` may take."),
    timer(
        "transfer_timeout",
        Duration::from_secs(30 * 60),
        "How long a `download` or an `upload` may take.",
    ),
    timer(
        "self_test_every",
        Duration::from_secs(10 * 60),
        "How often a cell makes a container to see whether it can.",
    ),
    timer(
        "self_test_retry",
        Duration::from_secs(30),
        "How soon it tries again after it could not.",
    ),
    timer(
        "self_test_timeout",
        Duration::from_secs(2 * 60),
        "How long that may take until it counts as a failure.",
    ),
];

/// Of the scheduler.
const OF_RUNS: [Timer; 5] = [
    timer("run_ahead", crate::job::due::AHEAD, "So long before its time a run is made."),
    timer(
        "run_heartbeat",
        Duration::from_secs(10),
        "How often the scheduler listens whether what works for a run is alive.",
    ),
    timer(
        "run_safety_pass",
        Duration::from_secs(60),
        "How often backends are asked about runs of which no news came; old runs are forgotten after ten times as long.",
    ),
    timer(
        "run_start_timeout",
        crate::run::START_TIMEOUT,
        "Between a launch and the work that runs, where the job does not say.",
    ),
    timer("run_stats_flush", Duration::from_secs(30), "How often figures of jobs are made."),
];

/// A bound that can be set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    /// Its name in the settings.
    pub key: &'static str,
    pub usual: String,
    pub about: &'static str,
}

/// Every bound of the board and of a cell that can be set. A test of the settings holds them to what is.
pub fn bounds() -> Vec<Bound> {
    let starts = Settings::default().in_flight_starts;
    let starts = starts.map_or_else(|| "none".to_owned(), |most| most.to_string());
    let starts = Bound {
        key: "in_flight_starts",
        usual: starts,
        about: "How many containers may be starting at once, on all cells together.",
    };
    let of_cells =
        OF_A_CELL.map(|(key, usual, about)| Bound { key, usual: usual.to_owned(), about });
    let of_runs = OF_A_RUN.map(|(key, usual, about)| Bound { key, usual: usual.to_owned(), about });
    [starts].into_iter().chain(of_cells).chain(of_runs).collect()
}

const OF_A_CELL: [(&str, &str, &str); 8] = [
    (
        "cell_cpu_millis",
        "none",
        "Thousandths of a processor that a cell gives to containers in all; with `none`, nobody counts.",
    ),
    ("checks_at_once", "64", "Checks of instances that are under way at once on a cell."),
    ("transfers_at_once", "16", "Downloads and uploads that are under way at once on a cell."),
    (
        "download_root",
        "none",
        "Where `file:` URLs of downloads must lead to; with `none`, there are none.",
    ),
    ("download_mib", "2048", "The most that a `download` may bring."),
    ("upload_mib", "64", "The most that an `upload` may take away."),
    (
        "self_test_failures",
        "3",
        "After so many self-tests that failed in a row a cell takes no more work, until one goes well.",
    ),
    (
        "image_cache_mib",
        "20480",
        "How much a cell keeps of unpacked images. What no container uses goes above that, least recently used first.",
    ),
];

const OF_A_RUN: [(&str, &str, &str); 10] = [
    ("run_missed_beats", "3", "After so many signs of life that did not come a run is orphaned."),
    ("run_checks_at_once", "256", "Runs whose constraints are being checked at once."),
    ("run_actions_at_once", "1024", "Runs for which actions are being taken at once."),
    ("run_launches_at_once", "128", "Runs whose work is being launched at once."),
    ("run_stops_at_once", "256", "Runs whose work is being ended at once."),
    ("run_finds_at_once", "64", "Runs about which backends are being asked at once."),
    ("run_releases_at_once", "16", "Ended attempts that backends are letting go of at once."),
    (
        "blobs",
        "none",
        "A directory, such as one that hosts share, to which logs of runs are copied when an attempt is over, so that they outlive the host; with `none`, they lie with the host that led.",
    ),
    (
        "run_logs_mib",
        "10240",
        "What logs of runs may take on a host. Above that the oldest of ended runs go.",
    ),
    (
        "kubernetes_clusters",
        "none",
        "A file that names the Kubernetes clusters on which runs may be, and how each is reached; with `none`, there are none.",
    ),
];

pub(super) fn page() -> Page {
    let settings = Settings::default();
    let mut text = "Each can be set in the settings file, or in the environment as `KAPELL_…`; `kapell config show` shows \
                    what holds.\n\n"
        .to_owned();
    let rows = timers();
    let rows = rows
        .iter()
        .map(|timer| [format!("`{}`", timer.key), short(timer.usual), timer.about.to_owned()]);
    text.push_str(&table(["setting", "usual", "what it is"], rows));
    let counts = [
        (
            "answer to a check",
            short(Check::USUAL_TIMEOUT),
            "How long `http` and `tcp` checks wait, where `timeout_ms` says nothing.",
        ),
        (
            "restarts at once",
            settings.immediate_restarts.to_string(),
            "Crashes after which an instance is started again without waiting.",
        ),
        (
            "most crashes",
            settings.most_crashes.to_string(),
            "After more of them an instance is not started again.",
        ),
    ];
    let bounds = bounds().into_iter();
    let bounds = bounds.map(|it| [format!("`{}`", it.key), it.usual, it.about.to_owned()]);
    text.push_str(&table(["setting", "usual", "what it is"], bounds));
    text.push_str("These are as they are:\n\n");
    let counts = counts.map(|(name, usual, about)| [name.to_owned(), usual, about.to_owned()]);
    text.push_str(&table(["bound", "usual", "what it is"], counts));
    super::page("timers", "Timers and bounds", &text)
}

/// As it is written in settings.
pub(super) fn short(time: Duration) -> String {
    let seconds = time.as_secs();
    if seconds >= 60 && seconds.is_multiple_of(60) {
        return format!("{}m", seconds / 60);
    }
    format!("{seconds}s")
}
