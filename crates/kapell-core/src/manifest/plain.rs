//! Values that are none of ours to judge.

use serde_json::{Number, Value as Json};

use crate::yaml::{Node, Scalar, Value};

/// A value as YAML means it.
pub(super) fn plain(node: &Node<'_>) -> Json {
    match &node.value {
        Value::Scalar(scalar) => plain_scalar(scalar),
        Value::List(items) => items.iter().map(plain).collect(),
        Value::Map(entries) => {
            let key = |key: &Node<'_>| match key.scalar() {
                Some(scalar) => scalar.text.clone().into_owned(),
                None => plain(key).to_string(),
            };
            entries.iter().map(|(name, value)| (key(name), plain(value))).collect()
        }
    }
}

fn plain_scalar(scalar: &Scalar<'_>) -> Json {
    let text = &*scalar.text;
    if scalar.is_null() {
        return Json::Null;
    }
    if !scalar.plain {
        return text.into();
    }
    match text {
        "true" | "True" | "TRUE" => return true.into(),
        "false" | "False" | "FALSE" => return false.into(),
        _ => {}
    }
    let looks_like_number = text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
    if let Ok(number) = text.parse::<i64>() {
        return number.into();
    }
    if let Ok(number) = text.parse::<u64>() {
        return number.into();
    }
    let float = text.parse::<f64>().ok().filter(|_| looks_like_number).and_then(Number::from_f64);
    float.map_or_else(|| text.into(), Json::Number)
}
