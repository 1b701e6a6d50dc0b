//! What an agent makes of containers that the one before it has left on their way.

use std::time::Duration;

use kapell_api::v1::Stop;
use kapell_core::board::{Action, Download, TaskState};
use kapell_core::rep::container::State;

use super::recipes::{is_completed, job, serial};
use super::stage::{EPOCH, Stage, key, run};
use crate::testing::for_as_long;

fn notes(stage: &Stage) -> usize {
    std::fs::read_dir(stage.dir.path().join("courses")).map_or(0, Iterator::count)
}

#[tokio::test(start_paused = true)]
async fn a_recipe_goes_on_where_it_was_and_nothing_runs_twice() {
    for ends_meanwhile in [false, true] {
        let mut stage = Stage::new().await;
        stage.place_task_with(&job(), serial(&[run("a"), run("b"), run("c")]));
        stage.until("the first runs", |stage| stage.containers.paths() == ["a"]).await;
        stage.containers.end_one("i-job", "0", 0);
        stage.until("the second runs", |stage| stage.containers.paths() == ["a", "b"]).await;
        stage.agent.shutdown().await;
        if ends_meanwhile {
            stage.containers.end_one("i-job", "1", 0);
        }
        stage.restart().await;
        if !ends_meanwhile {
            let two = async || stage.containers.paths().len() == 2;
            for_as_long("it waits", Duration::from_secs(5), two).await;
            stage.containers.end_one("i-job", "1", 0);
        }
        let all = ["a", "b", "c"];
        stage.until("the third runs", |stage| stage.containers.paths() == all).await;
        assert_eq!(notes(&stage), 1);
        stage.containers.end_one("i-job", "2", 0);
        stage.until("it is over", |stage| is_completed(stage) && stage.is_empty()).await;
        assert!(!stage.board.task(&job()).unwrap().failed);
        assert_eq!(stage.containers.paths(), all);
        assert_eq!(notes(&stage), 0, "they go with the container");
    }
}

