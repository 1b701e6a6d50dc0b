//! The parameters of one run: what its job declares, what somebody gave, and what results.

use std::collections::BTreeMap;

use super::definition::{JobDefinition, Parameter};
use crate::board::validate::quoted;
use crate::source::closest;

/// The longest value of a parameter, in bytes.
pub const LONGEST_VALUE: usize = 4 * 1024;

/// Puts the given values over the defaults. Everything that is wrong is told at once.
pub fn resolve(
    definition: &JobDefinition,
    given: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, Vec<String>> {
    resolve_told(definition, given, by_option)
}

/// The same, for values that are not given on a command line: `how` says how a named one that lacks is given.
pub fn resolve_told(
    definition: &JobDefinition,
    given: &BTreeMap<String, String>,
    how: impl Fn(&str) -> String,
) -> Result<BTreeMap<String, String>, Vec<String>> {
    let declared = &definition.parameters;
    let mut wrong = Vec::new();
    for name in given.keys().filter(|name| declared.iter().all(|it| it.name != **name)) {
        let (shown, hint) = (quoted(name), hint(name, declared));
        wrong.push(format!("there is no parameter {shown}: {hint}"));
    }
    let mut resolved = BTreeMap::new();
    for parameter in declared {
        match value(parameter, given.get(&parameter.name), &how) {
            Ok(value) => drop(resolved.insert(parameter.name.clone(), value)),
            Err(text) => wrong.push(text),
        }
    }
    if wrong.is_empty() { Ok(resolved) } else { Err(wrong) }
}

/// How a person gives a value.
pub fn by_option(name: &str) -> String {
    format!("one with `-p {name}=VALUE`")
}

/// What a run that is there has: what was given, and otherwise what the job says. Nothing is refused any more.
pub fn of_run(
    definition: &JobDefinition,
    given: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let usual = definition.parameters.iter();
    let usual = usual.filter_map(|it| Some((it.name.clone(), it.default.clone()?)));
    let mut parameters: BTreeMap<String, String> = usual.collect();
    parameters.extend(given.clone());
    parameters
}

fn hint(name: &str, declared: &[Parameter]) -> String {
    let names: Vec<&str> = declared.iter().map(|it| it.name.as_str()).collect();
    match (closest(name, names.iter().copied()), names.as_slice()) {
        (Some(meant), _) => format!("did you mean `{meant}`?"),
        (None, []) => "the job has no parameters".to_owned(),
        (None, names) => format!("the job has {}", names.join(", ")),
    }
}

fn value(
    parameter: &Parameter,
    given: Option<&String>,
    how: impl Fn(&str) -> String,
) -> Result<String, String> {
    let Parameter { name, default, options, changeable, .. } = parameter;
    let Some(given) = given else {
        let missing =
            || format!("parameter `{name}` has no value: give {}", one(how(name), options));
        return default.clone().ok_or_else(missing);
    };
    if default.as_ref() == Some(given) {
        return Ok(given.clone());
    }
    if !changeable {
        let fixed = default.as_deref().unwrap_or_default();
        return Err(format!("parameter `{name}` cannot be changed: it is always `{fixed}`"));
    }
    if !options.is_empty() && !options.contains(given) {
        let (given, options) = (quoted(given), list(options));
        return Err(format!("parameter `{name}` cannot be {given}: it is one of {options}"));
    }
    if given.contains('\0') {
        return Err(format!("parameter `{name}` must not contain a NUL byte"));
    }
    if given.len() > LONGEST_VALUE {
        let (most, bytes) = (LONGEST_VALUE / 1024, given.len());
        return Err(format!("parameter `{name}` must be at most {most} KiB, not {bytes} bytes"));
    }
    Ok(given.clone())
}

fn one(how: String, options: &[String]) -> String {
    if options.is_empty() { how } else { format!("{how}, one of {}", list(options)) }
}

fn list(options: &[String]) -> String {
    let quoted: Vec<String> = options.iter().map(|it| quoted(it)).collect();
    quoted.join(", ")
}
