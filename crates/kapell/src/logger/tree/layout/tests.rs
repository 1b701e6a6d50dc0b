use std::time::Duration;

use kapell_core::flow::Kind;
use kapell_core::seams::Timestamp;
use kapell_core::workflow::load;
use kapell_node::flow::{NodeEvent, NodeSnapshot};

use super::super::super::style::Style;
use super::super::step::Reasons;
use super::*;

const DIAMOND: &str = "
name: diamond
handlers: {failure: x, exit: x}
steps:
  - {name: a, command: x}
  - {name: b, command: x, depends: a, retry_policy: {limit: 2}}
  - {name: c, command: x, depends: [{step: a, on: failure}]}
  - {name: d, command: x, depends: [b, c]}
";

const BIG: Size = Size { rows: 50, cols: 100 };

/// A run that stands still.
struct Still {
    dag: Workflow,
    states: Vec<NodeSnapshot>,
    reasons: Reasons,
}

impl Still {
    fn of(text: &str) -> Self {
        let dag = load(text.as_bytes(), "x").unwrap().workflow;
        let waiting =
            NodeSnapshot { state: State::Waiting, attempt: 0, elapsed: None, error: None };
        let states = vec![waiting; dag.steps.len()];
        Self { dag, states, reasons: Reasons::default() }
    }

    /// As many steps as that, independent of each other.
    fn many(steps: usize) -> Self {
        let steps: Vec<String> =
            (0..steps).map(|at| format!("  - {{name: s{at}, command: x}}\n")).collect();
        Self::of(&format!("name: many\nsteps:\n{}", steps.concat()))
    }

    fn set(mut self, at: usize, state: State) -> Self {
        let begun = !matches!(state, State::Waiting | State::Ready | State::Skipped);
        self.states[at].state = state;
        self.states[at].elapsed = begun.then(|| Duration::from_millis(1_200));
        if matches!(state, State::Failed | State::FailedContinue) {
            self.states[at].error = Some("exit status 3".to_owned());
        }
        self
    }

    fn learn(mut self, at: usize, kind: Kind, why: &str) -> Self {
        self.reasons.learn(&NodeEvent {
            kind,
            at: Timestamp(0),
            step: StepIx::new(at),
            node: "x",
            attempt: 0,
            exit_code: None,
            duration: None,
            reason: Some(why),
            error: Some(why),
        });
        self
    }

    fn scene(&self) -> Scene<'_> {
        Scene {
            dag: &self.dag,
            states: &self.states,
            reasons: &self.reasons,
            turn: 0,
            elapsed: Duration::from_secs(4),
        }
    }

    fn live(&self, size: Size) -> Vec<String> {
        let lines = Layout::of(&self.dag).live(&self.scene(), size);
        assert!(lines.len() < size.rows, "{} lines in {} rows", lines.len(), size.rows);
        seen(&lines, size)
    }

    fn last(&self, size: Size) -> Vec<String> {
        seen(&Layout::of(&self.dag).last(&self.scene(), size), size)
    }
}

fn seen(lines: &[Line], size: Size) -> Vec<String> {
    let style = Style { colour: false };
    lines.iter().map(|line| line.fit(size.cols, style).seen).collect()
}

#[test]
fn the_tree_shows_dependencies_and_states() {
    let still = Still::of(DIAMOND)
        .set(0, State::Succeeded)
        .set(1, State::Running)
        .set(2, State::Skipped)
        .learn(2, Kind::NodeSkipped, "`a` succeeded");
    let want = [
        "⠋ 2/4 done · 1 running · 1 waiting · 4.0s",
        "✓ a  1.2s",
        "├─ ⠋ b  1.2s",
        "└─ ○ c  skipped: `a` succeeded  [on failure of a]",
        "   └─ · d  (also after b)",
    ];
    assert_eq!(still.live(BIG), want);
    assert_eq!(still.last(BIG), want[1..]);
}

#[test]
fn every_state_has_its_line() {
    let states = State::ALL.map(|state| Still::many(1).set(0, state).live(BIG).remove(1));
    let want = [
        "· s0",
        "◦ s0",
        "⠋ s0  1.2s",
        "↻ s0  1.2s  attempt 1 of 1 follows",
        "✓ s0  1.2s",
        "✗ s0  1.2s  exit status 3",
        "⚠ s0  1.2s  exit status 3 (continuing)",
        "○ s0  skipped",
        "⊘ s0  1.2s  cancelled",
        "✓ s0  1.2s  kept from an earlier run",
        "– s0  1.2s  not part of this run",
    ];
    assert_eq!(states, want);
}

#[test]
fn attempts_are_counted_from_the_second() {
    let mut still = Still::of(DIAMOND).set(1, State::Retrying);
    still.states[1].attempt = 1;
    let still = still.learn(1, Kind::NodeRetrying, "exit status 7");
    assert_eq!(still.live(BIG)[2], "├─ ↻ b  1.2s  exit status 7, attempt 2 of 3 follows");
    let still = still.learn(1, Kind::NodeStarted, "").set(1, State::Running);
    assert_eq!(still.live(BIG)[2], "├─ ⠋ b  1.2s  attempt 2 of 3");
    let still = still.set(1, State::Succeeded);
    assert_eq!(still.live(BIG)[2], "├─ ✓ b  1.2s  attempt 2 of 3");
}

