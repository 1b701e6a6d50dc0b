use kapell_core::board::request::Report;
use kapell_core::board::{LrpKey, Request, TaskState};
use kapell_core::seat::Epoch;

use super::theatre::{
    Manner, Show, Theatre, Told, create, definition, desire, pass, presence, secs,
};
use crate::board::CallbackOutcome;
use crate::link::LinkError;
use crate::testing::eventually;

async fn running(theatre: &Theatre, guid: &str, instances: u32) -> Show {
    let show = theatre.open().await;
    show.board.present(presence("c")).unwrap();
    show.board.ask(desire(guid, instances)).await.unwrap();
    eventually("all are handed over", secs(5), async || {
        theatre.cells.work().len() == usize::try_from(instances).unwrap()
    })
    .await;
    for index in 0..instances {
        show.run("c", guid, index).await;
    }
    show
}

fn stops(theatre: &Theatre) -> usize {
    theatre.cells.count(|told| matches!(told, Told::Stop(_)))
}

#[tokio::test(start_paused = true)]
async fn what_is_not_desired_any_more_is_stopped_on_its_cell() {
    let theatre = Theatre::new();
    let show = running(&theatre, "l", 20).await;
    show.board.ask(Request::RemoveDesired { process_guid: "l".into() }).await.unwrap();
    eventually("all are stopped", secs(1), async || stops(&theatre) == 20).await;
    let stop = Told::Stop(LrpKey { process_guid: "l".into(), index: 7 });
    assert!(theatre.cells.told().contains(&("c".into(), Epoch(1), stop)));
}

/// A cell that does not answer does not keep the others from hearing theirs.
#[tokio::test(start_paused = true)]
async fn orders_to_a_silent_cell_are_given_up() {
    let theatre = Theatre::new();
    let show = running(&theatre, "l", 100).await;
    theatre.cells.behave("c", Manner::Silent);
    show.board.ask(Request::RemoveDesired { process_guid: "l".into() }).await.unwrap();
    pass(secs(6)).await;
    let sent = stops(&theatre);
    assert!((1..100).contains(&sent), "{sent} sent");
    let figures = show.board.figures();
    let failed = figures.iter().find(|it| it.name == "kapell_cell_orders_failed_total").unwrap();
    assert_eq!(failed.value.to_string(), "100");
    // Once it answers again, it is told again, whether or not the domain is fresh.
    theatre.cells.behave("c", Manner::Good);
    let keep = async {
        loop {
            show.board.present(presence("c")).unwrap();
            pass(secs(5)).await;
        }
    };
    let made_up = eventually("all are stopped", secs(40), async || stops(&theatre) >= sent + 100);
    tokio::select! { () = keep => {}, () = made_up => {} }
}

#[tokio::test(start_paused = true)]
async fn a_running_task_that_is_cancelled_is_cancelled_on_its_cell() {
    let theatre = Theatre::new();
    let show = theatre.open().await;
    show.board.present(presence("c")).unwrap();
    show.board.ask(create(definition("t"))).await.unwrap();
    let (task_guid, instance_guid) = ("t".into(), "t-instance".into());
    let start = Report::StartTask { task_guid, instance_guid, reservation: None };
    show.report("c", start).await;
    show.board.ask(Request::CancelTask { task_guid: "t".into() }).await.unwrap();
    eventually("the cell knows", secs(1), async || {
        theatre.cells.count(|told| *told == Told::Cancel("t".to_owned())) == 1
    })
    .await;
}

async fn complete_with_callback(theatre: &Theatre, answers: Vec<CallbackOutcome>) -> Show {
    *theatre.calls.answers.lock().unwrap() = answers;
    let show = theatre.open().await;
    let mut definition = definition("t");
    "http://example.com/done".clone_into(&mut definition.completion_callback_url);
    show.board.ask(create(definition)).await.unwrap();
    show.board.ask(Request::CancelTask { task_guid: "t".into() }).await.unwrap();
    pass(secs(10)).await;
    show
}

