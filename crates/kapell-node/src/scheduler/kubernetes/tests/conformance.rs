use kapell_core::run::Evidence;

use super::rig::{Lab, kubeconfig, shell, work};
use crate::scheduler::backend::Backend as _;
use crate::scheduler::conformance::{Rig as _, attempt, conforms};

#[tokio::test]
async fn jobs_of_kubernetes_do_what_every_backend_does() {
    let Some(kubeconfig) = kubeconfig("jobs_of_kubernetes_do_what_every_backend_does") else {
        return;
    };
    conforms(async || Lab::new(&kubeconfig).await).await;
}

#[tokio::test]
async fn who_comes_next_finds_the_jobs_of_the_one_before_and_launches_none_twice() {
    let name = "who_comes_next_finds_the_jobs_of_the_one_before_and_launches_none_twice";
    let Some(kubeconfig) = kubeconfig(name) else { return };
    let one = attempt("found", 0);
    let mut lab = Lab::new(&kubeconfig).await;
    lab.backend.launch(&lab.patient(&one)).await.unwrap();
    lab.starts().await;
    lab.start(&one).await;
    assert!(lab.is_under_way(&one));
    let mut lab = lab.reopen().await;
    assert!(lab.is_under_way(&one), "it goes on without us");
    assert!(matches!(lab.backend.find(&one, "").await, Evidence::Running { .. }));
    assert_eq!(lab.backend.find(&attempt("never", 0), "").await, Evidence::Absent);
    // Whoever does not ask first finds the Job by its name.
    lab.backend.launch(&lab.patient(&one)).await.unwrap();
    lab.end(&one, 0).await;
    assert_eq!(lab.ends().await.failure, None);
    assert_eq!((lab.launches(&one), lab.left().await), (1, (1, 1)));
    lab.clear().await;
}

#[tokio::test]
async fn a_stopped_attempt_is_known_to_who_comes_next_until_it_is_released() {
    let name = "a_stopped_attempt_is_known_to_who_comes_next_until_it_is_released";
    let Some(kubeconfig) = kubeconfig(name) else { return };
    let one = attempt("stopped", 0);
    let mut lab = Lab::new(&kubeconfig).await;
    lab.backend.launch(&lab.patient(&one)).await.unwrap();
    lab.starts().await;
    lab.backend.stop(&one, "", kapell_core::run::StopKind::Graceful).await.unwrap();
    let mut lab = lab.reopen().await;
    let end = match lab.backend.find(&one, "").await {
        Evidence::Ended(end) => end,
        // The cluster notes that it has stopped after the pod is gone.
        Evidence::Launched => lab.ends().await,
        other @ (Evidence::Absent | Evidence::Unknown { .. } | Evidence::Running { .. }) => {
            panic!("{other:?}")
        }
    };
    assert_eq!(end.failure.as_deref(), Some("stopped"));
    lab.clear().await;
}

#[tokio::test]
async fn a_job_of_somebody_else_by_the_same_name_is_not_taken_for_ours() {
    let name = "a_job_of_somebody_else_by_the_same_name_is_not_taken_for_ours";
    let Some(kubeconfig) = kubeconfig(name) else { return };
    let one = attempt("theirs", 0);
    let lab = Lab::new(&kubeconfig).await;
    let job = serde_json::json!({
        "metadata": {"name": lab.job_name(&one)},
        "spec": {"suspend": true, "template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "a", "image": super::rig::IMAGE}],
        }}},
    });
    let job = serde_json::from_value(job).unwrap();
    lab.jobs().create(&kube::api::PostParams::default(), &job).await.unwrap();
    let refused = lab.backend.launch(&work(&one, &shell("true"))).await.unwrap_err();
    assert!(refused.ends_with("is there and is the work of somebody else"), "{refused}");
    assert_eq!(lab.backend.known().await.unwrap(), []);
    let name = lab.job_name(&one);
    assert!(lab.jobs().get_opt(&name).await.unwrap().is_some(), "it is left alone");
    lab.jobs().delete(&name, &kube::api::DeleteParams::background()).await.unwrap();
    lab.clear().await;
}
