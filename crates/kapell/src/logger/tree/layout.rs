//! What a frame shows: the whole tree where it fits, else what matters most now.

use kapell_core::flow::State;
use kapell_core::workflow::{StepIx, Workflow, outline, show_duration};

use super::super::style::Colour;
use super::line::Line;
use super::screen::Size;
use super::step::{Scene, dependencies};

/// Larger graphs are never laid out: no terminal has the rows.
const MAX_TREE: usize = 1_000;
/// The longest tree that is left behind at the end.
const MAX_LAST: usize = 200;

/// One line of the tree, as far as it never changes.
#[derive(Debug)]
struct Branch {
    step: StepIx,
    strokes: String,
    note: String,
}

/// The tree of a workflow, laid out once.
#[derive(Debug)]
pub(super) struct Layout(Vec<Branch>);

impl Layout {
    pub(super) fn of(dag: &Workflow) -> Self {
        if dag.len() > MAX_TREE {
            return Self(Vec::new());
        }
        let branches = outline(dag).into_iter().map(|branch| Branch {
            step: branch.step,
            note: dependencies(dag, branch.step, &branch.also),
            strokes: branch.strokes,
        });
        Self(branches.collect())
    }

    /// The frame of a run that goes on. At most one line less than there are rows.
    pub(super) fn live(&self, scene: &Scene<'_>, size: Size) -> Vec<Line> {
        let room = size.rows.saturating_sub(1);
        if room == 0 {
            return Vec::new();
        }
        let mut lines = vec![Counts::of(scene).header(scene)];
        match self.tree(scene, size.cols, room - 1) {
            Some(tree) => lines.extend(tree),
            None => lines.extend(window(scene, room - 1)),
        }
        lines
    }

    /// What is left behind when all steps have ended.
    pub(super) fn last(&self, scene: &Scene<'_>, size: Size) -> Vec<Line> {
        if let Some(tree) = self.tree(scene, size.cols, MAX_LAST) {
            return tree;
        }
        let mut lines = vec![Counts::of(scene).header(scene)];
        // The counts say all there is to say of the others.
        let failed = pick(scene, |state| group(state) == Some(Group::Failed));
        let room = size.rows.saturating_sub(1).max(10);
        let number = failed.clone().count();
        lines.extend(section(scene, Group::Failed, failed, number, number.min(room)));
        lines
    }

    /// The whole tree, if it has at most `room` lines.
    fn tree(&self, scene: &Scene<'_>, cols: usize, room: usize) -> Option<Vec<Line>> {
        if self.0.len() > room || self.0.is_empty() {
            return None;
        }
        let handlers: Vec<StepIx> = handlers(scene).collect();
        if self.0.len() + handlers.len() > room {
            return None;
        }
        let steps = self.0.iter().map(|branch| {
            scene.step(branch.step, &shorten(&branch.strokes, cols / 2), &branch.note)
        });
        Some(steps.chain(handlers.iter().map(|&step| scene.step(step, "", ""))).collect())
    }
}

/// The last strokes, in whole levels of the tree, so that deep steps still show their names.
fn shorten(strokes: &str, cols: usize) -> String {
    const LEVEL: usize = 3;
    let all = strokes.chars().count();
    if all <= cols {
        return strokes.to_owned();
    }
    let keep = cols.saturating_sub(1) / LEVEL * LEVEL;
    let rest: String = strokes.chars().skip(all - keep).collect();
    format!("…{rest}")
}

/// Handlers that have begun.
fn handlers<'s>(scene: &Scene<'s>) -> impl Iterator<Item = StepIx> + Clone + 's {
    let states = scene.states;
    let begun =
        move |step: &StepIx| !matches!(states[step.index()].state, State::Waiting | State::Outside);
    (scene.dag.len()..states.len()).map(StepIx::new).filter(begun)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Group {
    Running,
    Failed,
    Waiting,
    Done,
}

impl Group {
    const ALL: [Self; 4] = [Self::Running, Self::Failed, Self::Waiting, Self::Done];

    const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Failed => "failed",
            Self::Waiting => "waiting",
            Self::Done => "done",
        }
    }
}

/// Where a step of this state stands in a window. None: it is no part of the run.
#[rustfmt::skip]
const fn group(state: State) -> Option<Group> {
    match state {
        State::Running | State::Retrying      => Some(Group::Running),
        State::Failed | State::FailedContinue => Some(Group::Failed),
        State::Waiting | State::Ready         => Some(Group::Waiting),
        State::Succeeded | State::Skipped | State::Cancelled | State::Kept => Some(Group::Done),
        State::Outside                        => None,
    }
}

