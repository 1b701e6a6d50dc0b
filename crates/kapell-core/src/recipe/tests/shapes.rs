//! Recipes and a walk through them, short to write.

use std::time::Duration;

use crate::board::action::{Action, Download, EmitProgress, Nested, Run, Several, Timeout, Upload};
use crate::recipe::{Course, Event, Leaf, Order, Outcome, Phase, Recipe};

pub(super) fn run(path: &str) -> Action {
    Action::Run(Run { path: path.to_owned(), ..Run::default() })
}

pub(super) fn download() -> Action {
    Action::Download(Download { from: "http://a/b".to_owned(), to: "b".to_owned(), checksum: None })
}

pub(super) fn upload() -> Action {
    Action::Upload(Upload { from: "b".to_owned(), to: "http://a/b".to_owned() })
}

pub(super) fn timeout(timeout_ms: u64, action: Action) -> Action {
    Action::Timeout(Timeout { action: Box::new(action), timeout_ms })
}

pub(super) fn attempt(action: Action) -> Action {
    Action::Try(Nested { action: Box::new(action) })
}

pub(super) fn parallel(actions: Vec<Action>) -> Action {
    Action::Parallel(Several { actions })
}

pub(super) fn serial(actions: Vec<Action>) -> Action {
    Action::Serial(Several { actions })
}

pub(super) fn codependent(actions: Vec<Action>) -> Action {
    Action::Codependent(Several { actions })
}

pub(super) fn progress(action: Action) -> Action {
    Action::EmitProgress(EmitProgress {
        action: Box::new(action),
        start_message: "starts".to_owned(),
        success_message: "done".to_owned(),
        failure_message: "broke".to_owned(),
    })
}

pub(super) const fn recipe(action: Action) -> Recipe {
    Recipe { setup: None, action }
}

pub(super) const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

pub(super) fn well() -> Outcome {
    Outcome { failure: None, exit_code: Some(0) }
}

pub(super) fn badly(status: i32) -> Outcome {
    Outcome { failure: Some(format!("Exited with status {status}")), exit_code: Some(status) }
}

pub(super) fn over(failure: Option<&str>, exit_code: Option<i32>) -> Phase {
    Phase::Over(Outcome { failure: failure.map(str::to_owned), exit_code })
}

/// A course whose orders are written down in one line.
pub(super) struct Walk {
    pub(super) course: Course,
    pub(super) began: String,
}

impl Walk {
    pub(super) fn of(recipe: Recipe) -> Self {
        let (course, orders) = Course::begin(recipe);
        Self { course, began: shown(&orders) }
    }

    pub(super) fn through(action: Action) -> Self {
        Self::of(recipe(action))
    }

    pub(super) fn ends_at(&mut self, at: u64, leaf: u32, outcome: Outcome) -> String {
        shown(&self.course.happened(&Event::Ended(Leaf(leaf), outcome), seconds(at)))
    }

    pub(super) fn ends(&mut self, leaf: u32, outcome: Outcome) -> String {
        self.ends_at(1, leaf, outcome)
    }

    pub(super) fn stop(&mut self) -> String {
        shown(&self.course.happened(&Event::Stop, seconds(1)))
    }

    pub(super) fn time(&mut self, at: u64) -> String {
        shown(&self.course.time(seconds(at)))
    }
}

/// `+1` begins leaf 1, `-1` stops it, anything else is said.
pub(super) fn shown(orders: &[Order]) -> String {
    let one = |order: &Order| match order {
        Order::Begin(leaf) => format!("+{}", leaf.0),
        Order::Stop(leaf) => format!("-{}", leaf.0),
        Order::Say(text) => format!("`{text}`"),
    };
    orders.iter().map(one).collect::<Vec<_>>().join(" ")
}
