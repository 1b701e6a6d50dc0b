//! Clusters by their names, most of which do not take what they are asked for: each of its own accord, and none in the way of others.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::IMAGE;
use super::cluster::{Cluster, NAMESPACE};
use super::scene::{Scene, job};

/// Milliseconds from the creation of a run to its outcome.
const SOON: i64 = 15_000;
const MISSING: &str = "no-such-namespace";

/// A host that knows the cluster by several names and accesses, and some clusters that are not there.
fn scene(cluster: Cluster) -> Scene {
    let closed = cluster.server();
    let bench = cluster.bench_with(|kubeconfig| kubeconfig);
    let kubeconfig = std::fs::read_to_string(bench.path("kubeconfig")).expect("it was written");
    bench.write("away.kubeconfig", kubeconfig.replace(&closed, "127.0.0.1:1"));
    let beside = |name: &str| cluster.beside(name).display().to_string();
    let clusters = [
        format!("main: {{kubeconfig: kubeconfig, namespaces: [{NAMESPACE}, {MISSING}]}}"),
        format!("stranger: {{kubeconfig: '{}'}}", beside("stranger.kubeconfig")),
        format!("expired: {{kubeconfig: '{}'}}", beside("expired.kubeconfig")),
        "away: {kubeconfig: away.kubeconfig, patience: 2s}".to_owned(),
        "unread: {kubeconfig: none.kubeconfig}".to_owned(),
    ];
    bench.write("clusters.yaml", clusters.join("\n"));
    Scene::on(cluster, bench)
}

/// Jobs that come to nothing, and why.
fn cases() -> [(&'static str, Value, &'static str); 6] {
    let on = |cluster: &str| json!({"cluster": cluster, "image": IMAGE});
    let container = json!({"name": "main", "image": IMAGE, "imagePullPolicy": "Sometimes"});
    [
        (
            "refused",
            json!({"pod_spec": {"containers": [container]}}),
            "refused by the cluster: kubernetes.pod_spec.containers[0].imagePullPolicy: ",
        ),
        (
            "nowhere",
            json!({"namespace": MISSING, "image": IMAGE}),
            "namespaces \"no-such-namespace\" not found",
        ),
        (
            "forbidden",
            on("stranger"),
            "User \"stranger\" cannot create resource \"jobs\" in API group \"batch\" in the namespace \"default\"",
        ),
        ("expired", on("expired"), "may have expired"),
        ("away", on("away"), "the cluster cannot be reached"),
        ("unread", on("unread"), "cluster `unread` cannot be used: "),
    ]
}

#[test]
fn runs_that_a_cluster_does_not_take_fail_soon_and_keep_nobody_waiting() {
    let name = "runs_that_a_cluster_does_not_take_fail_soon_and_keep_nobody_waiting";
    let Some(cluster) = Cluster::find(&format!("jobs::kubernetes::bad::{name}")) else { return };
    let mut scene = scene(cluster);
    let mut runs = Vec::new();
    for (id, kubernetes, want) in cases() {
        let retry = json!({"max_retries": 1, "initial_delay": "100ms", "on": ["launch"]});
        let job = json!({"job_id": id, "kubernetes": kubernetes, "retry": retry});
        scene.site.ask("POST", "/v1/jobs", Some(&job)).expect(201);
        runs.push((scene.trigger(id), want));
    }
    let well = job("well", "true", &json!({}));
    scene.site.ask("POST", "/v1/jobs", Some(&well)).expect(201);
    let well = scene.trigger("well");
    scene.ends_as(&well, "Completed");
    for (run, want) in runs {
        let ended = scene.ends(&run);
        // Nothing is in doubt, so each is tried once more.
        assert_eq!(
            (&ended["state"], &ended["attempt"]),
            (&json!("Failed"), &json!(1)),
            "{ended:#}"
        );
        let reason = ended["reason"].as_str().expect("text");
        assert!(reason.contains(want) && !reason.contains("; "), "{reason}");
        let moment = |key: &str| ended[key].as_i64().expect("a time");
        let took = moment("completed_at") - moment("created_at");
        assert!(took < SOON, "{took} ms: {ended:#}");
        assert_eq!(scene.cluster.pods_of(&run), BTreeMap::new(), "{ended:#}");
        scene.cluster.has_nothing_of(&run);
    }
    let told = scene.told();
    assert!(told.contains("none.kubeconfig"), "it was told at the start:\n{told}");
}
