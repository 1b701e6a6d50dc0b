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
    let declared = &definition.parameters;
    let mut wrong = Vec::new();
    for name in given.keys().filter(|name| declared.iter().all(|it| it.name != **name)) {
        let (shown, hint) = (quoted(name), hint(name, declared));
        wrong.push(format!("there is no parameter {shown}: {hint}"));
    }
    let mut resolved = BTreeMap::new();
    for parameter in declared {
        match value(parameter, given.get(&parameter.name)) {
            Ok(value) => drop(resolved.insert(parameter.name.clone(), value)),
            Err(text) => wrong.push(text),
        }
    }
    if wrong.is_empty() { Ok(resolved) } else { Err(wrong) }
}

fn hint(name: &str, declared: &[Parameter]) -> String {
    let names: Vec<&str> = declared.iter().map(|it| it.name.as_str()).collect();
    match (closest(name, names.iter().copied()), names.as_slice()) {
        (Some(meant), _) => format!("did you mean `{meant}`?"),
        (None, []) => "the job has no parameters".to_owned(),
        (None, names) => format!("the job has {}", names.join(", ")),
    }
}

fn value(parameter: &Parameter, given: Option<&String>) -> Result<String, String> {
    let Parameter { name, default, options, changeable, .. } = parameter;
    let Some(given) = given else {
        let missing = || format!("parameter `{name}` has no value: give {}", one(name, options));
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

fn one(name: &str, options: &[String]) -> String {
    let how = format!("one with `-p {name}=VALUE`");
    if options.is_empty() { how } else { format!("{how}, one of {}", list(options)) }
}

fn list(options: &[String]) -> String {
    let quoted: Vec<String> = options.iter().map(|it| quoted(it)).collect();
    quoted.join(", ")
}
