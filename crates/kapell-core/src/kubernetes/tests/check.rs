use serde_json::{Value as Json, json};

use crate::kubernetes::faults;

fn told(payload: &Json) -> Vec<String> {
    faults(&serde_json::from_value(payload.clone()).unwrap())
}

#[test]
fn what_a_cluster_would_take_has_no_faults() {
    for payload in [
        json!({"image": "alpine"}),
        json!({"image": "alpine", "namespace": "jobs", "resources": {
            "requests": {"cpu": "250m", "memory": "64Mi", "x.y/gpu": 1}, "limits": {"cpu": 0.5, "memory": "1e3"},
        }}),
        json!({"pod_spec": {"containers": [{"name": "one", "image": "a", "somethingNew": {}}], "anotherWord": 1}}),
        json!({"pod_spec": {"restartPolicy": "Never", "containers": [{"name": "one", "image": "a"}]}}),
    ] {
        assert_eq!(told(&payload), [""; 0], "{payload}");
    }
}

#[test]
fn each_fault_is_told_with_its_field() {
    let name = "must be 1 to 63 lower-case letters, digits or `-`, beginning and ending with a letter or digit";
    let cases = [
        (json!({}), vec!["kubernetes: must have `pod_spec` or `image`".to_owned()]),
        (json!({"image": " "}), vec!["kubernetes.image: must not be empty".to_owned()]),
        (
            json!({"image": "a", "namespace": "A_b"}),
            vec![format!("kubernetes.namespace: {name}, not `A_b`")],
        ),
        (
            json!({"image": "a", "env": [{"name": "X", "secret": "y"}]}),
            vec!["kubernetes.env[0].secret: a secret of Kapell does not leave it; use `env_from_secret`, a secret of the cluster".to_owned()],
        ),
        (
            json!({"image": "a", "pod_spec": {"containers": [{"name": "a", "image": "b"}]}}),
            vec!["kubernetes.image: stands beside `pod_spec`, which says all of it".to_owned()],
        ),
        (json!({"pod_spec": []}), vec!["kubernetes.pod_spec: must be a mapping, not a list".to_owned()]),
        (
            json!({"pod_spec": {"spec": {}}}),
            vec!["kubernetes.pod_spec.spec: write only what stands below `spec` of a pod".to_owned()],
        ),
        (
            json!({"pod_spec": {}}),
            vec!["kubernetes.pod_spec.containers: must be there, with at least one".to_owned()],
        ),
        (
            json!({"pod_spec": {"containers": []}}),
            vec!["kubernetes.pod_spec.containers: must hold at least one".to_owned()],
        ),
        (
            json!({"pod_spec": {"container": [], "restartPolicy": "Always", "containers": [{"name": "a", "image": "b"}]}}),
            vec![
                "kubernetes.pod_spec.container: is no field; did you mean `containers`?".to_owned(),
                "kubernetes.pod_spec.restartPolicy: must be `Never`, not `Always`: Kapell tries again itself".to_owned(),
            ],
        ),
        (
            json!({"pod_spec": {"containers": [
                {"name": "A", "image": 3, "command": "sh", "args": [1]},
                {"name": "b", "image": "x", "env": [{"name": "N", "value": 1}, {"value": ""}]},
                {"name": "b", "image": "x", "resources": {"limits": {"memory": "64 MB"}, "request": {}}},
            ]}}),
            vec![
                format!("kubernetes.pod_spec.containers[0].name: {name}, not `A`"),
                "kubernetes.pod_spec.containers[0].image: must be text, not 3; put it in quotes".to_owned(),
                "kubernetes.pod_spec.containers[0].command: must be a list, not text".to_owned(),
                "kubernetes.pod_spec.containers[0].args[0]: must be text, not 1; put it in quotes".to_owned(),
                "kubernetes.pod_spec.containers[1].env[0].value: must be text, not 1; put it in quotes".to_owned(),
                "kubernetes.pod_spec.containers[1].env[1].name: must be there".to_owned(),
                "kubernetes.pod_spec.containers[2].name: `b` stands there twice".to_owned(),
                "kubernetes.pod_spec.containers[2].resources.request: is no field; did you mean `requests`?".to_owned(),
                "kubernetes.pod_spec.containers[2].resources.limits.memory: must be a quantity such as `250m` or `64Mi`, not \"64 MB\"".to_owned(),
            ],
        ),
    ];
    for (payload, want) in cases {
        assert_eq!(told(&payload), want, "{payload}");
    }
}