#[tokio::test(start_paused = true)]
async fn a_completed_task_is_told_and_then_deleted() {
    let answers = vec![
        CallbackOutcome::Answered(503),
        CallbackOutcome::NoAnswer("refused".to_owned()),
        CallbackOutcome::Answered(404),
    ];
    let theatre = Theatre::new();
    let show = complete_with_callback(&theatre, answers).await;
    assert_eq!(show.task("t"), None);
    let made = theatre.calls.made.lock().unwrap();
    assert_eq!(made.len(), 3);
    let (url, task) = &made[0];
    assert_eq!((url.as_str(), task.state), ("http://example.com/done", TaskState::Resolving));
    assert!(task.failed);
}

#[tokio::test(start_paused = true)]
async fn a_callback_that_fails_leaves_the_task_to_convergence() {
    let theatre = Theatre::new();
    let answers = vec![CallbackOutcome::Answered(503); 3];
    let show = complete_with_callback(&theatre, answers).await;
    assert_eq!(show.task("t").unwrap().state, TaskState::Resolving);
    assert_eq!(theatre.calls.made.lock().unwrap().len(), 3);
    eventually("it is tried again", secs(60), async || show.task("t").is_none()).await;
    assert_eq!(theatre.calls.made.lock().unwrap().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_callback_that_is_refused_is_not_tried_again_at_once() {
    let theatre = Theatre::new();
    let refused = CallbackOutcome::Refused("a metadata address".to_owned());
    let show = complete_with_callback(&theatre, vec![refused]).await;
    assert_eq!(show.task("t").unwrap().state, TaskState::Resolving);
    assert_eq!(theatre.calls.made.lock().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_cell_is_told_to_evacuate() {
    let theatre = Theatre::new();
    let show = theatre.open().await;
    let unknown = show.board.evacuate(&"c".into()).await;
    assert!(matches!(unknown, Err(LinkError::Refused(problem)) if problem.code == "not_found"));
    show.board.present(presence("c")).unwrap();
    assert_eq!(show.board.evacuate(&"c".into()).await, Ok(()));
    assert_eq!(theatre.cells.told(), [("c".into(), Epoch(1), Told::Evacuate)]);
    theatre.cells.behave("c", Manner::Silent);
    assert!(matches!(show.board.evacuate(&"c".into()).await, Err(LinkError::NoAnswer(_))));
}

/// A restart after a crash comes when it is due, not with the next pass.
#[tokio::test(start_paused = true)]
async fn a_crashed_instance_is_restarted_in_time() {
    let mut theatre = Theatre::new();
    theatre.settings.converge_every = secs(600);
    let show = running(&theatre, "l", 1).await;
    let crash = async |guid: &str| {
        let key = LrpKey { process_guid: "l".into(), index: 0 };
        let (instance_guid, domain) = (guid.into(), "d".into());
        let (incarnation, reason) = (None, "exit 1".to_owned());
        let crashed = Report::Crashed { key, instance_guid, domain, incarnation, reason };
        show.report("c", crashed).await;
    };
    for _ in 0..4 {
        crash("l-0-on-c").await;
        if show.instance("l", 0).unwrap().crash_count < 4 {
            show.run("c", "l", 0).await;
        }
    }
    let crashed = show.instance("l", 0).unwrap();
    assert_eq!(crashed.state, kapell_core::board::ActualState::Crashed);
    let begun = tokio::time::Instant::now();
    let keep = async {
        loop {
            show.board.present(presence("c")).unwrap();
            pass(secs(5)).await;
        }
    };
    let restarted = eventually("it is restarted", secs(70), async || {
        show.instance("l", 0).unwrap().state == kapell_core::board::ActualState::Unclaimed
    });
    tokio::select! { () = keep => {}, () = restarted => {} }
    let waited = begun.elapsed();
    assert!((secs(60)..secs(61)).contains(&waited), "{waited:?}");
}
