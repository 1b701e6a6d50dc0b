//! The file format as JSON Schema, for editors.

/// The schema of a workflow file.
pub const fn schema() -> &'static str {
    include_str!("workflow.schema.json")
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use crate::manifest::ON_KUBERNETES;

    use super::super::executor::{CONFIG_KEYS, EXECUTOR_KEYS};
    use super::super::load::{HANDLER_KEYS, PARAM_KEYS, WORKFLOW_KEYS};
    use super::super::step::{
        CONDITION_KEYS, DEFAULT_KEYS, DEPENDENCY_KEYS, HANDLER_STEP_KEYS, RETRY_KEYS, STEP_KEYS,
        STREAM_KEYS,
    };

    fn keys(schema: &Value, at: &str) -> Vec<String> {
        let node = schema.pointer(at).unwrap_or_else(|| panic!("no {at} in the schema"));
        assert_eq!(node["additionalProperties"], false, "{at} takes unknown keys");
        let mut keys: Vec<_> =
            node["properties"].as_object().expect("properties").keys().cloned().collect();
        // The other spelling of a key is no other key.
        keys.retain(|key| !key.contains(|letter: char| letter.is_ascii_uppercase()));
        keys.sort();
        keys
    }

    #[test]
    fn the_schema_has_the_keys_that_the_reader_takes() {
        let schema: Value = serde_json::from_str(super::schema()).expect("valid JSON");
        for (at, reader) in [
            ("", WORKFLOW_KEYS),
            ("/$defs/step", STEP_KEYS),
            ("/$defs/handler/oneOf/1", HANDLER_STEP_KEYS),
            ("/$defs/defaults", DEFAULT_KEYS),
            ("/$defs/retry_policy", RETRY_KEYS),
            ("/$defs/condition/oneOf/1", CONDITION_KEYS),
            ("/$defs/output/oneOf/1", STREAM_KEYS),
            ("/$defs/console/oneOf/1", STREAM_KEYS),
            ("/$defs/dependency/oneOf/1", DEPENDENCY_KEYS),
            ("/$defs/executor/oneOf/1", EXECUTOR_KEYS),
            ("/$defs/executor/oneOf/1/properties/config", CONFIG_KEYS),
            ("/$defs/executor/oneOf/2", EXECUTOR_KEYS),
            ("/$defs/executor/oneOf/2/properties/config", ON_KUBERNETES),
            ("/properties/handlers", HANDLER_KEYS),
            ("/$defs/param/oneOf/1", PARAM_KEYS),
        ] {
            let mut want: Vec<_> = reader.iter().map(|&key| key.to_owned()).collect();
            want.sort();
            assert_eq!(keys(&schema, at), want, "{at}");
        }
    }
}
