//! The shapes of constraints and actions, as the reader has them.

use kapell_core::constraint::schemas;
use serde_json::{Map, Value, json};

use super::schemas::{flag, of};

/// Each constraint (`Constraint_time_window`) and each action (`Action_webhook`), and one of either kind.
pub(super) fn all() -> Value {
    let mut all = Map::new();
    let (mut constraints, mut actions) = (Map::new(), Map::new());
    for (name, schema) in schemas() {
        let Some((kind, name)) = name.split_once('/') else { continue };
        let is_action = kind == "action";
        let title = format!("{}_{name}", if is_action { "Action" } else { "Constraint" });
        let (into, one) = if is_action {
            (&mut actions, of(&title))
        } else {
            (&mut constraints, constraint(&of(&title)))
        };
        into.insert(name.to_owned(), one);
        all.insert(title, schema);
    }
    let one = |properties: Map<String, Value>, about: &str| json!({ "type": "object", "description": about, "properties": properties });
    all.insert(
        "JobConstraint".to_owned(),
        one(
            constraints,
            "One constraint by its name. Names and keys may be written in camelCase or snake_case.",
        ),
    );
    let action = one(actions, "One action by its name.");
    let named = json!({ "type": "string", "description": "An action that takes nothing, or one of those below `actions`." });
    all.insert("JobAction".to_owned(), json!({ "anyOf": [named, action] }));
    Value::Object(all)
}

fn constraint(config: &Value) -> Value {
    let list = json!({ "anyOf": [of("JobAction"), { "type": "array", "items": of("JobAction") }] });
    json!({
        "type": ["object", "boolean", "null"],
        "properties": {
            "config": config,
            "on_violation": list,
            "on_met": list,
            "on_error": { "enum": ["block", "allow", "retry"], "default": "block" },
            "recheck_on_retry": flag(),
        },
    })
}
