//! What jobs somebody wants, and which moments they have: computed here from the text, by nothing of the scheduler.

use kapell_core::board::JobId;
use kapell_core::job::JobDefinition;
use kapell_core::seams::Timestamp;
use serde_json::{Value, json};

use crate::fleet::client::MEMORY_MB;
use crate::fleet::machine::{HANG, SHORT, WORK};
use crate::parts::chance::Chance;

/// All jobs of this one group take turns, so many at once.
pub(in crate::fleet) const GROUP: &str = "turns";
pub(in crate::fleet) const GROUP_LIMIT: u32 = 2;
/// The most attempts after the first one.
pub(in crate::fleet) const MOST_RETRIES: u32 = 2;

/// What is the same of a job for as long as its world lasts.
#[derive(Debug, Clone)]
pub(in crate::fleet) struct Kind {
    pub(in crate::fleet) job_id: JobId,
    pub(in crate::fleet) grouped: bool,
    /// There is not much work, for a world in which a host dies at every await.
    pub(in crate::fleet) modest: bool,
}

/// What the constraints of a job do, as its tag says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::fleet) enum Constraints {
    None,
    Slow,
    Violated,
    Acts,
    Hangs,
    After,
}

impl Constraints {
    const ALL: [Self; 6] =
        [Self::None, Self::Slow, Self::Violated, Self::Acts, Self::Hangs, Self::After];

    const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Slow => "slow",
            Self::Violated => "violated",
            Self::Acts => "acts",
            Self::Hangs => "hangs",
            Self::After => "after",
        }
    }

    pub(super) fn of(definition: &JobDefinition) -> Self {
        let tagged = |it: &Self| definition.tags.iter().any(|tag| tag == it.name());
        Self::ALL.into_iter().find(tagged).unwrap_or(Self::None)
    }

    pub(super) const fn before(self) -> bool {
        match self {
            Self::None | Self::After => false,
            Self::Slow | Self::Violated | Self::Acts | Self::Hangs => true,
        }
    }
}

const SCHEDULES: [&[&str]; 7] = [
    &[],
    &["@every 5s"],
    &["*/4 * * * * *"],
    &["*/10 * * * * *", "3 * * * * *"],
    &["@every 7s", "*/15 * * * * *"],
    &["*/2 * * * * *"],
    &["*/20 * * * * *"],
];

/// Draws a definition: another one each time, of the same job.
pub(in crate::fleet) fn draw(kind: &Kind, chance: &mut Chance) -> JobDefinition {
    let mut it = json!({ "job_id": kind.job_id.as_str() });
    let busiest = if kind.modest { 2 } else { SCHEDULES.len() as u64 };
    let lines = SCHEDULES[usize::try_from(chance.below(busiest)).unwrap_or(0)];
    it["schedule"] = json!(lines);
    let overlaps = ["allow", "skip", "queue", "queue_one", "cancel_other", "terminate_other"];
    let overlap = chance.pick(&overlaps);
    it["overlap"] = json!(overlap);
    if overlap != "allow" && chance.permille(300) {
        it["max_concurrent_runs"] = json!(2 + chance.below(2));
    }
    if kind.grouped {
        it["group"] = json!({ "name": GROUP, "limit": GROUP_LIMIT });
    }
    it["catch_up"] = json!({
        "policy": chance.pick(&["none", "last", "all"]),
        "window": chance.pick(&["15s", "40s", "1h"]),
    });
    when(&mut it, chance);
    work(&mut it, kind, chance);
    it["history"] = json!({ "succeeded": chance.below(6), "failed": chance.below(6) });
    if chance.permille(150) {
        it["pause_after_failures"] = json!(2);
    }
    serde_json::from_value(it).expect("what is drawn is a definition")
}

fn when(it: &mut Value, chance: &mut Chance) {
    if chance.permille(250) {
        it["jitter"] = json!("3s");
    }
    if chance.permille(250) {
        it["starting_deadline"] = json!(chance.pick(&["4s", "12s", "45s"]));
    }
    if chance.permille(200) {
        // A minute that most worlds live to see.
        it["exclude"] = json!([{ "name": "minute", "hours": "22:14-22:15" }]);
    }
    if chance.permille(100) {
        it["suspend"] = json!(true);
    }
}

fn work(it: &mut Value, kind: &Kind, chance: &mut Chance) {
    let told = chance.pick(&[SHORT, WORK, WORK, HANG]);
    if chance.permille(500) {
        it["command"] = json!({ "command": told });
    } else {
        it["task"] = json!({
            "memory_mb": MEMORY_MB / 10,
            "disk_mb": 1,
            "action": { "run": { "path": "/program", "args": [told] } },
        });
    }
    if told == HANG || chance.permille(200) {
        it["max_allowed_run_time"] = json!("5s");
    }
    it["start_timeout"] = json!("12s");
    if chance.permille(500) {
        it["retry"] = json!({
            "max_retries": 1 + chance.below(u64::from(MOST_RETRIES)),
            "initial_delay": "1s",
            "max_delay": "4s",
        });
        if chance.permille(500) {
            it["retry"]["on"] = json!(["launch"]);
        }
    }
    let constraints = chance.pick(&Constraints::ALL);
    if chance.permille(500) && !kind.modest {
        it["tags"] = json!([constraints.name()]);
    }
}

/// When a line of a schedule is due: every so many seconds of a time that begins anew every `of` seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Beat {
    of: i64,
    every: i64,
    at: i64,
}

/// The moments of a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::fleet) struct Beats {
    lines: Vec<Beat>,
    excluded: bool,
}

impl Beats {
    pub(in crate::fleet) fn of(definition: &JobDefinition) -> Self {
        let lines = definition.schedule.iter().map(|line| beat(line)).collect();
        Self { lines, excluded: !definition.exclude.is_empty() }
    }

    /// The first moment after this time, looked for second by second.
    pub(in crate::fleet) fn after(&self, at: Timestamp) -> Option<Timestamp> {
        let mut second = at.0.div_euclid(1000);
        if self.lines.is_empty() {
            return None;
        }
        loop {
            second += 1;
            if self.has(Timestamp(second * 1000)) {
                return Some(Timestamp(second * 1000));
            }
        }
    }

    pub(in crate::fleet) fn has(&self, at: Timestamp) -> bool {
        let second = at.0.div_euclid(1000);
        let fits = |beat: &Beat| (second.rem_euclid(beat.of) - beat.at).rem_euclid(beat.every) == 0;
        at.0 % 1000 == 0 && self.lines.iter().any(fits)
    }

    /// Whether a calendar excludes it: 22:14 until 22:15.
    pub(in crate::fleet) fn excludes(&self, at: Timestamp) -> bool {
        let minute = at.0.div_euclid(60_000).rem_euclid(24 * 60);
        self.excluded && minute == 22 * 60 + 14
    }
}

fn beat(line: &str) -> Beat {
    let number = |text: &str| text.parse::<i64>().expect("a schedule of the simulation");
    if let Some(seconds) = line.strip_prefix("@every ").and_then(|it| it.strip_suffix('s')) {
        return Beat { of: i64::MAX, every: number(seconds), at: 0 };
    }
    let first = line.split(' ').next().unwrap_or_default();
    match first.strip_prefix("*/") {
        Some(step) => Beat { of: 60, every: number(step), at: 0 },
        None => Beat { of: 60, every: 60, at: number(first) },
    }
}
