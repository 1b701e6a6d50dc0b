use std::fs;
use std::path::Path;
use std::time::Duration;

use k8s_openapi::api::core::v1::ServiceAccount;
use kapell_core::kubernetes::{Access, Cluster};
use kapell_core::run::{START_TIMEOUT, StopKind};
use kube::Api;
use kube::api::PostParams;
use serde_json::json;

use super::rig::{Lab, NAMESPACE, cluster, kubeconfig, shell, work};
use crate::scheduler::backend::Backend as _;
use crate::scheduler::conformance::attempt;

async fn refused(lab: &Lab, payload: &serde_json::Value) -> String {
    let one = attempt("bad", 0);
    let why = lab.backend.launch(&work(&one, payload)).await.unwrap_err();
    lab.backend.stop(&one, "", StopKind::AtOnce).await.unwrap();
    why
}

#[tokio::test]
async fn bad_input_is_refused_with_its_field_and_nothing_is_left_behind() {
    let Some(kubeconfig) =
        kubeconfig("bad_input_is_refused_with_its_field_and_nothing_is_left_behind")
    else {
        return;
    };
    let mut settings = cluster(&kubeconfig);
    settings.policy.host_path = false;
    settings.namespaces.push("no-such-namespace".to_owned());
    let lab = Lab::with(&kubeconfig, settings).await;
    let container = |more: serde_json::Value| {
        let mut container = json!({"name": "main", "image": super::rig::IMAGE});
        container.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"pod_spec": {"containers": [container]}})
    };
    let cases = [
        (
            json!({"pod_spec": {"containers": [{"name": "a"}]}}),
            "kubernetes.pod_spec.containers[0].image: must be there",
        ),
        (
            container(json!({"securityContext": {"privileged": true}})),
            "kubernetes.pod_spec.containers[0].securityContext.privileged: is not allowed",
        ),
        (
            json!({"image": "a", "cluster": "other"}),
            "kubernetes.cluster: `other` is not among the clusters of the settings (main)",
        ),
        (
            json!({"image": "a", "namespace": "other"}),
            "kubernetes.namespace: `other` is not among those of cluster `main`",
        ),
    ];
    for (payload, want) in cases {
        let why = refused(&lab, &payload).await;
        assert!(why.starts_with(want), "{why}");
    }
    // What only the cluster can judge is told with its field too.
    let why = refused(&lab, &container(json!({"imagePullPolicy": "Sometimes"}))).await;
    assert!(
        why.contains("refused by the cluster: kubernetes.pod_spec.containers[0].imagePullPolicy: "),
        "{why}"
    );
    let why = refused(&lab, &container(json!({"quiteNew": 1}))).await;
    assert!(why.contains("unknown field \"kubernetes.pod_spec.containers[0].quiteNew\""), "{why}");
    let mut elsewhere = shell("true");
    elsewhere["namespace"] = "no-such-namespace".into();
    let why = refused(&lab, &elsewhere).await;
    assert!(why.contains("namespaces \"no-such-namespace\" not found"), "{why}");
    assert_eq!(lab.backend.known().await.unwrap(), []);
    assert_eq!(lab.left().await, (0, 0));
    lab.clear().await;
}

#[tokio::test]
async fn what_is_forbidden_is_told_with_verb_and_resource() {
    let Some(kubeconfig) = kubeconfig("what_is_forbidden_is_told_with_verb_and_resource") else {
        return;
    };
    let lab = Lab::new(&kubeconfig).await;
    let accounts: Api<ServiceAccount> = Api::namespaced(lab.admin.clone(), NAMESPACE);
    let account = serde_json::from_value(json!({"metadata": {"name": lab.owner}})).unwrap();
    accounts.create(&PostParams::default(), &account).await.unwrap();
    let asked = serde_json::from_value(
        json!({"metadata": {}, "spec": {"audiences": [], "expirationSeconds": 600}}),
    );
    let token = accounts
        .create_token_request(&lab.owner, &PostParams::default(), &asked.unwrap())
        .await
        .unwrap();
    let token = token.status.unwrap().token;
    let (_dir, poor) = other_user(&kubeconfig, &json!({"token": token}));
    let other = Lab::with(&kubeconfig, poor).await;
    let why = other.backend.launch(&work(&attempt("poor", 0), &shell("true"))).await.unwrap_err();
    assert!(
        why.contains(
            "cannot create resource \"jobs\" in API group \"batch\" in the namespace \"default\""
        ),
        "{why}"
    );
    let why = other.backend.known().await.unwrap_err();
    assert!(why.contains("cannot list resource"), "{why}");
    other.backend.close().await;
    let (_dir, nobody) = other_user(&kubeconfig, &json!({"token": "nonsense"}));
    let other = Lab::with(&kubeconfig, nobody).await;
    let why = other.backend.launch(&work(&attempt("nobody", 0), &shell("true"))).await.unwrap_err();
    assert!(why.contains("the certificate or token of its access may have expired"), "{why}");
    other.backend.close().await;
    accounts.delete(&lab.owner, &kube::api::DeleteParams::default()).await.unwrap();
    lab.clear().await;
}

