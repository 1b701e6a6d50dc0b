use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use crate::job::JobDefinition;
use crate::kubernetes::{Metadata, Order, Policy, attempt_of, job_name, label, selector};
use crate::run::{RunId, START_TIMEOUT};
use crate::seams::Timestamp;

fn definition(kubernetes: &Json) -> JobDefinition {
    serde_json::from_value(json!({"job_id": "nightly", "kubernetes": kubernetes})).unwrap()
}

fn order<'a>(
    definition: &'a JobDefinition,
    run_id: &'a RunId,
    parameters: &'a BTreeMap<String, String>,
) -> Order<'a> {
    Order {
        owner: "ours",
        run_id,
        attempt: 2,
        scheduled_at: Timestamp(1_763_290_800_250),
        definition,
        parameters,
        namespace: "jobs",
        policy: Policy::default(),
        start_timeout: START_TIMEOUT,
    }
}

fn made(definition: &JobDefinition) -> Json {
    let run_id = RunId::parse("nightly:1763290800").unwrap();
    let parameters = [("DAY".to_owned(), "monday".to_owned())].into_iter().collect();
    order(definition, &run_id, &parameters).job().unwrap()
}

fn refused(definition: &JobDefinition, policy: Policy) -> Vec<String> {
    let run_id = RunId::parse("nightly:1763290800").unwrap();
    let none = BTreeMap::new();
    let order = Order { policy, ..order(definition, &run_id, &none) };
    order.job().err().unwrap_or_default()
}

#[test]
fn the_short_form_becomes_a_pod_with_one_container() {
    let definition = definition(&json!({
        "image": "alpine:3", "command": ["sh", "-c"], "args": ["exit 3"],
        "env": [{"name": "LANG", "value": "C"}], "env_from_secret": ["db"],
        "resources": {"limits": {"memory": "64Mi"}}, "service_account": "reporter",
    }));
    let job = made(&definition);
    let pod = &job["spec"]["template"]["spec"];
    assert_eq!(pod["serviceAccountName"], "reporter");
    assert_eq!(pod["restartPolicy"], "Never");
    let container = &pod["containers"][0];
    assert_eq!(container["name"], "main");
    assert_eq!(container["image"], "alpine:3");
    assert_eq!(
        (&container["command"], &container["args"]),
        (&json!(["sh", "-c"]), &json!(["exit 3"]))
    );
    assert_eq!(container["envFrom"], json!([{"secretRef": {"name": "db"}}]));
    assert_eq!(container["resources"], json!({"limits": {"memory": "64Mi"}}));
    assert_eq!(
        container["env"],
        json!([
            {"name": "LANG", "value": "C"},
            {"name": "DAY", "value": "monday"},
            {"name": "KAPELL_JOB_ID", "value": "nightly"},
            {"name": "KAPELL_RUN_ID", "value": "nightly:1763290800"},
            {"name": "KAPELL_ATTEMPT", "value": "2"},
            {"name": "KAPELL_SCHEDULED_AT", "value": "2025-11-16T11:00:00.25Z"},
        ])
    );
}

#[test]
fn a_job_runs_once_and_bears_labels_that_are_accepted_and_annotations_that_are_exact() {
    let job = made(&definition(&json!({"image": "alpine"})));
    assert_eq!((&job["apiVersion"], &job["kind"]), (&json!("batch/v1"), &json!("Job")));
    assert_eq!(job["metadata"]["namespace"], "jobs");
    assert_eq!(
        job["metadata"]["labels"],
        json!({
            "job-id": "nightly", "run-id": "nightly.1763290800", "scheduled-at": "20251116T110000Z",
            "kapell/owner": "ours",
        })
    );
    assert_eq!(
        job["metadata"]["annotations"],
        json!({
            "kapell/job-id": "nightly", "kapell/run-id": "nightly:1763290800", "kapell/attempt": "2",
            "kapell/scheduled-at": "2025-11-16T11:00:00.25Z",
        })
    );
    let spec = &job["spec"];
    assert_eq!(
        (&spec["backoffLimit"], &spec["completions"], &spec["parallelism"]),
        (&json!(0), &json!(1), &json!(1))
    );
    assert_eq!(spec.get("activeDeadlineSeconds"), None, "it may run for ever");
    assert_eq!(
        spec.get("ttlSecondsAfterFinished"),
        None,
        "nothing goes before its outcome is stored"
    );
    for part in ["labels", "annotations"] {
        assert_eq!(spec["template"]["metadata"][part], job["metadata"][part]);
    }
    let metadata: Metadata = serde_json::from_value(job["metadata"].clone()).unwrap();
    let found = attempt_of(&metadata).unwrap();
    assert_eq!((found.run_id.as_str(), found.attempt), ("nightly:1763290800", 2));
}

#[test]
fn the_deadline_is_start_timeout_and_run_time_and_a_margin() {
    let mut definition = definition(&json!({"image": "alpine"}));
    definition.max_allowed_run_time = serde_json::from_value(json!("90s")).unwrap();
    assert_eq!(made(&definition)["spec"]["activeDeadlineSeconds"], 300 + 90 + 60);
    let run_id = RunId::parse("nightly:1763290800").unwrap();
    let none = BTreeMap::new();
    let start_timeout = std::time::Duration::from_secs(7);
    let order = Order { start_timeout, ..order(&definition, &run_id, &none) };
    assert_eq!(order.job().unwrap()["spec"]["activeDeadlineSeconds"], 7 + 90 + 60, "as set");
    definition.start_timeout = serde_json::from_value(json!("1500ms")).unwrap();
    assert_eq!(made(&definition)["spec"]["activeDeadlineSeconds"], 2 + 90 + 60, "never too early");
}