/// Steps and begun handlers in such a state.
fn pick<'s>(
    scene: &Scene<'s>,
    wanted: impl Fn(State) -> bool + Clone + 's,
) -> impl DoubleEndedIterator<Item = StepIx> + Clone + 's {
    let states = scene.states;
    let own = scene.dag.len();
    (0..states.len()).map(StepIx::new).filter(move |step| {
        let state = states[step.index()].state;
        wanted(state) && (step.index() < own || !matches!(state, State::Waiting | State::Outside))
    })
}

/// What matters most now, in `room` lines.
fn window(scene: &Scene<'_>, room: usize) -> Vec<Line> {
    let of = |wanted: Group| pick(scene, move |state| group(state) == Some(wanted));
    let counts = Group::ALL.map(|group| of(group).count());
    let rooms = share(room, counts);
    let mut lines = Vec::with_capacity(room);
    for ((group, count), room) in Group::ALL.into_iter().zip(counts).zip(rooms) {
        match group {
            Group::Running | Group::Failed => {
                lines.extend(section(scene, group, of(group), count, room));
            }
            Group::Waiting => {
                let next = pick(scene, |state| state == State::Ready);
                let later = pick(scene, |state| state == State::Waiting);
                lines.extend(section(scene, group, next.chain(later), count, room));
            }
            // The last ones are the least boring.
            Group::Done => lines.extend(section(scene, group, of(group).rev(), count, room)),
        }
    }
    lines
}

/// Gives each group its lines: what runs and what failed first, each at least half if it needs
/// that much; then what waits, then the rest.
fn share(room: usize, [running, failed, waiting, done]: [usize; 4]) -> [usize; 4] {
    let for_running = running.min(room - failed.min(room / 2));
    let for_failed = failed.min(room - for_running);
    let left = room - for_running - for_failed;
    let for_waiting = waiting.min(left);
    [for_running, for_failed, for_waiting, done.min(left - for_waiting)]
}

/// A group in `room` lines, the last of which counts those that do not fit.
fn section(
    scene: &Scene<'_>,
    group: Group,
    steps: impl Iterator<Item = StepIx>,
    count: usize,
    room: usize,
) -> Vec<Line> {
    let shown = if count <= room { count } else { room.saturating_sub(1) };
    let line = |step| match group {
        Group::Waiting => scene.step(step, "", &scene.awaited(step)),
        Group::Running | Group::Failed | Group::Done => scene.step(step, "", ""),
    };
    let mut lines: Vec<Line> = steps.take(shown).map(line).collect();
    if shown < count && room > 0 {
        let more = if shown > 0 { "more " } else { "" };
        let text = format!("… {} {more}{}", count - shown, group.name());
        lines.push(Line::default().paint(Colour::Dim, &text));
    }
    lines
}

/// How many steps there are of each kind, handlers not counted.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Counts {
    done: usize,
    running: usize,
    retrying: usize,
    failed: usize,
    cancelled: usize,
    waiting: usize,
    all: usize,
}

impl Counts {
    fn of(scene: &Scene<'_>) -> Self {
        let mut counts = Self::default();
        for snapshot in &scene.states[..scene.dag.len()] {
            let count = match snapshot.state {
                State::Waiting | State::Ready => &mut counts.waiting,
                State::Running => &mut counts.running,
                State::Retrying => &mut counts.retrying,
                State::Succeeded | State::Skipped | State::Kept => &mut counts.done,
                State::Failed | State::FailedContinue => &mut counts.failed,
                State::Cancelled => &mut counts.cancelled,
                State::Outside => continue,
            };
            *count += 1;
            counts.all += 1;
        }
        counts
    }

    /// `⠹ 3/7 done · 2 running · 1 failed · 1 waiting · 4.2s`
    fn header(self, scene: &Scene<'_>) -> Line {
        let going = self.running + self.retrying + self.waiting > 0;
        let sign = if going { scene.spinner() } else { "▪" };
        let line = Line::default().paint(Colour::Blue, sign);
        let line = line.paint(Colour::Green, &format!(" {}/{} done", self.done, self.all));
        let parts = [
            (self.running, "running", Colour::Blue),
            (self.retrying, "retrying", Colour::Yellow),
            (self.failed, "failed", Colour::Red),
            (self.cancelled, "cancelled", Colour::Dim),
            (self.waiting, "waiting", Colour::Dim),
        ];
        let line = parts.into_iter().filter(|(number, ..)| *number > 0).fold(
            line,
            |line, (number, what, colour)| {
                line.paint(Colour::Dim, " · ").paint(colour, &format!("{number} {what}"))
            },
        );
        line.paint(Colour::Dim, &format!(" · {}", show_duration(scene.elapsed)))
    }
}

#[cfg(test)]
mod tests;
