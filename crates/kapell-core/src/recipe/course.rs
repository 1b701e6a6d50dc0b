//! One walk through a recipe.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Recipe;
use super::tree::{At, Kind, ROOT, Stand, Tree};
use crate::board::{Download, Run, Upload};

/// An action that does something itself, by its place among all of its recipe: those of the setup come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Leaf(pub u32);

/// What a leaf does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed<'a> {
    Run(&'a Run),
    Download(&'a Download),
    Upload(&'a Upload),
}

/// How a leaf ended, or a whole recipe.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// Why it failed, if it did.
    pub failure: Option<String>,
    /// What its program returned, if it was one and ended by itself. Of a whole recipe: of the program by which it
    /// failed, or else of the last.
    pub exit_code: Option<i32>,
}

/// What happened to a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    Ended(Leaf, Outcome),
    /// Somebody wants it to end.
    Stop,
}

/// What is to be done now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    Begin(Leaf),
    Stop(Leaf),
    /// Goes to the logs of the container.
    Say(String),
}

/// How far a recipe is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    Setup,
    /// The action is under way: it may be monitored.
    Action,
    /// All is over. Without a failure it went well, or it was stopped.
    Over(Outcome),
}

/// See the module. Time is what has passed since it began; it never goes back.
///
/// What was told in time and what is told late comes to the same: an event first ends whatever had used up its time
/// by then. So the events alone say how everything stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Course {
    pub(super) tree: Tree,
    /// What has a limit and is under way.
    pub(super) dues: BTreeSet<(Duration, At)>,
}

impl Course {
    /// Begins, and says what to do first.
    pub fn begin(recipe: Recipe) -> (Self, Vec<Order>) {
        let mut course = Self { tree: Tree::of(recipe), dues: BTreeSet::new() };
        let orders = course.start();
        (course, orders)
    }

    /// One that an earlier agent began and to which this has happened since. What is under way by that time is
    /// ordered again: whoever does it knows whether it was begun. What is to stop is ordered to begin and to stop.
    ///
    /// Nothing is said again. Call [`Course::time`] next: nobody has watched the time meanwhile.
    pub fn resume(recipe: Recipe, events: &[(Duration, Event)]) -> (Self, Vec<Order>) {
        let (mut course, _) = Self::begin(recipe);
        for (at, event) in events {
            course.happened(event, *at);
        }
        let mut orders = Vec::new();
        for (leaf, node) in course.tree.leaves().filter(|(_, node)| node.stand == Stand::UnderWay) {
            orders.push(Order::Begin(leaf));
            if node.stopping {
                orders.push(Order::Stop(leaf));
            }
        }
        (course, orders)
    }

    /// Takes in what happened. An end of what is not under way is no news.
    pub fn happened(&mut self, event: &Event, at: Duration) -> Vec<Order> {
        let mut orders = self.time(at);
        match event {
            Event::Ended(leaf, outcome) => {
                if let Some(place) = self.tree.place_of(*leaf) {
                    self.ended(place, outcome.clone(), at, &mut orders);
                }
            }
            Event::Stop => self.stop(ROOT, &mut orders),
        }
        orders
    }

    /// Ends what has used up its time.
    pub fn time(&mut self, at: Duration) -> Vec<Order> {
        let mut orders = Vec::new();
        while let Some((_, place)) = self.dues.first().copied().filter(|(due, _)| *due <= at) {
            self.expire(place, &mut orders);
        }
        orders
    }

    /// When [`Course::time`] has something to do.
    pub fn next_due(&self) -> Option<Duration> {
        self.dues.first().map(|(due, _)| *due)
    }

    pub fn phase(&self) -> Phase {
        if let Stand::Ended(outcome) = &self.tree.node(ROOT).stand {
            return Phase::Over(outcome.clone());
        }
        match self.tree.setup().map(|setup| &setup.stand) {
            Some(Stand::Waiting | Stand::UnderWay) => Phase::Setup,
            None | Some(Stand::Ended(_)) => Phase::Action,
        }
    }

    /// What a leaf does; nothing if there is none of that number.
    pub fn deed(&self, leaf: Leaf) -> Option<Deed<'_>> {
        match &self.tree.node(self.tree.place_of(leaf)?).kind {
            Kind::Leaf(_, work) => Some(work.deed()),
            Kind::Timeout(_)
            | Kind::Try
            | Kind::Parallel
            | Kind::Serial
            | Kind::Codependent
            | Kind::EmitProgress(_) => None,
        }
    }

    /// Whether it ends, or has ended, because of an [`Event::Stop`].
    pub fn is_stopping(&self) -> bool {
        self.tree.node(ROOT).stopping
    }

    /// Whether a leaf that is under way was told to stop: if it never began, it need not.
    pub fn is_told_to_stop(&self, leaf: Leaf) -> bool {
        self.tree.place_of(leaf).is_some_and(|at| self.tree.node(at).stopping)
    }
}
