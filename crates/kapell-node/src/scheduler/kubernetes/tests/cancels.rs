use k8s_openapi::api::core::v1::Pod;
use kapell_core::run::{Evidence, StopKind};
use serde_json::json;

use super::rig::{IMAGE, Lab, kubeconfig, shell, work};
use crate::scheduler::backend::{Backend as _, What};
use crate::scheduler::conformance::{Rig as _, attempt};

#[tokio::test]
async fn a_cancel_ends_work_in_every_phase_and_the_pod_is_gone() {
    let Some(kubeconfig) = kubeconfig("a_cancel_ends_work_in_every_phase_and_the_pod_is_gone")
    else {
        return;
    };
    let mut lab = Lab::new(&kubeconfig).await;
    let mut big = shell("true");
    big["resources"] = json!({"requests": {"memory": "900Gi"}});
    let absent = json!({"image": "localhost:1/none:1"});
    let init = json!({"pod_spec": {
        "terminationGracePeriodSeconds": 1,
        "initContainers": [{"name": "first", "image": IMAGE, "command": ["sleep", "600"]}],
        "containers": [{"name": "main", "image": IMAGE, "command": ["true"]}],
    }});
    for kind in [StopKind::Graceful, StopKind::AtOnce] {
        let created = attempt("created", kind as u32);
        lab.backend.launch(&work(&created, &shell("sleep 600"))).await.unwrap();
        lab.backend.stop(&created, "", kind).await.unwrap();
        for (job, payload) in [("big", &big), ("absent", &absent)] {
            let one = attempt(job, kind as u32);
            lab.backend.launch(&work(&one, payload)).await.unwrap();
            while !matches!(lab.next().await, What::Hindered { .. }) {}
            lab.backend.stop(&one, "", kind).await.unwrap();
        }
        let one = attempt("init", kind as u32);
        lab.backend.launch(&work(&one, &init)).await.unwrap();
        lab.pod_that("the first container runs", is_in_init).await;
        lab.backend.stop(&one, "", kind).await.unwrap();
        assert_eq!(lab.left().await.1, 0, "no pod is left");
        let runs = attempt("runs", kind as u32);
        lab.backend.launch(&lab.patient(&runs)).await.unwrap();
        while !matches!(lab.next().await, What::Started { .. }) {}
        lab.backend.stop(&runs, "", kind).await.unwrap();
        assert!(!lab.is_under_way(&runs));
        let evidence = lab.backend.find(&runs, "").await;
        let Evidence::Ended(end) = evidence else { panic!("{evidence:?}") };
        assert_eq!(end.failure.as_deref(), Some("stopped"));
        assert_eq!(lab.left().await.1, 0, "no pod is left");
        for attempt in lab.backend.known().await.unwrap() {
            lab.backend.release(&attempt).await;
        }
    }
    lab.clear().await;
}

fn is_in_init(pod: &Pod) -> bool {
    let before = pod.status.as_ref().and_then(|status| status.init_container_statuses.as_ref());
    let mut states = before.into_iter().flatten().filter_map(|it| it.state.as_ref());
    states.any(|state| state.running.is_some())
}

#[tokio::test]
async fn a_cancel_of_a_pod_that_is_ending_already_waits_until_it_is_gone() {
    let test = "a_cancel_of_a_pod_that_is_ending_already_waits_until_it_is_gone";
    let Some(kubeconfig) = kubeconfig(test) else { return };
    let mut lab = Lab::new(&kubeconfig).await;
    for kind in [StopKind::Graceful, StopKind::AtOnce] {
        let one = attempt("ending", kind as u32);
        lab.backend.launch(&lab.stubborn(&one)).await.unwrap();
        while !matches!(lab.next().await, What::Started { .. }) {}
        lab.start(&one).await;
        lab.delete_pod().await;
        lab.pod_that("it is ending", |pod| pod.metadata.deletion_timestamp.is_some()).await;
        assert!(lab.is_under_way(&one), "it does not listen");
        lab.backend.stop(&one, "", kind).await.unwrap();
        assert!(!lab.is_under_way(&one));
        assert_eq!(lab.left().await.1, 0, "no pod is left");
        let evidence = lab.backend.find(&one, "").await;
        let Evidence::Ended(end) = evidence else { panic!("{evidence:?}") };
        assert_eq!(end.failure.as_deref(), Some("stopped"));
        assert_eq!(lab.launches(&one), 1);
        lab.backend.release(&one).await;
    }
    lab.clear().await;
}
