use super::cluster::about;
use super::scene::{PATIENT, Scene};

const FOUND: &str = "work was found that no run knows";

#[test]
fn jobs_that_no_run_knows_are_told_of_and_deleted_unless_they_are_to_be_kept() {
    let name = "jobs_that_no_run_knows_are_told_of_and_deleted_unless_they_are_to_be_kept";
    let Some(mut scene) = Scene::new(&format!("jobs::kubernetes::leftovers::{name}")) else {
        return;
    };
    scene.apply("lost", PATIENT);
    let run = scene.runs("lost");
    let jobs = scene.cluster.jobs_of(&run);
    assert_eq!(jobs.len(), 1, "{jobs:?}");
    // Its records are lost, and who we are is not.
    scene.site.kill();
    std::fs::remove_dir_all(scene.site.dir()).expect("it is there");
    about(&scene.site.bench, ", leftovers: keep");
    scene.site.start(&[]);
    let running = scene.site.running.as_mut().expect("it runs");
    running.until_told(FOUND, 1);
    let told = scene.told();
    let line = told.lines().find(|line| line.contains(FOUND)).expect("it was told");
    let about_it = [run.as_str(), &jobs[0], "namespace `default` of cluster `main`"];
    assert!(about_it.iter().all(|it| line.contains(it)), "{line}");
    // A run goes its whole way meanwhile.
    scene.apply("other", "true");
    let other = scene.trigger("other");
    scene.ends_as(&other, "Completed");
    assert_eq!(scene.cluster.jobs_of(&run), jobs, "it is left alone");
    scene.site.kill();
    about(&scene.site.bench, ", leftovers: delete");
    scene.site.start(&[]);
    scene.cluster.has_nothing_of(&run);
    assert!(scene.told().contains(FOUND));
}
