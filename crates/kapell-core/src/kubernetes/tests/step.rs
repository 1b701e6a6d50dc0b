use std::time::Duration;

use serde_json::{Value as Json, json};

use crate::kubernetes::{
    JobPlace, KubernetesPayload, Metadata, Policy, StepOrder, is_work_of, step_job_name,
    step_selector,
};

fn place() -> JobPlace {
    JobPlace {
        cluster: String::new(),
        namespace: "jobs".to_owned(),
        name: step_job_name("run-1", "build it", 0),
        run: "run-1".to_owned(),
    }
}

fn made(payload: &Json, change: impl Fn(&mut StepOrder<'_>)) -> Result<Json, Vec<String>> {
    let payload: KubernetesPayload = serde_json::from_value(payload.clone()).unwrap();
    let place = place();
    let command = ["sh".to_owned(), "-c".to_owned(), "echo $$ $(date)".to_owned()];
    let env = [("A", "1"), ("B", "$(A) costs $5"), ("A", "2")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut order = StepOrder {
        place: &place,
        workflow: "night",
        step: "build it",
        attempt: 0,
        payload: &payload,
        policy: Policy::default(),
        command: &command,
        dir: Some("/srv"),
        env: &env,
        limit: None,
        grace: Duration::from_millis(9_500),
    };
    change(&mut order);
    order.job()
}

#[test]
fn a_step_is_the_first_container_and_its_values_are_data() {
    let job = made(&json!({"image": "app:1", "env": [{"name": "OWN", "value": "$(A)!"}]}), |_| {});
    let job = job.unwrap();
    let main = &job["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(main["command"], json!(["sh", "-c", "echo $$$$ $$(date)"]), "as it stands");
    assert_eq!((&main["workingDir"], &main["image"]), (&"/srv".into(), &"app:1".into()));
    let env = json!([
        {"name": "B", "value": "$$(A) costs $$5"},
        {"name": "A", "value": "2"},
        {"name": "OWN", "value": "$(A)!"},
    ]);
    assert_eq!(main["env"], env, "the last of one name counts, and what the pod says comes last");
    assert_eq!(job["spec"]["backoffLimit"], 0);
    assert_eq!(job["spec"]["template"]["spec"]["restartPolicy"], "Never");
    let labels = &job["spec"]["template"]["metadata"]["labels"];
    let want =
        json!({"kapell/owner": "run-1", "kapell/workflow": "night", "kapell/step": "build.it"});
    assert_eq!(*labels, want);
    assert_eq!(job["metadata"]["annotations"]["kapell/step"], "build it");
    assert!(job["spec"]["activeDeadlineSeconds"].is_null());
    let limited = made(&json!({"image": "a"}), |it| it.limit = Some(Duration::from_secs(40)));
    assert_eq!(limited.unwrap()["spec"]["activeDeadlineSeconds"], 101);
}

#[test]
fn all_containers_have_the_values_and_what_a_pod_sets_itself_stays() {
    let pod = json!({"pod_spec": {
        "initContainers": [{"name": "first", "image": "i", "command": ["x"]}],
        "containers": [
            {"name": "app", "image": "a", "workingDir": "/own", "env": [{"name": "A", "value": "own"}]},
            {"name": "side", "image": "s"},
        ],
    }});
    let job = made(&pod, |_| {}).unwrap();
    let spec = &job["spec"]["template"]["spec"];
    assert_eq!(spec["containers"][0]["workingDir"], "/own");
    assert_eq!(spec["containers"][0]["env"][1], json!({"name": "A", "value": "own"}));
    assert_eq!(spec["containers"][1]["command"], Json::Null, "it is not the step");
    for other in [&spec["containers"][1], &spec["initContainers"][0]] {
        assert_eq!(other["env"][1], json!({"name": "A", "value": "2"}));
    }
    assert_eq!(spec["initContainers"][0]["command"], json!(["x"]));
    assert_eq!(spec["terminationGracePeriodSeconds"], 10, "what kapell gives its steps");
    let mut quick = pod.clone();
    quick["pod_spec"]["terminationGracePeriodSeconds"] = 2.into();
    let job = made(&quick, |_| {}).unwrap();
    assert_eq!(job["spec"]["template"]["spec"]["terminationGracePeriodSeconds"], 2);
}

#[test]
fn what_is_wrong_with_the_pod_of_a_step_is_told_all_at_once() {
    let pod = json!({"pod_spec": {
        "hostNetwork": true,
        "containers": [{"name": "a", "image": "i", "args": ["x"]}],
        "volumes": [{"name": "v", "hostPath": {"path": "/"}}],
    }});
    let wrong = made(&pod, |_| {}).unwrap_err();
    assert_eq!(wrong.len(), 3, "{wrong:?}");
    assert!(wrong[0].starts_with("kubernetes.pod_spec.hostNetwork: "), "{wrong:?}");
    assert!(wrong[1].starts_with("kubernetes.pod_spec.volumes[0].hostPath: "), "{wrong:?}");
    assert_eq!(
        wrong[2],
        "kubernetes.pod_spec: the step has a command, and so has its first container"
    );
    let allowed = made(&pod, |it| {
        it.policy = Policy { privileged: true, host_path: true };
        it.command = &[];
    });
    allowed.unwrap();
}

#[test]
fn names_are_those_of_run_step_and_attempt() {
    let name = step_job_name("run-1", "Build it!", 0);
    assert_eq!(name, step_job_name("run-1", "Build it!", 0));
    assert!(name.starts_with("build-it-") && name.len() <= 63, "{name}");
    for other in [
        step_job_name("run-2", "Build it!", 0),
        step_job_name("run-1", "Build it?", 0),
        step_job_name("run-1", "Build it!", 1),
    ] {
        assert_ne!(name, other);
    }
    let digits = step_job_name("run-1", &"7".repeat(40), 0);
    assert!(digits.starts_with("run-777") && digits.len() == 63, "{digits}");
    assert_eq!(step_selector(["b", "a", "b"]), "kapell/owner in (a,b)");
}

#[test]
fn a_job_that_is_there_is_the_same_if_it_does_the_same() {
    let of = |image: &str| made(&json!({ "image": image }), |_| {}).unwrap();
    let there = of("a");
    let metadata: Metadata = serde_json::from_value(there["metadata"].clone()).unwrap();
    assert!(is_work_of(&metadata, &of("a")));
    assert!(!is_work_of(&metadata, &of("b")));
    assert!(!is_work_of(&Metadata::default(), &of("a")));
    let slower = made(&json!({"image": "a"}), |it| it.grace = Duration::from_secs(60));
    assert!(is_work_of(&metadata, &slower.unwrap()), "a setting is not what it does");
}

#[test]
fn images_may_be_others() {
    let payload = json!({"pod_spec": {
        "initContainers": [{"name": "i", "image": "one"}],
        "containers": [{"name": "c", "image": "two"}],
    }});
    let payload: KubernetesPayload = serde_json::from_value(payload).unwrap();
    assert_eq!(payload.images().collect::<Vec<_>>(), ["one", "two"]);
    let changed = payload.with_images(|image| Ok::<_, ()>(format!("{image}:1"))).unwrap();
    assert_eq!(changed.images().collect::<Vec<_>>(), ["one:1", "two:1"]);
    assert_eq!(payload.with_images(|_| Err("no")).unwrap_err(), "no");
}
