//! What takes a whole cluster, or happens to one: nobody else may be at work there, so each waits for the others.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::json;

use super::kubernetes::scene::{PATIENT, Scene};
use crate::bench::{LIMIT, pause, try_eventually};
use crate::leadership::proxy::Mode;

/// For so long the API server does not move.
const STOPPED: Duration = Duration::from_secs(20);

fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn runs_outlive_an_api_server_that_does_not_move_for_twenty_seconds() {
    let name = "runs_outlive_an_api_server_that_does_not_move_for_twenty_seconds";
    let _alone = alone();
    let Some(scene) = Scene::new(&format!("jobs::alone_on_kubernetes::{name}")) else { return };
    scene.apply("ends", "sleep 3");
    scene.apply("cancelled", PATIENT);
    scene.apply("begins", "echo done");
    let (cancelled, ends) = (scene.runs("cancelled"), scene.runs("ends"));
    scene.cluster.signal_api_server(Signal::SIGSTOP);
    let begins = scene.trigger("begins");
    scene.cancel(&cancelled);
    pause(STOPPED);
    scene.cluster.signal_api_server(Signal::SIGCONT);
    scene.ends_as(&ends, "Completed");
    scene.ends_as(&begins, "Completed");
    scene.ends_as(&cancelled, "Cancelled");
}

#[test]
fn what_went_on_behind_a_watch_is_found_after_the_api_server_was_restarted() {
    let name = "what_went_on_behind_a_watch_is_found_after_the_api_server_was_restarted";
    let _alone = alone();
    let behind = Scene::behind_proxy(&format!("jobs::alone_on_kubernetes::{name}"));
    let Some((mut scene, proxy)) = behind else { return };
    scene.apply("ends", "sleep 3");
    scene.apply("deleted", PATIENT);
    scene.apply("begins", "echo done");
    let (deleted, ends) = (scene.runs("deleted"), scene.runs("ends"));
    proxy.set(Mode::Hang);
    for job in scene.cluster.jobs_of(&deleted) {
        scene.cluster.delete_job(&job);
    }
    scene.cluster.has_nothing_of(&deleted);
    // What the watches were about to say is lost, and a new API server does not know it any more.
    proxy.set(Mode::Cut);
    scene.cluster.restart_api_server();
    let begins = scene.trigger("begins");
    // It answers again.
    scene.cluster.has_nothing_of(&deleted);
    proxy.set(Mode::Pass);
    let running = scene.site.running.as_mut().expect("it runs");
    running.until_told("what was seen of a cluster is too long ago", 1);
    scene.ends_as(&ends, "Completed");
    scene.ends_as(&begins, "Completed");
    let deleted = scene.ends_as(&deleted, "Failed");
    let reason = deleted["reason"].as_str().unwrap_or_default();
    assert!(reason.starts_with("Job deleted"), "{deleted:#}");
}

/// A node starts some pods a second: others would have to wait until all of these have come and gone.
#[test]
fn a_hundred_runs_at_once_have_a_pod_each_and_leave_nothing() {
    let name = "a_hundred_runs_at_once_have_a_pod_each_and_leave_nothing";
    let _alone = alone();
    let Some(scene) = Scene::new(&format!("jobs::alone_on_kubernetes::{name}")) else { return };
    let many = json!({"overlap": "allow", "history": {"succeeded": 1000}});
    scene.apply_with("hundred", "echo $KAPELL_RUN_ID", &many);
    let runs: Vec<String> = (0..100).map(|_| scene.trigger("hundred")).collect();
    for run in &runs {
        let ended = scene.ends(run);
        assert_eq!(ended["state"], "Completed", "{ended:#}");
        let calls = ended["metrics"]["kubernetes_api_calls"].as_u64().unwrap_or_default();
        assert!((1..=4).contains(&calls), "{ended:#}");
    }
    let pods = scene.cluster.pods_of_all();
    for run in &runs {
        assert_eq!(pods.get(run), Some(&BTreeMap::from([(0, 1)])), "{run}");
        let written = try_eventually(LIMIT, || {
            let log = scene.site.try_ask("GET", &format!("/v1/runs/{run}/logs"), None)?;
            log.body.contains(run.as_str()).then_some(())
        });
        assert!(written.is_some(), "{run} has no log");
    }
    for run in &runs {
        scene.cluster.has_nothing_of(run);
    }
}
