use kube::api::DeleteParams;
use serde_json::{Value as Json, json};

use super::rig::{IMAGE, Lab, kubeconfig, shell, work, work_of};
use crate::scheduler::backend::{Backend as _, What};
use crate::scheduler::conformance::{Rig as _, attempt};
use crate::testing::eventually;

const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

#[tokio::test]
async fn work_that_ends_well_leaves_its_log_and_nothing_in_the_cluster() {
    let Some(kubeconfig) =
        kubeconfig("work_that_ends_well_leaves_its_log_and_nothing_in_the_cluster")
    else {
        return;
    };
    let mut lab = Lab::new(&kubeconfig).await;
    let one = attempt("well", 0);
    let text = "echo $GREETING $KAPELL_RUN_ID $KAPELL_ATTEMPT; echo aside >&2";
    let mut payload = shell(text);
    payload["env"] = json!([{"name": "GREETING", "value": "hello"}]);
    lab.backend.launch(&work(&one, &payload)).await.unwrap();
    lab.starts().await;
    let end = lab.ends().await;
    assert_eq!((end.exit_code, end.failure), (Some(0), None));
    let calls = lab.backend.calls(&one);
    assert!((1..=3).contains(&calls), "{calls}");
    lab.backend.release(&one).await;
    // Its node reads the two streams apart: which of two lines came first at the same moment nobody knows.
    let output = lab.output(&one);
    let mut lines: Vec<&str> = output.split_inclusive('\n').collect();
    lines.sort_unstable();
    assert_eq!(lines, ["aside\n", "hello well:1763290800 0\n"]);
    assert_eq!(lab.backend.known().await.unwrap(), []);
    lab.clear().await;
}

#[tokio::test]
async fn a_code_and_its_reason_reach_the_run() {
    let Some(kubeconfig) = kubeconfig("a_code_and_its_reason_reach_the_run") else { return };
    let mut lab = Lab::new(&kubeconfig).await;
    lab.backend.launch(&work(&attempt("three", 0), &shell("exit 3"))).await.unwrap();
    let end = lab.ends().await;
    assert_eq!((end.exit_code, end.failure.as_deref()), (Some(3), Some("Exited with status 3")));
    let mut hungry = shell("x=0123456789; while true; do x=$x$x; done");
    hungry["resources"] = json!({"limits": {"memory": "16Mi"}});
    lab.backend.launch(&work(&attempt("hungry", 0), &hungry)).await.unwrap();
    let end = lab.ends().await;
    assert_eq!(end.exit_code, Some(137));
    let why = end.failure.unwrap();
    assert!(why.starts_with("out of memory: container `main`"), "{why}");
    lab.clear().await;
}

#[tokio::test]
async fn the_right_one_of_several_containers_counts_and_all_are_in_the_log() {
    let Some(kubeconfig) =
        kubeconfig("the_right_one_of_several_containers_counts_and_all_are_in_the_log")
    else {
        return;
    };
    let mut lab = Lab::new(&kubeconfig).await;
    let container = |name: &str, text: &str| json!({"name": name, "image": IMAGE, "command": ["sh", "-c", text]});
    let several = attempt("several", 0);
    let spec = json!({"pod_spec": {
        "initContainers": [container("first", "echo begin")],
        "containers": [container("main", "echo middle; exit 4"), container("other", "echo beside; exit 0")],
    }});
    lab.backend.launch(&work(&several, &spec)).await.unwrap();
    assert_eq!(lab.ends().await.exit_code, Some(4));
    lab.backend.release(&several).await;
    let output = lab.output(&several);
    let mut lines: Vec<&str> = output.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["[first] begin", "[main] middle", "[other] beside"]);
    let early = json!({"pod_spec": {
        "initContainers": [container("first", "exit 7")], "containers": [container("main", "true")],
    }});
    lab.backend.launch(&work(&attempt("early", 0), &early)).await.unwrap();
    let end = lab.ends().await;
    assert_eq!(end.exit_code, Some(7));
    assert_eq!(
        end.failure.as_deref(),
        Some("init container failed: `first`: Exited with status 7")
    );
    lab.clear().await;
}