#[test]
fn every_container_of_a_pod_spec_is_told_about_its_run() {
    let definition = definition(&json!({"pod_spec": {
        "initContainers": [{"name": "first", "image": "a", "env": [{"name": "KAPELL_ATTEMPT", "value": "9"}]}],
        "containers": [{"name": "one", "image": "b"}, {"name": "two", "image": "c"}],
        "nodeSelector": {"disk": "ssd"},
    }}));
    let pod = &made(&definition)["spec"]["template"]["spec"];
    assert_eq!(pod["nodeSelector"], json!({"disk": "ssd"}), "all else is as it was written");
    for container in [&pod["initContainers"][0], &pod["containers"][0], &pod["containers"][1]] {
        let env = container["env"].as_array().unwrap();
        let attempts: Vec<_> = env.iter().filter(|it| it["name"] == "KAPELL_ATTEMPT").collect();
        assert_eq!(attempts, [&json!({"name": "KAPELL_ATTEMPT", "value": "2"})]);
    }
}

#[test]
fn the_name_is_the_same_for_an_attempt_and_another_for_every_other() {
    let run = |id: &str| RunId::parse(id).unwrap();
    let one = job_name("ours", &run("a:1"), 0);
    assert_eq!(one, job_name("ours", &run("a:1"), 0));
    for other in [
        job_name("ours", &run("a:1"), 1),
        job_name("ours", &run("a:2"), 0),
        job_name("theirs", &run("a:1"), 0),
    ] {
        assert_ne!(one, other);
    }
    let digits =
        ["9".repeat(26), "9".repeat(27), "9".repeat(40), format!("{}--99", "9".repeat(25))];
    let short = ["a", "-", "__", "9lives", "Nightly_Report"].map(str::to_owned);
    for job in short.into_iter().chain(digits).chain(["x".repeat(200), "-_".repeat(100)]) {
        let name = job_name("ours", &run(&format!("{job}:1763290800-3f9a0c1d")), 7);
        assert!(name.len() <= 63, "{name}");
        assert!(name.starts_with(|it: char| it.is_ascii_lowercase()), "{name}");
        assert!(
            name.chars().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-'),
            "{name}"
        );
        assert!(!name.ends_with('-'), "{name}");
    }
    let readable = |job: &str| {
        let name = job_name("ours", &run(&format!("{job}:1")), 0);
        name[..name.len() - 33].to_owned()
    };
    // Jobs that are there already are found by their names.
    assert_eq!(readable(&"x".repeat(40)), "x".repeat(28));
    assert_eq!(readable(&"9".repeat(26)), format!("run-{}", "9".repeat(26)));
    assert_eq!(readable(&"9".repeat(40)), format!("run-{}", "9".repeat(26)));
    assert_eq!(readable(&format!("{}--99", "9".repeat(25))), format!("run-{}", "9".repeat(25)));
}

#[test]
fn a_label_is_what_kubernetes_accepts_and_what_was_cut_is_told_apart() {
    assert_eq!(label("nightly"), "nightly");
    assert_eq!(label("nightly:1763290800"), "nightly.1763290800");
    let (one, other) = (label(&"x".repeat(64)), label(&"x".repeat(65)));
    assert_ne!(one, other);
    for text in ["-a", "a_", "___", ":", &"x".repeat(200), &format!("{}:", "y".repeat(62))] {
        let label = label(text);
        assert!((1..=63).contains(&label.len()), "{label}");
        let ends = [label.chars().next().unwrap(), label.chars().last().unwrap()];
        assert!(ends.iter().all(char::is_ascii_alphanumeric), "{label}");
    }
    assert_eq!(selector("ours"), "kapell/owner=ours");
}

#[test]
fn privileged_pods_and_directories_of_the_node_are_refused_unless_allowed() {
    let definition = definition(&json!({"pod_spec": {
        "hostNetwork": true,
        "containers": [{"name": "one", "image": "a", "securityContext": {
            "privileged": true, "capabilities": {"add": ["NET_BIND_SERVICE", "SYS_ADMIN"]},
        }}],
        "initContainers": [{"name": "two", "image": "a", "securityContext": {"procMount": "Unmasked"}}],
        "volumes": [{"name": "empty", "emptyDir": {}}, {"name": "root", "hostPath": {"path": "/"}}],
    }}));
    let fields = |policy| -> Vec<String> {
        let all = refused(&definition, policy).into_iter();
        all.map(|text| text.split_once(": ").unwrap().0.replace("kubernetes.pod_spec.", ""))
            .collect()
    };
    let privileged = [
        "hostNetwork",
        "containers[0].securityContext.privileged",
        "containers[0].securityContext.capabilities.add[1]",
        "initContainers[0].securityContext.procMount",
    ];
    let host_path = ["volumes[1].hostPath"];
    assert_eq!(fields(Policy::default()), [privileged.as_slice(), &host_path].concat());
    assert_eq!(fields(Policy { privileged: true, host_path: false }), host_path);
    assert_eq!(fields(Policy { privileged: false, host_path: true }), privileged);
    assert_eq!(fields(Policy { privileged: true, host_path: true }), [""; 0]);
}

#[test]
fn what_is_wrong_is_told_before_anything_is_made() {
    let definition = definition(&json!({"pod_spec": {"containers": [{"name": "one"}]}}));
    assert_eq!(
        refused(&definition, Policy::default()),
        ["kubernetes.pod_spec.containers[0].image: must be there"]
    );
}
