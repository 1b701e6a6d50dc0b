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
    all
}

/// A test of the settings holds them to what a cell really does.
const OF_CELLS: [Timer; 4] = [
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
            "first checks",
            short(Wait::USUAL.first),
            "How often an instance is checked until it is healthy, and one that is not ready.",
        ),
        (
            "later checks",
            short(Wait::USUAL.then),
            "How often an instance that is healthy is checked, where `every_ms` says nothing.",
        ),
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
        (
            "`in_flight_starts`",
            settings.in_flight_starts.map_or_else(|| "none".to_owned(), |most| most.to_string()),
            "How many containers may be starting at once, on all cells together. This one can be set.",
        ),
    ];
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