/// Whoever notes it dies before it runs, or just after.
#[tokio::test(start_paused = true)]
async fn a_program_of_a_task_that_was_about_to_begin_is_never_begun_again() {
    for action in [serial(&[run("job"), run("then")]), run("job")] {
        let mut stage = Stage::new().await;
        stage.containers.faults().gated_runs = Some("job".to_owned());
        stage.place_task_with(&job(), action.clone());
        let noted = |stage: &Stage| {
            let plain = action.as_run().is_some();
            let text = std::fs::read_to_string(stage.dir.path().join("courses/i-job"));
            let is_noted = text.is_ok_and(|text| text.contains("begins"));
            stage.containers.guids().len() == 1 && (plain || is_noted)
        };
        stage.until("it is about to begin", noted).await;
        stage.agent.shutdown().await;
        stage.containers.faults().gated_runs = None;
        stage.restart().await;
        stage.until("it is over", |stage| is_completed(stage) && stage.is_empty()).await;
        let task = stage.board.task(&job()).unwrap();
        assert!(task.failed && task.failure_reason.contains("never started twice"), "{task:?}");
        assert!(stage.containers.ran().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_program_of_an_instance_that_was_about_to_begin_is_begun() {
    for setup in [None, Some(run("server"))] {
        let mut stage = Stage::new().await;
        stage.containers.faults().gated_runs = Some("server".to_owned());
        let first = setup.clone();
        let guid = stage.place_with(&key("web", 0), |desired| desired.setup = first).await;
        stage.until("it is there", |stage| stage.containers.guids().len() == 1).await;
        stage.agent.shutdown().await;
        stage.containers.faults().gated_runs = None;
        stage.restart().await;
        assert_eq!(stage.state(&guid), Some(State::Created));
        if setup.is_some() {
            stage.until("setup runs", |stage| stage.containers.paths().len() == 1).await;
            stage.containers.end_one(guid.as_str(), "0", 0);
        }
        stage.until("it runs", |stage| stage.state(&guid) == Some(State::Running)).await;
        assert_eq!(stage.containers.paths().len(), 1 + usize::from(setup.is_some()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_download_that_was_under_way_is_begun_again_and_one_that_was_done_is_not() {
    let mut stage = Stage::new().await;
    let get = |from: &str| {
        let (from, to) = (from.to_owned(), "file".to_owned());
        Action::Download(Download { from, to, checksum: None })
    };
    let (done, hangs) = ("http://a/done", "http://a/hangs");
    for url in [done, hangs] {
        stage.outside.files.lock().unwrap().insert(url.to_owned(), b"x".to_vec());
    }
    stage.outside.hangs(hangs);
    stage.place_task_with(&job(), serial(&[get(done), get(hangs), run("job")]));
    stage.until("the second is under way", |stage| stage.outside.asked(hangs) == 1).await;
    stage.agent.shutdown().await;
    stage.outside.hangs.lock().unwrap().clear();
    stage.restart().await;
    stage.until("its program runs", |stage| stage.containers.paths() == ["job"]).await;
    assert_eq!((stage.outside.asked(done), stage.outside.asked(hangs)), (1, 2));
}

/// A container that runs alone needs no notes: its driver tells all.
#[tokio::test(start_paused = true)]
async fn nothing_is_noted_of_a_sole_program() {
    let mut stage = Stage::new().await;
    let guid = stage.running(&key("web", 0)).await;
    stage.place_task(&job());
    stage.until("both run", |stage| stage.containers.running().len() == 2).await;
    assert_eq!(notes(&stage), 0);
    stage.restart().await;
    assert_eq!(stage.state(&guid), Some(State::Running));
}

#[tokio::test(start_paused = true)]
async fn time_goes_on_while_no_agent_is_there() {
    let mut stage = Stage::new().await;
    let timeout =
        kapell_core::board::action::Timeout { action: Box::new(run("slow")), timeout_ms: 60_000 };
    stage.place_task_with(&job(), Action::Timeout(timeout));
    stage.until("it runs", |stage| stage.containers.paths() == ["slow"]).await;
    stage.agent.shutdown().await;
    tokio::time::advance(Duration::from_secs(59)).await;
    stage.restart().await;
    stage.within(Duration::from_secs(3), "it is over", is_completed).await;
    assert!(stage.board.task(&job()).unwrap().failure_reason.contains("60s"));
}

#[tokio::test(start_paused = true)]
async fn what_was_being_stopped_is_stopped_also_by_force() {
    let mut stage = Stage::new().await;
    let web = key("web", 0);
    let guid = stage.place_with(&web, |desired| desired.setup = Some(run("prepare"))).await;
    stage.until("setup runs", |stage| stage.containers.paths() == ["prepare"]).await;
    stage.containers.faults().deaf = true;
    stage.cell.stop(EPOCH, &Stop { key: web, instance_guid: guid.clone() }).unwrap();
    let noted = |stage: &Stage| {
        let text = std::fs::read_to_string(stage.dir.path().join("courses").join(guid.as_str()));
        text.is_ok_and(|text| text.contains("Stop"))
    };
    stage.until("that is noted", noted).await;
    stage.restart().await;
    stage.within(Duration::from_secs(16), "it is gone", Stage::is_empty).await;
    assert_eq!(stage.board.told(), ["claim", "remove"]);
    assert_eq!(stage.containers.paths(), ["prepare"]);
}

/// The machine lost the notes: what a driver knows is enough not to run anything twice.
#[tokio::test(start_paused = true)]
async fn without_notes_no_task_begins_anything() {
    let mut stage = Stage::new().await;
    stage.place_task_with(&job(), serial(&[run("a"), run("b")]));
    stage.until("the first runs", |stage| stage.containers.paths() == ["a"]).await;
    stage.agent.shutdown().await;
    std::fs::remove_file(stage.dir.path().join("courses/i-job")).unwrap();
    stage.containers.end_one("i-job", "0", 0);
    stage.restart().await;
    stage.until("it is over", is_completed).await;
    let task = stage.board.task(&job()).unwrap();
    assert_eq!((task.state, task.failed), (TaskState::Completed, true));
    assert_eq!(stage.containers.paths(), ["a"]);
}