/// The same cluster as somebody else.
fn other_user(kubeconfig: &Path, user: &serde_json::Value) -> (tempfile::TempDir, Cluster) {
    let mut config =
        serde_json::to_value(kube::config::Kubeconfig::read_from(kubeconfig).unwrap()).unwrap();
    config["users"][0]["user"] = user.clone();
    written(&config)
}

fn written(config: &serde_json::Value) -> (tempfile::TempDir, Cluster) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("kubeconfig");
    fs::write(&path, config.to_string()).unwrap();
    let settings = cluster(&path);
    (dir, settings)
}

#[tokio::test]
async fn a_cluster_that_cannot_be_reached_fails_the_launch_and_is_not_taken_for_one_without_work() {
    let name =
        "a_cluster_that_cannot_be_reached_fails_the_launch_and_is_not_taken_for_one_without_work";
    let Some(kubeconfig) = kubeconfig(name) else { return };
    let mut config =
        serde_json::to_value(kube::config::Kubeconfig::read_from(&kubeconfig).unwrap()).unwrap();
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1".into();
    let (_dir, mut settings) = written(&config);
    settings.pace.patience = Duration::from_secs(1);
    let lab = Lab::with(&kubeconfig, settings).await;
    let one = attempt("away", 0);
    let why = lab.backend.launch(&work(&one, &shell("true"))).await.unwrap_err();
    assert!(why.contains("the cluster cannot be reached"), "{why}");
    let found = tokio::time::timeout(Duration::from_secs(3), lab.backend.find(&one, "")).await;
    assert!(found.is_err_and(|_| true), "nobody can say");
    assert!(lab.backend.known().await.unwrap_err().contains("cannot be reached"));
    lab.backend.close().await;
}

#[tokio::test]
async fn a_certificate_that_has_expired_is_told_as_such() {
    let Some(kubeconfig) = kubeconfig("a_certificate_that_has_expired_is_told_as_such") else {
        return;
    };
    let (address, ca, _server) = super::expired::server().await;
    let mut config =
        serde_json::to_value(kube::config::Kubeconfig::read_from(&kubeconfig).unwrap()).unwrap();
    let cluster = &mut config["clusters"][0]["cluster"];
    cluster["server"] = format!("https://{address}").into();
    cluster["certificate-authority-data"] = ca.into();
    let (_dir, settings) = written(&config);
    let lab = Lab::with(&kubeconfig, settings).await;
    let why = lab.backend.launch(&work(&attempt("old", 0), &shell("true"))).await.unwrap_err();
    assert!(why.contains("no secure connection to the cluster") && why.contains("xpired"), "{why}");
    lab.backend.close().await;
}

#[tokio::test]
async fn a_kubeconfig_that_is_not_there_is_told_with_its_path() {
    let missing = Cluster::new(Access::Kubeconfig { path: "/no/such/file".into(), context: None });
    let clusters = kapell_core::kubernetes::Clusters {
        first: "main".to_owned(),
        all: [("main".to_owned(), missing)].into_iter().collect(),
    };
    let (newsroom, _news) = tokio::sync::mpsc::unbounded_channel();
    let parts = crate::scheduler::kubernetes::Parts {
        clusters,
        owner: "ours".to_owned(),
        start_timeout: START_TIMEOUT,
        newsroom,
        clock: std::sync::Arc::new(crate::system::SystemClock),
        logs: None,
    };
    let backend = crate::scheduler::kubernetes::KubernetesBackend::open(parts).await;
    let one = work(&attempt("unread", 0), &shell("true"));
    let why = backend.launch(&one).await.unwrap_err();
    assert!(why.starts_with("cluster `main` cannot be used: `/no/such/file`"), "{why}");
    let place = backend.place_of(&one.definition);
    assert_eq!(backend.stop(&one.attempt, &place, StopKind::AtOnce).await, Ok(()));
    tokio::time::pause();
    assert_eq!(backend.known().await, Err(why), "what it has nobody can say");
}
