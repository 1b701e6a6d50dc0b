//! Paths into JSON: `version`, `items.0.name`, `items[0].name`.

use serde_json::Value;

use super::Error;

/// Looks `path` up in the JSON text that `name` stands for. Text comes without its quotes.
pub fn look_up(name: &str, text: &str, path: &str) -> Result<String, Error> {
    let mut value: Value = serde_json::from_str(text).map_err(|error| Error::NotJson {
        name: name.to_owned(),
        path: path.to_owned(),
        problem: error.to_string(),
    })?;
    for key in path.split(['.', '[', ']']).filter(|key| !key.is_empty()) {
        value = take(value, key).map_err(|problem| Error::NoSuchPath {
            name: name.to_owned(),
            path: path.to_owned(),
            problem,
        })?;
    }
    Ok(match value {
        Value::String(text) => text,
        other @ (Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::Array(_)
        | Value::Object(_)) => other.to_string(),
    })
}

fn take(value: Value, key: &str) -> Result<Value, String> {
    match value {
        Value::Object(mut entries) => entries.remove(key).ok_or_else(|| {
            let keys: Vec<_> = entries.keys().take(8).map(String::as_str).collect();
            let there = if keys.is_empty() {
                "it is empty".to_owned()
            } else {
                format!("there are {}", keys.join(", "))
            };
            format!("there is no `{key}`; {there}")
        }),
        Value::Array(mut items) => match key.parse::<usize>() {
            Ok(at) if at < items.len() => Ok(items.swap_remove(at)),
            Ok(_) | Err(_) => Err(format!("there is no item `{key}` in a list of {}", items.len())),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            Err(format!("`{value}` has no `{key}` in it"))
        }
    }
}
