//! Work that refers to secrets.

use std::time::Duration;

use kapell_api::v1::{Problem, SecretGiven};
use kapell_backend::containers::Process;
use kapell_core::board::secrets::Holder;
use kapell_core::board::{Action, ActualState, DesiredLrp, Run, TaskGuid, Variable};
use kapell_core::secret::Secret;

use super::stage::{Stage, key, lrp};
use crate::link::{LinkError, NOT_PLACED, SECRET_NOT_SET};
use crate::testing::for_as_long;

/// Whoever asks is given this.
fn give(stage: &Stage, value: &str) {
    let given = vec![SecretGiven { name: "db".into(), value: Secret::new(value) }];
    *stage.board.secrets.lock().unwrap() = Some(Ok(given));
}

fn refuse(stage: &Stage, code: &str, message: &str) {
    let (code, message) = (code.to_owned(), message.to_owned());
    let refused = LinkError::Refused(Problem { code, message, details: ().into() });
    *stage.board.secrets.lock().unwrap() = Some(Err(refused));
}

fn refers(path: &str) -> Action {
    let env = vec![Variable::secret("PASSWORD", "db"), Variable::secret("KAPELL_CELL_ID", "db")];
    Action::Run(Run { path: path.to_owned(), env, ..Run::default() })
}

fn hidden(process: &Process) -> Vec<(&str, &str)> {
    process.secrets.iter().map(|(name, value)| (name.as_str(), value.reveal())).collect()
}

#[tokio::test(start_paused = true)]
async fn a_program_gets_the_secrets_that_its_recipe_refers_to_beside_its_environment() {
    let stage = Stage::new().await;
    give(&stage, "hunter2");
    let web = key("web", 0);
    let change = |desired: &mut DesiredLrp| {
        desired.action = refers("server");
        desired.env = vec![Variable::plain("PASSWORD", "x"), Variable::secret("ALSO", "db")];
    };
    let guid = stage.place_with(&web, change).await;
    let runs = |stage: &Stage| stage.board.state_of(&web) == Some(ActualState::Running);
    stage.until("it runs", runs).await;
    let process = stage.containers.ran()[0].clone();
    assert_eq!(hidden(&process), [("ALSO", "hunter2"), ("PASSWORD", "hunter2")]);
    assert!(process.env.iter().all(|(name, _)| name != "PASSWORD" && name != "ALSO"));
    // What a container is told of itself cannot be set otherwise.
    assert!(process.env.contains(&("KAPELL_CELL_ID".to_owned(), "cell".to_owned())));
    let asked = stage.board.asked.lock().unwrap().clone();
    assert_eq!(asked, [Holder::Lrp { key: web.clone(), instance_guid: guid }]);
    let tag = String::from_utf8(stage.containers.created()[0].tag.clone()).unwrap();
    assert!(!tag.contains("hunter2") && tag.contains("\"secret\":\"db\""), "{tag}");
    assert!(!format!("{process:?} {:?}", stage.cell).contains("hunter2"));
}

