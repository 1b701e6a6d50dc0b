//! What the beginning and the end of an action mean for those around it.

use std::time::Duration;

use super::course::{Course, Order, Outcome};
use super::tree::{At, Kind, ROOT, Stand, too_late};

/// What is still to be looked at, the next one last. Not a recursion: recipes may be deep.
enum Step {
    Begin(At),
    Ended(At, Outcome),
}

impl Course {
    pub(super) fn start(&mut self) -> Vec<Order> {
        let mut orders = Vec::new();
        self.walk(Step::Begin(ROOT), Duration::ZERO, &mut orders);
        orders
    }

    pub(super) fn ended(
        &mut self,
        leaf: At,
        outcome: Outcome,
        at: Duration,
        orders: &mut Vec<Order>,
    ) {
        if self.tree.node(leaf).stand == Stand::UnderWay {
            self.walk(Step::Ended(leaf, outcome), at, orders);
        }
    }

    fn walk(&mut self, first: Step, at: Duration, orders: &mut Vec<Order>) {
        let mut steps = vec![first];
        while let Some(step) = steps.pop() {
            match step {
                Step::Begin(place) => self.enter(place, at, &mut steps, orders),
                Step::Ended(place, outcome) => self.leave(place, outcome, &mut steps, orders),
            }
        }
    }

    fn enter(&mut self, place: At, at: Duration, steps: &mut Vec<Step>, orders: &mut Vec<Order>) {
        let parent = self.tree.node(place).parent;
        if parent.is_some_and(|parent| self.tree.node(parent).is_closed()) {
            // One of those beside it has ended before this one was begun.
            self.tree.node_mut(place).stopping = true;
            steps.push(Step::Ended(place, Outcome::default()));
            return;
        }
        let all: Vec<At> = self.tree.inner(place).collect();
        let node = self.tree.node_mut(place);
        node.stand = Stand::UnderWay;
        node.open = all.len();
        let begun = match &node.kind {
            Kind::Leaf(leaf, _) => return orders.push(Order::Begin(*leaf)),
            Kind::Timeout(limit) => {
                let due = at.saturating_add(*limit);
                node.due = Some(due);
                self.dues.insert((due, place));
                1
            }
            Kind::EmitProgress(messages) => {
                say(&messages.start, orders);
                1
            }
            Kind::Try | Kind::Serial => 1,
            Kind::Parallel | Kind::Codependent => all.len(),
        };
        if all.is_empty() {
            steps.push(Step::Ended(place, Outcome::default()));
        }
        steps.extend(all.into_iter().take(begun).rev().map(Step::Begin));
    }

    /// Notes how an action ended, with what its actions came to, and tells it to what it is part of.
    fn leave(
        &mut self,
        place: At,
        came_to: Outcome,
        steps: &mut Vec<Step>,
        orders: &mut Vec<Order>,
    ) {
        let node = self.tree.node_mut(place);
        let outcome = if node.stopping {
            Outcome { failure: None, ..came_to }
        } else {
            let outcome = node.verdict.take().unwrap_or(came_to);
            match &node.kind {
                Kind::Try if outcome.failure.is_some() => Outcome::default(),
                Kind::EmitProgress(messages) => {
                    match &outcome.failure {
                        None => say(&messages.success, orders),
                        Some(_) if messages.failure.is_empty() => {}
                        Some(why) => {
                            orders.push(Order::Say(format!("{}: {why}", messages.failure)));
                        }
                    }
                    outcome
                }
                Kind::Try
                | Kind::Leaf(..)
                | Kind::Timeout(_)
                | Kind::Parallel
                | Kind::Serial
                | Kind::Codependent => outcome,
            }
        };
        node.stand = Stand::Ended(outcome.clone());
        if let Some(due) = node.due.take() {
            self.dues.remove(&(due, place));
        }
        if let Some(parent) = self.tree.node(place).parent {
            self.one_ended(parent, place, outcome, steps, orders);
        }
    }

    /// Decides what the end of `inner` means for what it is a part of.
    fn one_ended(
        &mut self,
        place: At,
        inner: At,
        outcome: Outcome,
        steps: &mut Vec<Step>,
        orders: &mut Vec<Order>,
    ) {
        let next = self.tree.node(inner).next;
        let node = self.tree.node_mut(place);
        node.open = node.open.saturating_sub(1);
        let (is_last, is_closed) = (node.open == 0, node.is_closed());
        match node.kind {
            Kind::Leaf(..) | Kind::Timeout(_) | Kind::Try | Kind::EmitProgress(_) => {
                steps.push(Step::Ended(place, outcome));
            }
            Kind::Serial => {
                node.exit_code = outcome.exit_code.or(node.exit_code);
                let exit_code = node.exit_code;
                let goes_on = outcome.failure.is_none() && !is_closed;
                steps.push(match next.filter(|_| goes_on) {
                    Some(next) => Step::Begin(next),
                    None if outcome.failure.is_some() => Step::Ended(place, outcome),
                    None => Step::Ended(place, Outcome { failure: None, exit_code }),
                });
            }
            Kind::Parallel => {
                if is_last {
                    steps.push(Step::Ended(place, self.tree.gathered(place)));
                }
            }
            Kind::Codependent => {
                if is_last {
                    steps.push(Step::Ended(place, outcome.clone()));
                }
                if !is_closed {
                    let verdict = self.tree.exited(place, inner, &outcome);
                    self.tree.node_mut(place).verdict = Some(verdict);
                    self.stop_inner(place, orders);
                }
            }
        }
    }

    /// Tells what is under way of an action to end.
    pub(super) fn stop(&mut self, place: At, orders: &mut Vec<Order>) {
        let mut left = vec![place];
        while let Some(place) = left.pop() {
            let node = self.tree.node_mut(place);
            if node.stand != Stand::UnderWay || node.stopping {
                continue;
            }
            node.stopping = true;
            if let Some(due) = node.due.take() {
                self.dues.remove(&(due, place));
            }
            if let Kind::Leaf(leaf, _) = &node.kind {
                orders.push(Order::Stop(*leaf));
            }
            let before = left.len();
            left.extend(self.tree.inner(place));
            left[before..].reverse();
        }
    }

    fn stop_inner(&mut self, place: At, orders: &mut Vec<Order>) {
        let all: Vec<At> = self.tree.inner(place).collect();
        for inner in all {
            self.stop(inner, orders);
        }
    }

    /// The time of an action is over: it has failed, and ends once all of it has.
    pub(super) fn expire(&mut self, place: At, orders: &mut Vec<Order>) {
        let node = self.tree.node_mut(place);
        if let Some(due) = node.due.take() {
            self.dues.remove(&(due, place));
        }
        if let Kind::Timeout(limit) = node.kind {
            node.verdict = Some(too_late(limit));
        }
        self.stop_inner(place, orders);
    }
}

fn say(message: &str, orders: &mut Vec<Order>) {
    if !message.is_empty() {
        orders.push(Order::Say(message.to_owned()));
    }
}
