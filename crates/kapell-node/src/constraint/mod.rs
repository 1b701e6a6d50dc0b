//! Carries out what constraints ask about and what actions do. What it means is decided by `kapell_core::constraint`.

mod action;
mod cells;
mod check;
mod checker;
mod context;
mod executor;
mod inbox;
mod pulse;

#[cfg(test)]
mod tests;

pub use action::{Action, ActionError};
pub use cells::{BoardCells, Cells};
pub use check::Constraint;
pub use checker::{Checker, ConstraintChecker, Error, PreCheck};
pub use context::{Context, Means};
pub use executor::{ActionExecutor, Executor, Todo, failed};
pub use inbox::{Inbox, Message, Which};
pub use pulse::{Pulse, Slots};