#[tokio::test]
async fn a_deadline_is_told_as_such() {
    let Some(kubeconfig) = kubeconfig("a_deadline_is_told_as_such") else { return };
    let mut lab = Lab::new(&kubeconfig).await;
    let one = attempt("deadline", 0);
    lab.backend.launch(&lab.patient(&one)).await.unwrap();
    lab.starts().await;
    // What is a minute away is brought here.
    let sooner = json!({"spec": {"activeDeadlineSeconds": 1}});
    let patch = kube::api::Patch::Merge(&sooner);
    lab.jobs()
        .patch(&lab.job_name(&one), &kube::api::PatchParams::default(), &patch)
        .await
        .unwrap();
    let why = lab.ends().await.failure.unwrap();
    assert!(why.starts_with("deadline exceeded: "), "{why}");
    lab.clear().await;
}

#[tokio::test]
async fn the_deadline_of_a_job_is_known_to_the_cluster() {
    let Some(kubeconfig) = kubeconfig("the_deadline_of_a_job_is_known_to_the_cluster") else {
        return;
    };
    let mut lab = Lab::new(&kubeconfig).await;
    let one = attempt("bounded", 0);
    let more =
        json!({"kubernetes": shell("true"), "max_allowed_run_time": "40s", "start_timeout": "20s"});
    lab.backend.launch(&work_of(&one, &more)).await.unwrap();
    let job = lab.jobs().get(&lab.job_name(&one)).await.unwrap();
    assert_eq!(job.spec.unwrap().active_deadline_seconds, Some(120));
    lab.ends().await;
    lab.clear().await;
}

#[tokio::test]
async fn what_keeps_a_pod_from_starting_is_told() {
    let Some(kubeconfig) = kubeconfig("what_keeps_a_pod_from_starting_is_told") else { return };
    let mut lab = Lab::new(&kubeconfig).await;
    let mut big = shell("true");
    big["resources"] = json!({"requests": {"memory": "900Gi"}});
    let absent = json!({"image": "localhost:1/none:1"});
    let mut secret = shell("true");
    secret["env_from_secret"] = json!(["no-such-secret"]);
    let cases: [(&str, Json, &str); 3] = [
        ("big", big, "unschedulable: "),
        ("absent", absent, "image cannot be pulled: `localhost:1/none:1` (ErrImagePull)"),
        ("secret", secret, "cannot be created: container `main` (CreateContainerConfigError): "),
    ];
    for (job, payload, want) in cases {
        lab.backend.launch(&work(&attempt(job, 0), &payload)).await.unwrap();
        let news = lab.next().await;
        let What::Hindered { why } = news else { panic!("{job}: {news:?}") };
        assert!(why.starts_with(want), "{why}");
    }
    let never = lab.unstartable(&attempt("never", 0));
    lab.backend.launch(&never).await.unwrap();
    loop {
        match lab.next().await {
            What::Hindered { .. } => {}
            What::Unstartable { why } => {
                assert!(
                    why.starts_with(
                        "image cannot be pulled: `localhost/none:1` (ErrImageNeverPull)"
                    ),
                    "{why}"
                );
                break;
            }
            other @ (What::Started { .. } | What::Ended(_)) => panic!("{other:?}"),
        }
    }
    let program = json!({"image": IMAGE, "command": ["/no/such/program"]});
    lab.backend.launch(&work(&attempt("program", 0), &program)).await.unwrap();
    loop {
        match lab.next().await {
            What::Hindered { .. } => {}
            What::Unstartable { why } => {
                assert!(why.starts_with("cannot run: container `main`: "), "{why}");
                break;
            }
            other @ (What::Started { .. } | What::Ended(_)) => panic!("{other:?}"),
        }
    }
    lab.clear().await;
}