#[tokio::test(start_paused = true)]
async fn work_without_secrets_asks_for_none() {
    let stage = Stage::new().await;
    stage.running(&key("web", 0)).await;
    assert!(stage.board.asked.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_is_not_set_is_why_an_instance_crashes() {
    for (code, text) in [(SECRET_NOT_SET, "secret \"db\" is not set"), (NOT_PLACED, "not here")] {
        let stage = Stage::new().await;
        refuse(&stage, code, text);
        let web = key("web", 0);
        stage.board.unclaimed(&web);
        let mut work = lrp(&web);
        work.desired.action = refers("server");
        stage.work(vec![work], Vec::new());
        stage.until("it crashes", |stage| stage.crash().is_some()).await;
        let reason = stage.crash().unwrap();
        assert!(reason.contains(text), "{reason}");
        assert!(stage.containers.ran().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_whose_secret_is_not_set_fails_with_that_reason() {
    let stage = Stage::new().await;
    refuse(&stage, SECRET_NOT_SET, "secret \"db\" is not set");
    let guid = TaskGuid::new("job");
    stage.place_task_with(&guid, refers("job"));
    let failed = |stage: &Stage| stage.board.task(&guid).is_some_and(|task| task.failed);
    stage.until("it failed", failed).await;
    let reason = stage.board.task(&guid).unwrap().failure_reason;
    assert!(reason.contains("secret \"db\" is not set"), "{reason}");
}

#[tokio::test(start_paused = true)]
async fn while_no_host_answers_a_start_waits_and_can_be_called_off() {
    let stage = Stage::new().await;
    let web = key("web", 0);
    let guid = stage.place_with(&web, |desired| desired.action = refers("server")).await;
    let waits = async || stage.containers.ran().is_empty() && stage.crash().is_none();
    for_as_long("it waits", Duration::from_secs(60), waits).await;
    refuse(&stage, "no_leader", "nobody leads");
    for_as_long("it waits", Duration::from_secs(60), waits).await;
    give(&stage, "hunter2");
    let runs = |stage: &Stage| stage.board.state_of(&web) == Some(ActualState::Running);
    stage.within(Duration::from_secs(60), "it runs", runs).await;
    assert!(stage.containers.running().contains(&guid.to_string()));
    *stage.board.secrets.lock().unwrap() = None;
    let other = key("other", 0);
    let guid = stage.place_with(&other, |desired| desired.action = refers("server")).await;
    stage.until("it asked", |stage| stage.board.asked.lock().unwrap().len() > 4).await;
    let stop = kapell_api::v1::Stop { instance_guid: guid.clone(), key: other.clone() };
    stage.cell.stop(super::stage::EPOCH, &stop).unwrap();
    stage.until("it is gone", |stage| stage.state(&guid).is_none()).await;
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_is_well_stays_so_while_a_new_agent_finds_no_host() {
    let mut stage = Stage::new().await;
    give(&stage, "hunter2");
    let web = key("web", 0);
    let guid = stage.place_with(&web, checked).await;
    stage.until("it is checked", |stage| stage.containers.monitored(guid.as_str(), 0)).await;
    let runs = |stage: &Stage| stage.board.state_of(&web) == Some(ActualState::Running);
    stage.until("it runs", runs).await;
    *stage.board.secrets.lock().unwrap() = None;
    stage.restart().await;
    let is_well = async || runs(&stage) && stage.crash().is_none();
    for_as_long("it is well", Duration::from_secs(600), is_well).await;
    assert_eq!(checks(&stage), 1);
    give(&stage, "hunter2");
    stage.within(Duration::from_secs(60), "it is checked", |stage| checks(stage) == 2).await;
}

/// Rotation: whatever is started later gets what holds then. A check goes on with what its container has.
#[tokio::test(start_paused = true)]
async fn a_check_goes_on_without_a_host_and_a_start_gets_what_holds_now() {
    let stage = Stage::new().await;
    give(&stage, "old");
    let web = key("web", 0);
    let guid = stage.place_with(&web, checked).await;
    stage.until("it is checked", |stage| checks(stage) == 1).await;
    *stage.board.secrets.lock().unwrap() = None;
    assert!(stage.containers.monitored(guid.as_str(), 0));
    let runs = |stage: &Stage| stage.board.state_of(&web) == Some(ActualState::Running);
    stage.until("it runs", runs).await;
    stage.within(Duration::from_secs(60), "it is checked again", |stage| checks(stage) == 2).await;
    assert!(stage.containers.monitored(guid.as_str(), 0));
    assert_eq!(stage.board.asked.lock().unwrap().len(), 1);
    give(&stage, "new");
    stage.place_with(&key("next", 0), |desired| desired.action = refers("next")).await;
    stage.until("the next one runs", |stage| stage.containers.paths().len() == 2).await;
    let ran = stage.containers.all_ran();
    let values: Vec<_> = ran.iter().map(|it| (it.path.as_str(), hidden(it)[0].1)).collect();
    let last = ("next", "new");
    assert_eq!(values, [("server", "old"), ("check", "old"), ("check", "old"), last]);
}

/// Both its program and its check refer to a secret.
fn checked(desired: &mut DesiredLrp) {
    desired.action = refers("server");
    desired.monitor = Some(refers("check"));
}

fn checks(stage: &Stage) -> usize {
    stage.containers.all_ran().iter().filter(|it| it.path == "check").count()
}
