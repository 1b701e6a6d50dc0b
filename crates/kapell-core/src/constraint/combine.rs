//! What follows for a run from all that was found out and done.

use super::Verdict;
use super::action::ActionSpec;
use super::rule::{OnError, Spec};
use crate::run::{ActionsDone, Checked, Counts, Noted};

/// What came of one constraint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Met(String),
    Violated(String),
    /// Nobody can say.
    Error(String),
    /// A further attempt, and `recheck_on_retry` is false.
    PassedOver,
}

/// An action to be taken, by the places of its constraint and in its list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    pub constraint: usize,
    pub action: usize,
}

/// What came of one action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done {
    pub name: &'static str,
    pub required: bool,
    /// What it did, or why it failed.
    pub result: Result<String, String>,
}

/// Of what several say the strictest counts: fail, then skip (nothing is to be done, so nothing is tried again), then
/// retry.
pub fn combine(words: impl IntoIterator<Item = Verdict>) -> Verdict {
    let strict = |verdict: Verdict| match verdict {
        Verdict::Proceed => 0,
        Verdict::Retry => 1,
        Verdict::Skip => 2,
        Verdict::Fail => 3,
    };
    words.into_iter().max_by_key(|verdict| strict(*verdict)).unwrap_or(Verdict::Proceed)
}

impl Outcome {
    /// The list that a constraint has for it.
    pub fn list<'a>(&self, spec: &'a Spec) -> &'a [ActionSpec] {
        match self {
            Self::Met(_) => &spec.on_met,
            Self::Violated(_) => &spec.on_violation,
            Self::Error(_) | Self::PassedOver => &[],
        }
    }
}

/// What one constraint says about the run.
fn word(spec: &Spec, outcome: &Outcome) -> Verdict {
    let list = outcome.list(spec);
    let said = list.iter().find_map(ActionSpec::verdict);
    let delays = list.iter().any(ActionSpec::delays);
    match outcome {
        Outcome::Met(_) => said.unwrap_or(Verdict::Proceed),
        Outcome::Violated(_) => {
            said.unwrap_or(if delays { Verdict::Proceed } else { spec.rule.default_word() })
        }
        Outcome::Error(_) => match spec.on_error {
            OnError::Block => Verdict::Fail,
            OnError::Allow => Verdict::Proceed,
            OnError::Retry => Verdict::Retry,
        },
        Outcome::PassedOver => Verdict::Proceed,
    }
}

fn verdict(looked: &[(&Spec, Outcome)]) -> Verdict {
    combine(looked.iter().map(|(spec, outcome)| word(spec, outcome)))
}

/// The actions to be taken, in order. Nobody waits for a run that will not go on.
pub fn steps(looked: &[(&Spec, Outcome)]) -> Vec<Step> {
    let goes_on = match verdict(looked) {
        Verdict::Proceed | Verdict::Retry => true,
        Verdict::Fail | Verdict::Skip => false,
    };
    let mut all = Vec::new();
    for (constraint, (spec, outcome)) in looked.iter().enumerate() {
        for (action, it) in outcome.list(spec).iter().enumerate() {
            if goes_on || !it.delays() {
                all.push(Step { constraint, action });
            }
        }
    }
    all
}

/// What is told to the run when all constraints were looked at.
pub fn checked(looked: &[(&Spec, Outcome)]) -> Checked {
    let mut counts = Counts::default();
    let mut notes = Vec::new();
    for (spec, outcome) in looked {
        let name = spec.name.to_owned();
        match outcome {
            Outcome::Met(message) => {
                notes.push(Noted::Constraint { name, met: true, message: message.clone() });
            }
            Outcome::Violated(message) => {
                counts.violated += 1;
                notes.push(Noted::Constraint { name, met: false, message: message.clone() });
            }
            Outcome::Error(message) => {
                notes.push(Noted::ConstraintError { name, message: message.clone() });
            }
            Outcome::PassedOver => continue,
        }
        counts.checked += 1;
    }
    let acts = !steps(looked).is_empty();
    Checked { verdict: verdict(looked), message: message(looked), acts, counts, notes }
}

/// What is told to the run when its actions have been taken.
pub fn conclude(looked: &[(&Spec, Outcome)], done: &[Done]) -> ActionsDone {
    let mut counts = Counts::default();
    let mut notes = Vec::new();
    let mut texts = vec![message(looked)];
    let mut words = vec![verdict(looked)];
    for action in done {
        counts.executed += 1;
        let (ok, text) = match &action.result {
            Ok(text) => (true, text),
            Err(why) => (false, why),
        };
        if !ok {
            counts.failed += 1;
            if action.required {
                words.push(Verdict::Fail);
                texts.push(format!("action {} failed: {text}", action.name));
            }
        }
        notes.push(Noted::Action { name: action.name.to_owned(), ok, message: text.clone() });
    }
    ActionsDone { verdict: combine(words), message: texts.join("; "), counts, notes }
}

/// What is not as it should be, or that all is.
fn message(looked: &[(&Spec, Outcome)]) -> String {
    let told = looked.iter().filter_map(|(spec, outcome)| match outcome {
        Outcome::Violated(message) => Some(format!("{} is violated: {message}", spec.name)),
        Outcome::Error(message) => Some(format!("{} could not be checked: {message}", spec.name)),
        Outcome::Met(_) | Outcome::PassedOver => None,
    });
    let told: Vec<String> = told.collect();
    if told.is_empty() { "all constraints are met".to_owned() } else { told.join("; ") }
}
