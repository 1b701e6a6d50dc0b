use std::time::Duration;

use super::{Due, Explained, counted, input, span};
use crate::board::cell::CellPresence;
use crate::board::ids::CellId;
use crate::board::settings::Settings;

/// All that is known of a cell.
#[derive(Debug, Clone, Copy)]
pub struct CellFacts<'a> {
    pub cell_id: &'a CellId,
    /// What it last said of itself, if it is present.
    pub presence: Option<&'a CellPresence>,
    /// It is known from records only, and this leader still gives it time to report.
    pub awaited: bool,
    pub heard_ago: Option<Duration>,
    /// How long ago it did not answer the leader, unless it has answered since.
    pub silent_since: Option<Duration>,
    /// When convergence looks after what it held, if it is gone.
    pub due: Due,
    /// Instances and tasks that the board has on it.
    pub lrps: u32,
    pub tasks: u32,
}

/// Explains a cell.
pub fn cell(about: &CellFacts<'_>, settings: &Settings) -> Explained {
    let id = about.cell_id;
    let ttl = span(settings.presence_ttl);
    let (summary, rule, remedies) = match about.presence {
        None if about.awaited => (
            format!("cell `{id}` is known from records and has not reported to this leader yet"),
            format!("presence: a new leader waits {ttl} for every cell that records name"),
            vec![format!("start cell `{id}`, or wait until its work is started elsewhere")],
        ),
        None => (
            format!("cell `{id}` is gone: {}", became(about)),
            format!(
                "presence: of a cell that left or is not heard of for {ttl}, instances are started \
                 elsewhere and tasks have failed"
            ),
            vec![format!("start cell `{id}` again")],
        ),
        Some(presence) if presence.evacuating => (
            format!("cell `{id}` is being evacuated: it takes no new work"),
            "evacuation: its instances move to other cells, its tasks end, and then it ends"
                .to_owned(),
            vec![
                "start another cell, if its instances find no room".to_owned(),
                format!("start cell `{id}` again once it has ended"),
            ],
        ),
        Some(presence) if about.silent_since.is_some() => (
            format!("cell `{id}` is present, but its agent did not answer the leader"),
            "auction: a cell that does not answer is given no work until it does".to_owned(),
            vec![format!("see whether the leader reaches {}", presence.url)],
        ),
        Some(_) => (
            format!("cell `{id}` is present and takes work"),
            format!("presence: it is there for as long as it is heard of every {ttl}"),
            vec![format!("move its work elsewhere: kapell cells evacuate {id}")],
        ),
    };
    let mut inputs = vec![
        input("present", &about.presence.is_some()),
        input("presence_ttl", &ttl),
        input("instances", &about.lrps),
        input("tasks", &about.tasks),
    ];
    inputs.extend(about.heard_ago.map(|ago| input("heard_ago", &span(ago))));
    if let Some(presence) = about.presence {
        inputs.push(input("evacuating", &presence.evacuating));
        inputs.push(input("memory_mb", &presence.capacity.memory_mb));
        inputs.push(input("disk_mb", &presence.capacity.disk_mb));
        inputs.push(input("containers", &presence.capacity.containers));
    }
    let is_gone = about.presence.is_none() && !about.awaited;
    let next_try_at = (is_gone && holds(about)).then_some(about.due.pass);
    Explained { summary, rule, facts: facts(about), inputs, remedies, next_try_at }
}

/// Whether the board has anything on it.
const fn holds(about: &CellFacts<'_>) -> bool {
    about.lrps > 0 || about.tasks > 0
}

/// What became of the work of a cell that is gone.
const fn became(about: &CellFacts<'_>) -> &'static str {
    if holds(about) {
        "what the board still has on it is about to be started elsewhere, or fails"
    } else {
        "nothing is left of its work: instances were started elsewhere, tasks have failed"
    }
}

fn facts(about: &CellFacts<'_>) -> Vec<String> {
    let mut facts = vec![format!(
        "the board has {} and {} on it",
        counted(about.lrps, "instance"),
        counted(about.tasks, "task")
    )];
    facts.extend(about.heard_ago.map(|ago| format!("it was last heard of {} ago", span(ago))));
    facts.extend(about.silent_since.map(|ago| {
        format!("its agent did not answer when the leader last asked it, {} ago", span(ago))
    }));
    if let Some(presence) = about.presence {
        let all = presence.capacity;
        facts.push(format!(
            "it has {} MB of memory, {} MB of disk, room for {} containers",
            all.memory_mb, all.disk_mb, all.containers
        ));
        facts.push(format!("it is reached at {}", presence.url));
        if !presence.zone.is_empty() {
            facts.push(format!("it is in zone `{}`", presence.zone));
        }
        if !presence.placement_tags.is_empty() {
            let tags = presence.placement_tags.join(", ");
            facts.push(format!("it takes only work with the placement tags {tags}"));
        }
    }
    facts
}
