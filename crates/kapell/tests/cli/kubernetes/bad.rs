use std::path::Path;

use serde_json::Value;

use super::lab::Lab;
use crate::bench::Ran;

const HERE_AND_THERE: &str = "
name: NAME
steps:
  - {name: here, command: 'touch ran'}
  - {name: far, command: x, executor: {type: kubernetes, config: {image: IMAGE}}}
";

/// What comes of a cluster that is found as other tools find theirs.
fn by_kubeconfig(lab: &Lab, kubeconfig: &Path) -> Ran {
    let mut command = lab.bench.kapell(&["process", "flow.yaml"]);
    command.env_remove("KAPELL_KUBERNETES_CLUSTERS").env("KUBECONFIG", kubeconfig);
    lab.bench.run_command(command)
}

#[test]
fn a_cluster_that_cannot_be_used_is_told_before_anything_runs() {
    let test = "bad::a_cluster_that_cannot_be_used_is_told_before_anything_runs";
    let Some(lab) = Lab::new(test, HERE_AND_THERE) else { return };
    let told = "step `far` cannot run on Kubernetes: ";
    let kubeconfig = std::fs::read_to_string(&lab.kubeconfig).expect("a kubeconfig");
    let mut away: Value = serde_json::from_str(&kubeconfig).expect("JSON");
    away["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1".into();
    lab.bench.write("away", away.to_string());
    let beside = |name: &str| lab.kubeconfig.with_file_name(name);
    for (kubeconfig, want) in [
        (lab.bench.path("away"), "the cluster cannot be reached"),
        (lab.bench.path("none"), "cluster `default` cannot be used: "),
        (
            beside("stranger.kubeconfig"),
            "forbidden by the cluster: jobs.batch \"kapell-nobody\" is forbidden: User \"stranger\" cannot get resource \"jobs\" \
             in API group \"batch\" in the namespace \"default\"",
        ),
        (beside("expired.kubeconfig"), "may have expired"),
    ] {
        let ran = by_kubeconfig(&lab, &kubeconfig).expect(2);
        ran.stderr_has(told).stderr_has(want).stderr_has("; nothing was run");
    }
    // Those of the settings, and what they allow.
    for (config, want) in [
        (
            "image: x, cluster: other",
            "kubernetes.cluster: `other` is not among the clusters of the settings (main)",
        ),
        (
            "image: x, namespace: other",
            "kubernetes.namespace: `other` is not among those of cluster `main`",
        ),
        (
            "podSpec: {containers: [{name: a, image: b, securityContext: {privileged: true}}]}",
            "kubernetes.pod_spec.containers[0].securityContext.privileged: is not allowed",
        ),
    ] {
        lab.write(&HERE_AND_THERE.replace("image: IMAGE", config));
        let ran = lab.bench.flow(&[]).expect(2);
        ran.stderr_has(told).stderr_has(want).stderr_has("; nothing was run");
    }
    assert!(!lab.bench.exists("ran"));
    let listed = lab.bench.run(&["workflow", "list"]).expect(0);
    assert_eq!(listed.stdout.lines().count(), 1, "no run has begun: {}", listed.stdout);
    // A step that is not asked for needs no cluster.
    lab.bench.run(&["process", "flow.yaml", "--only", "here"]).expect(0);
    assert!(lab.bench.exists("ran"));
    lab.nothing_is_left();
}

#[test]
fn directories_of_the_node_need_leave() {
    let flow = "name: NAME\nsteps: [{name: far, command: x, executor: POD}]\n";
    let Some(lab) = Lab::new("bad::directories_of_the_node_need_leave", flow) else { return };
    let ran = by_kubeconfig(&lab, &lab.kubeconfig).expect(2);
    ran.stderr_has("kubernetes.pod_spec.volumes[0].hostPath: is not allowed");
    lab.nothing_is_left();
}
