//! What happens to the node: nobody else may have work there.

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{EvictParams, Patch, PatchParams};
use serde_json::{Value as Json, json};

use super::rig::{Lab, PATIENCE, kubeconfig};
use crate::scheduler::backend::{Attempt, Backend as _, What};
use crate::scheduler::conformance::{Rig as _, attempt};
use crate::testing::eventually;

const NODE: &str = "127.0.0.1";

async fn change_node(lab: &Lab, spec: Json) {
    let nodes: Api<Node> = Api::all(lab.admin.clone());
    let patch = Patch::Merge(json!({"spec": spec}));
    nodes.patch(NODE, &PatchParams::default(), &patch).await.unwrap();
}

/// The taint of a node that takes no work is its controller's, which removes it in its own time.
async fn takes_work_again(lab: &Lab) {
    let nodes: Api<Node> = Api::all(lab.admin.clone());
    let is_free = || async {
        let node = nodes.get(NODE).await.unwrap();
        node.spec.is_some_and(|spec| spec.taints.unwrap_or_default().is_empty())
    };
    eventually("the node to be without taints", PATIENCE, is_free).await;
}

async fn is_at_work(lab: &mut Lab, attempt: &Attempt) {
    lab.backend.launch(&lab.patient(attempt)).await.unwrap();
    // The scheduler of the cluster may know for a moment longer of a taint that is gone.
    let mut news = lab.next().await;
    while matches!(news, What::Hindered { .. }) {
        news = lab.next().await;
    }
    assert!(matches!(news, What::Started { .. }), "{news:?}");
    lab.start(attempt).await;
}

#[tokio::test]
async fn work_on_a_node_that_is_drained_ends_with_that_as_its_reason() {
    let name = "work_on_a_node_that_is_drained_ends_with_that_as_its_reason";
    let Some(kubeconfig) = kubeconfig(name) else { return };
    let mut lab = Lab::new(&kubeconfig).await;
    // As `kubectl drain` does it.
    let evicted = attempt("evicted", 0);
    is_at_work(&mut lab, &evicted).await;
    let pod = lab.pod().await.unwrap();
    change_node(&lab, json!({"unschedulable": true})).await;
    lab.pods().evict(&pod, &EvictParams::default()).await.unwrap();
    let end = lab.ends().await;
    change_node(&lab, json!({"unschedulable": null})).await;
    takes_work_again(&lab).await;
    let why = end.failure.unwrap_or_default();
    assert!(why.starts_with("evicted"), "{why}");
    assert!(!lab.is_under_way(&evicted));
    // As the cluster does it when something is wrong with a node.
    let chased = attempt("chased", 0);
    is_at_work(&mut lab, &chased).await;
    let taint = json!({"key": "kapell/test", "value": "", "effect": "NoExecute"});
    change_node(&lab, json!({"taints": [taint]})).await;
    let end = lab.ends().await;
    change_node(&lab, json!({"taints": null})).await;
    let why = end.failure.unwrap_or_default();
    assert!(why.starts_with("node lost"), "{why}");
    assert!(!lab.is_under_way(&chased));
    assert_eq!((lab.launches(&evicted), lab.launches(&chased)), (1, 1));
    lab.clear().await;
}