#[tokio::test]
async fn what_others_delete_is_told_as_such() {
    let Some(kubeconfig) = kubeconfig("what_others_delete_is_told_as_such") else { return };
    let mut lab = Lab::new(&kubeconfig).await;
    let one = attempt("pod", 0);
    lab.backend.launch(&lab.patient(&one)).await.unwrap();
    lab.starts().await;
    lab.delete_pod().await;
    let end = lab.ends().await;
    assert_eq!(end.failure.as_deref(), Some("pod deleted: by somebody else"));
    assert!(!lab.is_under_way(&one));
    lab.backend.release(&one).await;
    let nothing = || async { lab.left().await == (0, 0) };
    eventually("nothing is left", PATIENCE, nothing).await;
    for (job, how) in
        [("foreground", DeleteParams::foreground()), ("background", DeleteParams::background())]
    {
        let one = attempt(job, 0);
        lab.backend.launch(&lab.patient(&one)).await.unwrap();
        lab.starts().await;
        lab.jobs().delete(&lab.job_name(&one), &how).await.unwrap();
        let end = lab.ends().await;
        assert_eq!(end.failure.as_deref(), Some("Job deleted: by somebody else"), "{job}");
        assert!(!lab.is_under_way(&one));
        lab.backend.release(&one).await;
    }
    lab.clear().await;
}

#[tokio::test]
async fn a_log_is_followed_while_the_work_runs() {
    let Some(kubeconfig) = kubeconfig("a_log_is_followed_while_the_work_runs") else { return };
    let mut lab = Lab::new(&kubeconfig).await;
    let one = attempt("talks", 0);
    lab.backend.launch(&lab.patient_after(&one, "echo early")).await.unwrap();
    lab.starts().await;
    let heard = || async { lab.output(&one) == "early\n" };
    eventually("it is heard while it runs", PATIENCE, heard).await;
    assert!(lab.is_under_way(&one));
    lab.end(&one, 0).await;
    lab.ends().await;
    lab.clear().await;
}

#[tokio::test]
async fn a_log_that_is_too_long_is_cut_with_a_mark_while_the_work_goes_on() {
    let test = "a_log_that_is_too_long_is_cut_with_a_mark_while_the_work_goes_on";
    let Some(kubeconfig) = kubeconfig(test) else { return };
    let mut lab = Lab::new(&kubeconfig).await;
    let one = attempt("long", 0);
    let line = "0123456789".repeat(20);
    let much = format!("yes {line} | head -c 40000000");
    lab.backend.launch(&lab.patient_after(&one, &much)).await.unwrap();
    lab.starts().await;
    let mark = "the rest was cut: a log of a run keeps 16 MiB\n";
    let is_cut = || async { lab.output(&one).ends_with(mark) };
    eventually("it is cut", PATIENCE, is_cut).await;
    lab.start(&one).await;
    assert!(lab.is_under_way(&one));
    lab.end(&one, 0).await;
    lab.ends().await;
    lab.backend.release(&one).await;
    let output = lab.output(&one);
    assert_eq!(output.matches(mark).count(), 1);
    let kept = output.strip_suffix(mark).unwrap();
    assert!(kept.len() > 15_000_000 && kept.len() < 16 << 20, "{}", kept.len());
    assert!(kept.lines().all(|it| it == line), "whole lines, each as it was");
    lab.clear().await;
}

#[tokio::test]
async fn a_container_that_is_over_costs_one_call_however_long_the_others_run() {
    let test = "a_container_that_is_over_costs_one_call_however_long_the_others_run";
    let Some(kubeconfig) = kubeconfig(test) else { return };
    let mut lab = Lab::new(&kubeconfig).await;
    let one = attempt("quiet", 0);
    let container = |name: &str, text: &str| json!({"name": name, "image": IMAGE, "command": ["sh", "-c", text]});
    // Longer than a log that has said nothing was left alone for.
    let spec = json!({"pod_spec": {
        "initContainers": [container("first", "true")],
        "containers": [container("main", "echo one; sleep 12; echo two")],
    }});
    lab.backend.launch(&work(&one, &spec)).await.unwrap();
    lab.ends().await;
    let heard = || async { lab.output(&one) == "[main] one\n[main] two\n" };
    eventually("all of it is kept", PATIENCE, heard).await;
    // It was created; the first container was read once, and the other one while it ran and at its end.
    let calls = lab.backend.calls(&one);
    assert!((1..=4).contains(&calls), "{calls}");
    lab.clear().await;
}
