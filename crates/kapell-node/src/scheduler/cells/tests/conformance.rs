use kapell_core::run::{Evidence, task_guid};

use super::rig::Stage;
use crate::scheduler::backend::{Backend as _, What};
use crate::scheduler::conformance::{Rig as _, attempt, conforms};

#[tokio::test(start_paused = true)]
async fn tasks_on_cells_do_what_every_backend_does() {
    conforms(Stage::new).await;
}

#[tokio::test(start_paused = true)]
async fn a_task_that_waits_for_a_cell_is_launched_and_not_ended() {
    let mut stage = Stage::new().await;
    let one = attempt("waits", 0);
    stage.backend.launch(&stage.work(&one)).await.unwrap();
    stage.fail_placement(&one, false).await;
    assert_eq!(stage.backend.find(&one, "").await, Evidence::Launched);
    assert!(stage.news.try_recv().is_err());
    stage.fail_placement(&one, true).await;
    let What::Unstartable { why } = stage.news.recv().await.unwrap().what else { panic!() };
    assert_eq!(why, "insufficient resources");
    stage.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_task_bears_the_name_and_the_variables_of_its_attempt() {
    let stage = Stage::new().await;
    let one = attempt("named", 3);
    let mut work = stage.work(&one);
    work.parameters.insert("DAY".to_owned(), "monday".to_owned());
    stage.backend.launch(&work).await.unwrap();
    let task = stage.task(&one).unwrap();
    assert_eq!(*task.guid(), task_guid(&one.run_id, 3));
    assert_eq!(task.definition.domain.as_str(), "jobs", "that of the job");
    let env = task.definition.env.iter();
    let env: Vec<_> = env.map(|it| (it.name.as_str(), it.value.as_deref().unwrap())).collect();
    assert!(env.contains(&("DAY", "monday")));
    assert!(env.contains(&("KAPELL_RUN_ID", "named:1763290800")));
    assert!(env.contains(&("KAPELL_ATTEMPT", "3")));
    stage.close().await;
}
