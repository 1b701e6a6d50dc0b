use serde_json::{Value, json};

/// What is written down of requests: the life of pods, whoever made them, and all that clients of tests ask for.
pub(super) fn policy() -> Value {
    json!({
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [
            // With its labels, which say whose it is.
            {
                "level": "Request",
                "verbs": ["create"],
                "resources": [{"group": "", "resources": ["pods"]}],
            },
            {
                "level": "Metadata",
                "verbs": ["create", "delete", "deletecollection"],
                "resources": [{"group": "", "resources": ["pods", "pods/eviction"]}],
            },
            {"level": "None", "nonResourceURLs": ["/readyz*", "/livez*", "/healthz*"]},
            {"level": "Metadata", "users": ["admin", "stranger"]},
            {"level": "Metadata", "userGroups": ["system:serviceaccounts"]},
            {"level": "None"},
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_and_ends_pods_is_written_down_whoever_asks() {
        let rules = policy()["rules"].clone();
        for (rule, level, verb) in [(0, "Request", "create"), (1, "Metadata", "delete")] {
            let rule = &rules[rule];
            assert_eq!((&rule["level"], rule.get("users")), (&json!(level), None));
            assert!(rule["verbs"].as_array().unwrap().contains(&json!(verb)));
            assert_eq!(rule["resources"][0]["resources"][0], "pods");
        }
        assert_eq!(rules.as_array().unwrap().last(), Some(&json!({"level": "None"})));
    }
}
