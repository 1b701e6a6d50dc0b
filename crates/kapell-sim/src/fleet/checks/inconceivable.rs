use super::{Check, is_undisturbed};
use crate::fleet::fact::Fact;
use crate::fleet::view::View;

/// No cell meets a row of a table that cannot be, in a world in which nothing goes wrong.
///
/// In others such rows are counted, by the world itself.
#[derive(Debug, Default)]
pub(super) struct Inconceivable;

impl Check for Inconceivable {
    fn name(&self) -> &'static str {
        "inconceivable"
    }

    fn saw(&mut self, fact: &Fact, view: &View<'_>) -> Result<(), String> {
        let Fact::Inconceivable { cell, text } = fact else { return Ok(()) };
        if is_undisturbed(view.plan) {
            return Err(format!("{cell} met what cannot be: {text}"));
        }
        Ok(())
    }

    fn at_end(&mut self, _view: &View<'_>) -> Result<(), String> {
        Ok(())
    }
}
