use super::scene::{PATIENT, Scene};
use crate::bench::eventually;
use crate::leadership::proxy::Mode;

#[test]
fn runs_outlive_a_watch_that_is_cut() {
    let name = "jobs::kubernetes::cut::runs_outlive_a_watch_that_is_cut";
    let Some((mut scene, proxy)) = Scene::behind_proxy(name) else { return };
    scene.apply("ends", "sleep 3");
    scene.apply("cancelled", PATIENT);
    scene.apply("begins", "echo done");
    let (cancelled, ends) = (scene.runs("cancelled"), scene.runs("ends"));
    proxy.set(Mode::Cut);
    let begins = scene.trigger("begins");
    scene.cancel(&cancelled);
    let running = scene.site.running.as_mut().expect("it runs");
    running.until_told("a watch was cut: taken up again", 2);
    proxy.set(Mode::Pass);
    scene.ends_as(&ends, "Completed");
    scene.ends_as(&begins, "Completed");
    scene.ends_as(&cancelled, "Cancelled");
    let told = scene.told();
    assert!(!told.contains("too long ago"), "it goes on where it was:\n{told}");
}

#[test]
fn a_log_is_whole_though_what_followed_it_was_cut() {
    let name = "jobs::kubernetes::cut::a_log_is_whole_though_what_followed_it_was_cut";
    let Some((mut scene, proxy)) = Scene::behind_proxy(name) else { return };
    scene.apply("counts", "for i in $(seq 1 40); do echo line $i; sleep 0.1; done; printf end");
    let run = scene.runs("counts");
    let log = |scene: &Scene| {
        let path = format!("/v1/runs/{run}/logs?format=events");
        scene.site.try_ask("GET", &path, None).map(|answer| answer.body).unwrap_or_default()
    };
    eventually("the log while it runs", || log(&scene).contains("line 3").then_some(()));
    proxy.set(Mode::Cut);
    let running = scene.site.running.as_mut().expect("it runs");
    running.until_told("a watch was cut: taken up again", 2);
    proxy.set(Mode::Pass);
    scene.ends_as(&run, "Completed");
    let all = log(&scene);
    for number in 1..=40 {
        let line = format!("line {number}\\n");
        assert_eq!(all.matches(&line).count(), 1, "{line}: {all}");
    }
    assert_eq!(all.matches(r#""end""#).count(), 1, "{all}");
}