#[test]
fn handlers_are_shown_once_they_have_begun() {
    let still = Still::of(DIAMOND).set(0, State::Failed);
    assert!(!still.live(BIG).concat().contains("handlers"));
    let still = still.set(4, State::Running);
    assert_eq!(still.live(BIG)[5..], ["⠋ handlers.failure  1.2s"]);
    // They have no part in the counts.
    assert!(still.live(BIG)[0].contains("0/4 done · 1 failed · 3 waiting"));
}

#[test]
fn many_parents_are_shortened() {
    let still = Still::of(
        "
name: fan
steps:
  - {name: a, command: x}
  - {name: b, command: x}
  - {name: c, command: x}
  - {name: d, command: x}
  - {name: e, command: x}
  - {name: join, command: x, depends: [a, b, c, d, e]}
",
    );
    assert!(
        still.live(BIG).iter().any(|line| line.ends_with("· join  (also after a, b, c, …)")),
        "{:?}",
        still.live(BIG)
    );
    // Without strokes it says what it still waits for.
    let still = still.set(0, State::Running).set(1, State::Succeeded);
    let window = still.live(Size { rows: 7, cols: 80 });
    assert_eq!(window[1], "⠋ a  1.2s");
    assert_eq!(window[5], "· join  after a, c, d, …", "{window:?}");
    let still = still.set(0, State::Succeeded).set(2, State::Succeeded);
    let window = still.live(Size { rows: 6, cols: 80 });
    assert_eq!(window[3], "· join  after d, e", "{window:?}");
}

#[test]
fn a_window_shows_what_runs_and_what_failed_first() {
    let mut still = Still::many(100);
    for at in 0..50 {
        still = still.set(at, State::Succeeded);
    }
    still = still.set(7, State::Failed).set(50, State::Running).set(51, State::Running);
    still = still.set(99, State::Ready);
    let want = [
        "⠋ 49/100 done · 2 running · 1 failed · 48 waiting · 4.0s",
        "⠋ s50  1.2s",
        "⠋ s51  1.2s",
        "✗ s7  1.2s  exit status 3",
        "◦ s99",
        "· s52",
        "… 46 more waiting",
    ];
    assert_eq!(still.live(Size { rows: 8, cols: 80 }), want);
}

#[test]
fn a_frame_is_never_taller_than_the_screen() {
    for steps in [1, 3, 10, 60] {
        for rows in 1..40 {
            for state in State::ALL {
                let mut still = Still::many(steps);
                for at in 0..steps / 2 {
                    still = still.set(at, state);
                }
                let lines = still.live(Size { rows, cols: 40 });
                if steps + 1 >= rows && state != State::Outside {
                    assert_eq!(lines.len(), rows - 1, "{steps} steps, {rows} rows, {state}");
                }
            }
        }
    }
}

#[test]
fn lines_are_shared_fairly() {
    assert_eq!(share(10, [3, 2, 100, 100]), [3, 2, 5, 0]);
    assert_eq!(share(10, [100, 100, 100, 100]), [5, 5, 0, 0]);
    assert_eq!(share(10, [100, 2, 100, 100]), [8, 2, 0, 0]);
    assert_eq!(share(10, [2, 100, 100, 100]), [2, 8, 0, 0]);
    assert_eq!(share(10, [0, 0, 4, 100]), [0, 0, 4, 6]);
    assert_eq!(share(0, [1, 1, 1, 1]), [0, 0, 0, 0]);
}

#[test]
fn what_is_left_behind_is_the_whole_tree_or_the_failures() {
    let small = Still::many(200).last(Size { rows: 10, cols: 80 });
    assert_eq!(small.len(), 200);
    let mut large = Still::many(201);
    for at in 0..201 {
        large = large.set(at, State::Succeeded);
    }
    assert_eq!(large.last(BIG), ["▪ 201/201 done · 4.0s"]);
    let large = large.set(5, State::Failed).set(6, State::Cancelled);
    let want = ["▪ 199/201 done · 1 failed · 1 cancelled · 4.0s", "✗ s5  1.2s  exit status 3"];
    assert_eq!(large.last(BIG), want);
}

#[test]
fn deep_steps_still_show_their_names() {
    let steps: Vec<String> = (0..60)
        .map(|at| match at {
            0 => "  - {name: s0, command: x}\n".to_owned(),
            _ => format!("  - {{name: s{at}, command: x, depends: s{}}}\n", at - 1),
        })
        .collect();
    let still = Still::of(&format!("name: chain\nsteps:\n{}", steps.concat()));
    let lines = still.live(Size { rows: 80, cols: 40 });
    assert_eq!(lines[60], format!("…{}└─ · s59", " ".repeat(15)));
}

#[test]
fn a_huge_graph_is_not_laid_out() {
    let still = Still::many(MAX_TREE + 1);
    assert!(Layout::of(&still.dag).0.is_empty());
    assert_eq!(still.live(BIG).len(), 49);
}
