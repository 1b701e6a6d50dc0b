//! What holds for runs wherever they are, on Kubernetes: retries, limits, constraints.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::scene::{PATIENT, Scene};
use crate::bench::{LIMIT, try_eventually};
use crate::jobs::receiver::{Receiver, Reply};

/// When each step of a run to this state was, in milliseconds.
fn steps_to(run: &Value, state: &str) -> Vec<i64> {
    let steps = run["timeline"].as_array().into_iter().flatten();
    let steps = steps.filter(|step| step["to"] == state);
    steps.filter_map(|step| step["at"].as_i64()).collect()
}

#[test]
fn retries_on_kubernetes_wait_longer_each_time_and_have_one_pod_each() {
    let name = "retries_on_kubernetes_wait_longer_each_time_and_have_one_pod_each";
    let Some(scene) = Scene::new(&format!("jobs::kubernetes::limits::{name}")) else { return };
    let retry =
        json!({"retry": {"max_retries": 2, "initial_delay": "1s", "backoff_multiplier": 3}});
    scene.apply_with("again", "exit $((KAPELL_ATTEMPT < 2))", &retry);
    let id = scene.trigger("again");
    let run = scene.ends(&id);
    assert_eq!((&run["state"], &run["attempt"]), (&json!("Completed"), &json!(2)), "{run:#}");
    assert_eq!(scene.cluster.pods_of(&id), BTreeMap::from([(0, 1), (1, 1), (2, 1)]));
    let (failed, began) = (steps_to(&run, "Retrying"), steps_to(&run, "ContainerCreating"));
    assert_eq!((failed.len(), began.len()), (2, 3), "{run:#}");
    let waited = [began[1] - failed[0], began[2] - failed[1]];
    assert!((1_000..3_000).contains(&waited[0]) && waited[1] >= 3_000, "{waited:?}");
    scene.cluster.has_nothing_of(&id);
}

/// Waits until two of these are at work; which they are, and how many of all had pods as the cluster counted them.
#[track_caller]
fn two_at_work(scene: &Scene, runs: &[String]) -> (Vec<String>, usize) {
    let found = try_eventually(LIMIT, || {
        let all = scene.site.get("/v1/runs?limit=100");
        let is_at_work = |run: &&Value| run["state"] == "Running";
        let at_work = all.as_array().into_iter().flatten().filter(is_at_work);
        let ids: Vec<String> =
            at_work.filter_map(|run| run["run_id"].as_str().map(str::to_owned)).collect();
        (ids.len() == 2).then_some(ids)
    });
    let pods = scene.cluster.pods_of_all();
    let had = runs.iter().filter_map(|run| pods.get(run)).flat_map(BTreeMap::values).sum();
    (found.unwrap_or_else(|| panic!("{:#}", scene.site.get("/v1/runs?limit=100"))), had)
}

#[test]
fn no_more_pods_run_at_once_than_the_job_allows() {
    let name = "no_more_pods_run_at_once_than_the_job_allows";
    let Some(scene) = Scene::new(&format!("jobs::kubernetes::limits::{name}")) else { return };
    let limit = json!({"max_concurrent_runs": 2, "overlap": "queue"});
    scene.apply_with("two", PATIENT, &limit);
    let runs: Vec<String> = (0..4).map(|_| scene.trigger("two")).collect();
    let (first, had) = two_at_work(&scene, &runs);
    assert_eq!(had, 2, "the others wait for their turn");
    scene.cancel(&first[0]);
    scene.ends_as(&first[0], "Cancelled");
    let (then, had) = two_at_work(&scene, &runs);
    assert!(then.contains(&first[1]) && had == 3, "{then:?} {had}");
    for run in runs.iter().rev().filter(|run| **run != first[0]) {
        scene.cancel(run);
    }
    for run in &runs {
        assert_eq!(scene.ends(run)["state"], "Cancelled");
        scene.cluster.has_nothing_of(run);
    }
}

#[test]
fn several_constraints_with_actions_hold_in_one_run_on_kubernetes() {
    let name = "several_constraints_with_actions_hold_in_one_run_on_kubernetes";
    let Some(scene) = Scene::new(&format!("jobs::kubernetes::limits::{name}")) else { return };
    let receiver = Receiver::start(|path, before| match path {
        // What the first attempt did is not good enough.
        "/after" if before == 0 => Reply::Status(500),
        _ => Reply::Status(200),
    });
    let hook = |path: &str| json!({"url": receiver.url(path), "max_attempts": 1});
    let all_day = json!({"start": "00:00", "end": "24:00"});
    let late = json!([{"metric": "late"}, {"webhook": {"config": hook("/late")}}]);
    let constraints = json!({
        "retry": {"max_retries": 1, "initial_delay": "100ms"},
        "constraints": [
            {"preRunHook": {"config": hook("/before"), "onMet": [{"metric": "asked"}]}},
            {"time_window": {"config": all_day, "onMet": [{"webhook": {"config": hook("/goes")}}]}},
            {"maxExpectedRunTime": {"config": "1s", "onViolation": late}},
            {"postRunHook": {"config": hook("/after"), "onViolation": ["retry"]}},
        ],
    });
    scene.apply_with("checked", "sleep 2.5", &constraints);
    let id = scene.trigger("checked");
    let run = scene.ends(&id);
    assert_eq!((&run["state"], &run["attempt"]), (&json!("Completed"), &json!(1)), "{run:#}");
    assert_eq!(scene.cluster.pods_of(&id), BTreeMap::from([(0, 1), (1, 1)]));
    for path in ["/before", "/goes", "/late", "/after"] {
        let heard = try_eventually(LIMIT, || (receiver.heard(path).len() == 2).then_some(()));
        assert!(heard.is_some(), "{path}: {:?}", receiver.heard(path));
    }
    let figures = scene.site.ask("GET", "/metrics", None).body;
    for metric in ["asked", "late"] {
        let line = format!("kapell_job_counter_total{{job=\"checked\",metric=\"{metric}\"}} 2");
        assert!(figures.contains(&line), "no `{line}` in {figures}");
    }
    scene.cluster.has_nothing_of(&id);
}
