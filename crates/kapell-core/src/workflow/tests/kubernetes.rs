//! Steps on Kubernetes: how they are written, and what is refused.

use std::time::Duration;

use serde_json::json;

use super::{loaded, options, workflow, wrong};
use crate::board::Variable;
use crate::kubernetes::KubernetesPayload;
use crate::workflow::{Executor, OnCell, OnKubernetes, Work};

fn wanted(lines: &str) -> OnKubernetes {
    options(lines).on_kubernetes().expect("it runs on Kubernetes").clone()
}

#[test]
fn a_step_says_what_runs_on_which_cluster() {
    let short = wanted(
        "command: x
executor:
  type: kubernetes
  config: {image: 'app:1', cluster: main, namespace: jobs, env: {A: b}, envFromSecret: keys, resources: {limits: {cpu: 1}}, \
         serviceAccount: robot, startTimeout: 10s}",
    );
    let payload = KubernetesPayload {
        image: Some("app:1".to_owned()),
        cluster: "main".to_owned(),
        namespace: "jobs".to_owned(),
        env: vec![Variable::plain("A", "b")],
        env_from_secret: vec!["keys".to_owned()],
        resources: Some(json!({"limits": {"cpu": 1}})),
        service_account: Some("robot".to_owned()),
        ..KubernetesPayload::default()
    };
    assert_eq!(short, OnKubernetes { payload, start_timeout: Duration::from_secs(10) });
    let pod = json!({"containers": [{"name": "a", "image": "b"}]});
    for text in ["{containers: [{name: a, image: b}]}", "'containers: [{name: a, image: b}]'"] {
        let whole = format!("executor: {{type: kubernetes, config: {{podSpec: {text}}}}}");
        let whole = wanted(&whole);
        assert_eq!(whole.payload.pod_spec, Some(pod.clone()), "{text}");
        assert_eq!(whole.start_timeout, Duration::from_secs(300));
    }
}

#[test]
fn a_step_without_a_command_is_what_its_pod_says() {
    let workflow = workflow(
        "defaults: {executor: {type: kubernetes, config: {image: app}}}
steps:
  - {name: joint}
  - {name: own, executor: {type: kubernetes, config: {image: app}}}
  - {name: shell, command: x}
  - {name: here, command: x, executor: local}
  - {name: cell, command: x, executor: cell}
handlers: {exit: x}",
    );
    let work: Vec<&Work> = workflow.steps.iter().map(|step| &step.work).collect();
    assert_eq!((work[0], work[1]), (&Work::Join, &Work::Pod));
    assert!(matches!(work[2], Work::Shell(_)));
    let on: Vec<bool> =
        workflow.steps.iter().map(|step| step.options.on_kubernetes().is_some()).collect();
    assert_eq!(on, [true, true, true, false, false, true]);
    let cell = |at: usize| workflow.steps[at].options.on_cell(true);
    assert_eq!((cell(1), cell(4)), (None, Some(OnCell::default())), "not even with --on");
    assert_eq!(workflow.steps[3].options.executor, Some(Executor::Local));
}

#[test]
fn an_image_may_be_what_another_step_has_made() {
    let loaded = loaded(
        "steps:
  - {name: build, command: x}
  - {name: use, command: y, depends: build, executor: {type: kubernetes, config: {image: 'app:${build.tag}'}}}",
    );
    assert_eq!(loaded.quoted.len(), 1);
    assert_eq!(loaded.warnings, []);
}

#[test]
fn what_is_wrong_with_a_step_on_kubernetes_is_told_with_its_place() {
    let text = "steps:
  - {name: a, command: x, executor: kubernetes}
  - {name: b, command: x, executor: {type: kubernetes, config: {imge: x}}}
  - {name: c, command: x, executor: {type: kubernetes, config: {namespace: No, image: ''}}}
  - name: d
    executor:
      type: kubernetes
      config:
        podSpec:
          restartPolicy: Always
          containers:
            - {name: a}
  - {name: e, command: x, dir: here, output: {stderr: E}, executor: {type: kubernetes, config: {image: x, command: [y]}}}
  - {name: f, command: x, console: {stderr: true}, executor: {type: kubernetes, config: {image: x, start_timeout: soon}}}
  - {name: g, command: x, console: {stderr: true}, executor: {type: kubernetes, config: {image: x}}}
";
    let stream =
        "a cluster keeps all that a container writes as one stream (write `stdout`: it has both)";
    let want = [
        "2:37: a step on Kubernetes has no image (write `executor: {type: kubernetes, config: {image: …}}`)".to_owned(),
        "3:65: unknown key `imge` in config (did you mean `image`?)".to_owned(),
        "4:76: kubernetes.namespace: must be 1 to 63 lower-case letters, digits or `-`, beginning and ending with a letter or \
         digit, not `No`".to_owned(),
        "4:87: kubernetes.image: must not be empty".to_owned(),
        "10:26: kubernetes.pod_spec.restartPolicy: must be `Never`, not `Always`: Kapell tries again itself".to_owned(),
        "12:15: kubernetes.pod_spec.containers[0].image: must be there".to_owned(),
        "13:15: the step has a command, and so has its first container (keep one of the two)".to_owned(),
        "13:32: `dir` of a step on Kubernetes is relative (write the whole path as it is in the container, or leave it out: \
         it has a directory of its own)".to_owned(),
        format!("13:46: `output`: {stream}"),
        "14:115: `start_timeout`: `soon` is not a duration (write for example `500ms`, `30s`, `1m30s` or `2h`)".to_owned(),
        format!("15:36: `console`: {stream}"),
    ];
    assert_eq!(wrong(text), want);
}
