//! What the work of a run is told in its environment.

use std::collections::BTreeMap;

use super::definition::{JobDefinition, Payload};
use crate::board::Variable;
use crate::run::RunId;
use crate::seams::Timestamp;

/// The variables that every run has, whatever its job says.
pub const OURS: [&str; 4] =
    ["KAPELL_JOB_ID", "KAPELL_RUN_ID", "KAPELL_ATTEMPT", "KAPELL_SCHEDULED_AT"];

/// What the definition says, then the parameters, then our own: of one name there is one variable, the last.
///
/// The parameters of a workflow are none of its variables: it has them by [`named`].
pub fn environment(
    definition: &JobDefinition,
    parameters: &BTreeMap<String, String>,
    run_id: &RunId,
    attempt: u32,
    scheduled_at: Timestamp,
) -> Vec<Variable> {
    let (own, parameters): (&[Variable], _) = match definition.payload() {
        Some(Payload::Command(command)) => (&command.env, Some(parameters)),
        Some(Payload::Task(task)) => (&task.0.env, Some(parameters)),
        Some(Payload::Workflow(_)) | None => (&[], None),
    };
    let ours =
        [run_id.job().to_owned(), run_id.to_string(), attempt.to_string(), rfc3339(scheduled_at)];
    let mut all = own.to_vec();
    for (name, value) in parameters.into_iter().flatten() {
        all.retain(|it| it.name != *name);
        all.push(Variable::plain(name.clone(), value.clone()));
    }
    for (name, value) in OURS.into_iter().zip(ours) {
        all.retain(|it| it.name != name);
        all.push(Variable::plain(name, value));
    }
    all
}

/// The parameters as the command line of `kapell process` has them after `-p`; none of anything but a workflow.
pub fn named(definition: &JobDefinition, parameters: &BTreeMap<String, String>) -> Vec<String> {
    match definition.payload() {
        Some(Payload::Workflow(_)) => {
            parameters.iter().map(|(name, value)| format!("{name}={value}")).collect()
        }
        Some(Payload::Command(_) | Payload::Task(_)) | None => Vec::new(),
    }
}

/// `2026-11-16T06:00:00Z`; with milliseconds where there are any.
fn rfc3339(at: Timestamp) -> String {
    const DAY_MS: i64 = 86_400_000;
    let (year, month, day) = civil(at.0.div_euclid(DAY_MS));
    let ms = at.0.rem_euclid(DAY_MS);
    let (hour, minute, second) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60);
    let date = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
    match ms % 1_000 {
        0 => format!("{date}Z"),
        ms => format!("{date}.{ms:03}Z"),
    }
}

/// Year, month and day of a day since 1970. Years are counted from March, so that a leap day is the last of its year.
const fn civil(days: i64) -> (i64, i64, i64) {
    const ERA: i64 = 146_097;
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(ERA), days.rem_euclid(ERA));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / (ERA - 1)) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + if month <= 2 { 1 } else { 0 };
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_written_by_rfc_3339() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00Z"),
            (1_709_251_199_000, "2024-02-29T23:59:59Z"),
            (1_735_689_600_050, "2025-01-01T00:00:00.050Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(rfc3339(Timestamp(ms)), text);
        }
    }
}
