//! A workflow file as data: what the steps are and what each waits for.

mod after;
mod draw;
mod duration;
mod executor;
mod graph;
mod lint;
pub(crate) mod load;
mod options;
mod params;
pub(crate) mod reader;
mod schema;
mod step;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use draw::{Branch, dot, mermaid, outline, tree};
pub use duration::{parse_duration, show_duration};
pub use graph::{Edge, Graph};
pub use load::{Loaded, MAX_FILE_BYTES, load};
pub use options::{
    Condition, Console, Executor, OnCell, OnKubernetes, Options, Output, Requires, Retry,
};
pub use params::{Bound, Params, Unbound};
pub use schema::schema;

/// A step by its place in the file; handlers follow the steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StepIx(u32);

impl StepIx {
    /// Wraps a position. A file has fewer steps than bytes, and its bytes are limited.
    pub fn new(index: usize) -> Self {
        Self(u32::try_from(index).expect("a workflow has fewer than 2^32 steps"))
    }

    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What stands in a workflow file, checked: every name resolves and nothing waits for itself.
#[derive(Debug, Clone)]
pub struct Workflow {
    pub name: String,
    pub description: Option<String>,
    pub env: Vec<(String, String)>,
    pub params: Params,
    pub workers: Option<u32>,
    pub timeout: Option<Duration>,
    pub on_failure: OnFailure,
    /// The steps in file order, then the handlers.
    pub steps: Vec<Step>,
    pub handlers: Handlers,
    pub graph: Graph,
}

impl Workflow {
    pub fn step(&self, ix: StepIx) -> &Step {
        &self.steps[ix.index()]
    }

    /// How many steps there are, handlers not counted.
    pub fn len(&self) -> usize {
        self.graph.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All steps in file order, without the handlers.
    pub fn proper_steps(&self) -> impl ExactSizeIterator<Item = (StepIx, &Step)> {
        self.steps[..self.len()].iter().enumerate().map(|(at, step)| (StepIx::new(at), step))
    }

    /// The step of this name, if there is one; handlers have none.
    pub fn find(&self, name: &str) -> Option<StepIx> {
        self.proper_steps().find(|(_, step)| &*step.name == name).map(|(at, _)| at)
    }
}

/// One unit of work. Everything rarely set is in `options`, shared by steps that set none of it.
#[derive(Debug, Clone)]
pub struct Step {
    pub name: Box<str>,
    pub work: Work,
    pub options: Arc<Options>,
}

/// What a step does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Work {
    /// Nothing: a point where others join.
    Join,
    /// Text for the shell.
    Shell(Box<str>),
    /// A program with its arguments, executed directly.
    Exec { program: Box<str>, args: Box<[Box<str>]> },
    /// A program text, run by the interpreter that its `#!` line names.
    Script(Box<str>),
    /// What its pod says itself, or the image of it.
    Pod,
}

/// What a dependency waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum On {
    #[default]
    Success,
    Failure,
    Skipped,
    Done,
}

impl On {
    pub const ALL: [Self; 4] = [Self::Success, Self::Failure, Self::Skipped, Self::Done];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure => "failure",
            Self::Skipped => "skipped",
            Self::Done => "done",
        }
    }
}

impl fmt::Display for On {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a failure that nobody tolerates does to the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnFailure {
    /// Running steps are stopped, no more are started.
    #[default]
    Stop,
    /// Running steps may end, no more are started.
    Finish,
    /// Everything that does not depend on it still runs.
    Continue,
}

impl OnFailure {
    pub const ALL: [Self; 3] = [Self::Stop, Self::Finish, Self::Continue];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Finish => "finish",
            Self::Continue => "continue",
        }
    }
}

/// Steps that run after all others, by how it went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Handlers {
    pub success: Option<StepIx>,
    pub failure: Option<StepIx>,
    pub exit: Option<StepIx>,
}
