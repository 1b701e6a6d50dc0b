//! What others see of a run between two states that are stored.

use std::time::Duration;

use kapell_core::board::Event;
use kapell_core::job::JobRequest;
use kapell_core::run::{Run, RunId, RunState, StopKind, Timer};

use super::fakes::{Course, Manner};
use super::stage::{Lead, Stage, job, secs, triggered};
use crate::board::tests::theatre::pass;
use crate::board::{Next, Subscription};

/// A run as those who look at it see it.
fn seen(lead: &Lead, run_id: &RunId) -> Run {
    let sight = lead.show.board.sights().get(run_id);
    let mut run = lead.run(run_id);
    if let Some(sight) = sight {
        sight.put_over(&mut run);
    }
    run
}

/// The states of a run that those who watch were told of.
async fn told(events: &mut Subscription, run_id: &RunId) -> Vec<(RunState, RunState)> {
    let mut told = Vec::new();
    while let Ok(Some(next)) = tokio::time::timeout(secs(1), events.next()).await {
        let Next::Event(_, event) = next else { continue };
        if let Event::Run(change) = &*event
            && let (Some(before), Some(after)) = (&change.before, &change.after)
            && after.run_id == *run_id
        {
            told.push((before.state, after.state));
        }
    }
    told
}

#[tokio::test(start_paused = true)]
async fn a_queued_run_is_seen_with_whom_it_waits_for_and_no_longer_once_it_goes() {
    let (stage, lead, first) = triggered(Manner::Held, r#", "overlap": "queue""#).await;
    lead.until(&first, RunState::Running, secs(5)).await;
    assert!(lead.show.board.sights().is_empty(), "of what is stored nothing is kept besides");
    let second = lead.trigger("once", 2, stage.wall()).await;
    lead.until_under_way(&second, RunState::Pending).await;
    let run = seen(&lead, &second);
    assert_eq!(run.state, RunState::Pending);
    assert_eq!(
        run.reason,
        format!("run `{first}` is under way, and at most 1 of job `once` may be")
    );
    assert_eq!(lead.run(&second).state, RunState::PreRun, "stored is nothing of that");
    lead.ask(JobRequest::Cancel {
        run_id: first.clone(),
        kind: StopKind::AtOnce,
        why: "enough".to_owned(),
    })
    .await;
    lead.until(&second, RunState::Running, secs(10)).await;
    assert_eq!(seen(&lead, &second).state, RunState::Running);
    pass(secs(1)).await;
    assert!(lead.show.board.sights().is_empty());
}

#[tokio::test(start_paused = true)]
async fn those_who_watch_are_told_of_states_that_are_not_stored() {
    let stage = Stage::new();
    stage.checker.set(|script| {
        (script.wants.before, script.acts) = (true, true);
        (script.check, script.act) = (Course::Busy(5), Course::Busy(60));
    });
    let lead = stage.open().await;
    lead.apply(job("once", "")).await;
    let mut events = lead.show.board.events(None);
    let run_id = lead.trigger("once", 1, stage.wall()).await;
    lead.until_under_way(&run_id, RunState::ConditionRunning).await;
    assert_eq!(seen(&lead, &run_id).reason, "checking constraints");
    lead.until_under_way(&run_id, RunState::ActionRunning).await;
    pass(secs(30)).await;
    let view = lead.scheduler.state(run_id.clone()).await.unwrap();
    assert!(view.heartbeats >= 2, "{view:?}");
    assert!(view.noted.len() >= 4, "its timeline is told before it is stored: {view:?}");
    lead.show.board.show_doing(&run_id, "action `delay` of `a`".to_owned(), stage.wall());
    assert_eq!(seen(&lead, &run_id).reason, "taking actions: action `delay` of `a`");
    lead.until(&run_id, RunState::Completed, secs(60)).await;
    let told = told(&mut events, &run_id).await;
    let expected = [
        (RunState::PreRun, RunState::ConditionRunning),
        (RunState::ConditionRunning, RunState::ActionRunning),
        (RunState::ActionRunning, RunState::ActionRunning),
        (RunState::PreRun, RunState::ContainerCreating),
    ];
    assert_eq!(told[..4], expected, "{told:?}");
    assert_eq!(told.last().map(|(_, after)| *after), Some(RunState::Completed), "{told:?}");
    assert!(lead.show.board.sights().is_empty());
}

#[tokio::test(start_paused = true)]
async fn when_the_next_attempt_is_due_and_what_ends_it_is_known() {
    let (_stage, lead, run_id) =
        triggered(Manner::Ends(&[1]), r#", "retry": {"max_retries": 1}"#).await;
    lead.until(&run_id, RunState::Retrying, secs(5)).await;
    let view = lead.scheduler.state(run_id.clone()).await.unwrap();
    assert_eq!(view.timer, lead.run(&run_id).retry_at.map(|at| (Timer::Retry, at)));
    let (_stage, lead, run_id) = triggered(Manner::Held, r#", "max_allowed_run_time": "1h""#).await;
    lead.until(&run_id, RunState::Running, secs(5)).await;
    let view = lead.scheduler.state(run_id.clone()).await.unwrap();
    assert_eq!(view.timer.map(|(timer, _)| timer), Some(Timer::RunTime));
}

#[tokio::test(start_paused = true)]
async fn work_that_is_stopped_or_checked_afterwards_is_seen_as_such() {
    let stage = Stage::new();
    stage.checker.set(|script| (script.wants.after, script.post) = (true, Course::Busy(20)));
    let lead = stage.open().await;
    lead.apply(job("once", "")).await;
    let run_id = lead.trigger("once", 1, stage.wall()).await;
    lead.until_under_way(&run_id, RunState::Terminating).await;
    pass(Duration::from_millis(100)).await;
    assert_eq!(lead.run(&run_id).state, RunState::Running);
    assert_eq!(seen(&lead, &run_id).state, RunState::Terminating);
    lead.until(&run_id, RunState::Completed, secs(30)).await;
    assert_eq!(seen(&lead, &run_id).state, RunState::Completed);
}

/// Runs that go their way without a stop are no burden to those who watch.
#[tokio::test(start_paused = true)]
async fn of_runs_that_do_not_rest_nothing_is_told_but_what_is_stored() {
    let stage = Stage::new();
    let lead = stage.open().await;
    lead.apply(job("once", r#", "overlap": "allow""#)).await;
    let mut events = lead.show.board.events(None);
    let run_id = lead.trigger("once", 1, stage.wall()).await;
    lead.until(&run_id, RunState::Completed, secs(5)).await;
    let states: Vec<RunState> =
        told(&mut events, &run_id).await.into_iter().map(|(_, after)| after).collect();
    let stored = [RunState::ContainerCreating, RunState::Running, RunState::Completed];
    assert!(states.iter().all(|state| stored.contains(state)), "{states:?}");
    assert!(states.ends_with(&[RunState::Completed]), "{states:?}");
}
