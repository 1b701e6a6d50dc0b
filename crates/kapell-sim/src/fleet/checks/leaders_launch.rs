use super::Check;
use crate::fleet::fact::Fact;
use crate::fleet::view::View;

/// Whoever does not lead any more launches nothing on its machine, by its own clock at that time.
///
/// On cells it can launch nothing either: they do not heed it.
#[derive(Debug, Default)]
pub(super) struct LeadersLaunch;

impl Check for LeadersLaunch {
    fn name(&self) -> &'static str {
        "leaders launch"
    }

    fn saw(&mut self, fact: &Fact, _view: &View<'_>) -> Result<(), String> {
        if let Fact::WorkBegan { host, attempt, leads: false } = fact {
            let run_id = &attempt.run_id;
            return Err(format!("host {host} does not lead, and launches work of {run_id}"));
        }
        Ok(())
    }

    fn at_end(&mut self, _view: &View<'_>) -> Result<(), String> {
        Ok(())
    }
}
