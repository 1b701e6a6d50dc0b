//! The actions of a recipe, flat: each knows its neighbours by their places.

use std::time::Duration;

use super::course::{Deed, Leaf, Outcome};
use super::{Recipe, limit};
use crate::board::action::{Action, Download, EmitProgress, Run, Upload};

/// The place of an action among all of its recipe: each comes before what it is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct At(usize);

/// All that comes in a recipe, one after the other.
pub(super) const ROOT: At = At(0);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Work {
    Run(Run),
    Download(Download),
    Upload(Upload),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Leaf(Leaf, Box<Work>),
    Timeout(Duration),
    Try,
    Parallel,
    Serial,
    Codependent,
    EmitProgress(Box<Messages>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Messages {
    pub(super) start: String,
    pub(super) success: String,
    pub(super) failure: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stand {
    Waiting,
    UnderWay,
    Ended(Outcome),
}

/// One action and how far it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) kind: Kind,
    pub(super) parent: Option<At>,
    first: Option<At>,
    pub(super) next: Option<At>,
    pub(super) stand: Stand,
    /// It was told to end: nothing that comes of it is a failure.
    pub(super) stopping: bool,
    /// How it ends, whatever its actions do from now on.
    pub(super) verdict: Option<Outcome>,
    /// How many of its actions have not ended yet.
    pub(super) open: usize,
    /// What the last program of it returned.
    pub(super) exit_code: Option<i32>,
    /// When its time is over.
    pub(super) due: Option<Duration>,
}

impl Node {
    const fn new(kind: Kind, parent: Option<At>) -> Self {
        Self {
            kind,
            parent,
            first: None,
            next: None,
            stand: Stand::Waiting,
            stopping: false,
            verdict: None,
            open: 0,
            exit_code: None,
            due: None,
        }
    }

    /// Whether nothing more of it begins.
    pub(super) const fn is_closed(&self) -> bool {
        self.stopping || self.verdict.is_some()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    leaves: Vec<At>,
    has_setup: bool,
}

impl Tree {
    pub(super) fn of(recipe: Recipe) -> Self {
        let has_setup = recipe.setup.is_some();
        let mut tree =
            Self { nodes: vec![Node::new(Kind::Serial, None)], leaves: Vec::new(), has_setup };
        let mut youngest: Vec<Option<At>> = vec![None];
        // A list of what is left and not a recursion: how deep a recipe is, is not for us to say.
        let mut left = vec![(ROOT, recipe.action)];
        left.extend(recipe.setup.map(|setup| (ROOT, setup)));
        while let Some((parent, action)) = left.pop() {
            let at = At(tree.nodes.len());
            let (kind, inner) = tree.kind_of(action, at);
            tree.nodes.push(Node::new(kind, Some(parent)));
            match youngest[parent.0].replace(at) {
                Some(before) => tree.node_mut(before).next = Some(at),
                None => tree.node_mut(parent).first = Some(at),
            }
            youngest.push(None);
            left.extend(inner.into_iter().rev().map(|action| (at, action)));
        }
        tree
    }

    /// What an action is, and what it is made of.
    fn kind_of(&mut self, action: Action, at: At) -> (Kind, Vec<Action>) {
        match action {
            Action::Run(run) => (self.leaf(at, Work::Run(run)), Vec::new()),
            Action::Download(download) => (self.leaf(at, Work::Download(download)), Vec::new()),
            Action::Upload(upload) => (self.leaf(at, Work::Upload(upload)), Vec::new()),
            Action::Timeout(timeout) => {
                let limit = Duration::from_millis(timeout.timeout_ms);
                (Kind::Timeout(limit), vec![*timeout.action])
            }
            Action::Try(nested) => (Kind::Try, vec![*nested.action]),
            Action::Parallel(several) => (Kind::Parallel, several.actions),
            Action::Serial(several) => (Kind::Serial, several.actions),
            Action::Codependent(several) => (Kind::Codependent, several.actions),
            Action::EmitProgress(progress) => {
                let EmitProgress { action, start_message, success_message, failure_message } =
                    progress;
                let messages = Messages {
                    start: start_message,
                    success: success_message,
                    failure: failure_message,
                };
                (Kind::EmitProgress(Box::new(messages)), vec![*action])
            }
        }
    }

    fn leaf(&mut self, at: At, work: Work) -> Kind {
        let leaf = Leaf(u32::try_from(self.leaves.len()).unwrap_or(u32::MAX));
        self.leaves.push(at);
        Kind::Leaf(leaf, Box::new(work))
    }

    pub(super) fn node(&self, at: At) -> &Node {
        &self.nodes[at.0]
    }

    pub(super) fn node_mut(&mut self, at: At) -> &mut Node {
        &mut self.nodes[at.0]
    }

    pub(super) fn place_of(&self, leaf: Leaf) -> Option<At> {
        self.leaves.get(usize::try_from(leaf.0).ok()?).copied()
    }

    /// All leaves in their order, each with how it stands.
    pub(super) fn leaves(&self) -> impl Iterator<Item = (Leaf, &Node)> {
        self.leaves.iter().map(|at| self.node(*at)).filter_map(|node| match &node.kind {
            Kind::Leaf(leaf, _) => Some((*leaf, node)),
            Kind::Timeout(_)
            | Kind::Try
            | Kind::Parallel
            | Kind::Serial
            | Kind::Codependent
            | Kind::EmitProgress(_) => None,
        })
    }

    /// What an action is made of, in order.
    pub(super) fn inner(&self, at: At) -> impl Iterator<Item = At> {
        std::iter::successors(self.node(at).first, |at| self.node(*at).next)
    }

    pub(super) fn setup(&self) -> Option<&Node> {
        let first = self.node(ROOT).first.filter(|_| self.has_setup)?;
        Some(self.node(first))
    }

    /// All reasons of what ran beside each other; what its programs returned, the first that failed before others.
    pub(super) fn gathered(&self, at: At) -> Outcome {
        let mut reasons: Vec<&str> = Vec::new();
        let (mut bad, mut good) = (None, None);
        for inner in self.inner(at) {
            let Stand::Ended(outcome) = &self.node(inner).stand else { continue };
            match &outcome.failure {
                Some(reason) => {
                    if reasons.is_empty() {
                        bad = outcome.exit_code;
                    }
                    reasons.push(reason);
                }
                None => good = outcome.exit_code.or(good),
            }
        }
        if reasons.is_empty() {
            return Outcome { failure: None, exit_code: good };
        }
        Outcome { failure: Some(reasons.join("; ")), exit_code: bad }
    }

    /// How codependent actions end once one of them has.
    pub(super) fn exited(&self, at: At, which: At, outcome: &Outcome) -> Outcome {
        let (mut place, mut count) = (0, 0);
        for inner in self.inner(at) {
            count += 1;
            if inner == which {
                place = count;
            }
        }
        let reason = outcome.failure.as_ref().map_or_else(String::new, |why| format!(": {why}"));
        let text = format!("codependent action {place} of {count} exited{reason}");
        Outcome { failure: Some(text), exit_code: outcome.exit_code }
    }
}

impl Work {
    pub(super) const fn deed(&self) -> Deed<'_> {
        match self {
            Self::Run(run) => Deed::Run(run),
            Self::Download(download) => Deed::Download(download),
            Self::Upload(upload) => Deed::Upload(upload),
        }
    }
}

/// How an action ends whose time is over.
pub(super) fn too_late(after: Duration) -> Outcome {
    let text = format!("exceeded {} timeout", limit(after));
    Outcome { failure: Some(text), exit_code: None }
}
