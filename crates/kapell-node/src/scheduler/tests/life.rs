use kapell_core::constraint::Verdict;
use kapell_core::job::{JobRequest, PauseCause};
use kapell_core::run::{Noted, RunState, StopKind};
use kapell_core::seams::Timestamp;

use super::fakes::{Course, Manner};
use super::stage::{Stage, job, secs, triggered};
use crate::board::tests::theatre::pass;
use crate::scheduler::checker::Wants;

const EVERY_MINUTE: &str = r#", "schedule": ["* * * * *"]"#;

#[tokio::test(start_paused = true)]
async fn a_job_with_a_cron_line_runs_at_each_of_its_times_and_only_then() {
    let stage = Stage::new();
    let lead = stage.open().await;
    lead.apply(job("minutely", EVERY_MINUTE)).await;
    pass(secs(601)).await;
    let ended: Vec<_> =
        lead.runs("minutely").into_iter().filter(|run| run.state.is_final()).collect();
    assert_eq!(ended.len(), 10);
    for run in &ended {
        assert_eq!((run.state, run.exit_code), (RunState::Completed, Some(0)));
        assert_eq!(run.scheduled_at.0 % 60_000, 0);
    }
    for (attempt, at) in &stage.fake.state().launches {
        let late = at.0 - attempt.run_id.moment().unwrap().0;
        assert!((0..=20).contains(&late), "{late} ms late");
    }
    stage.fake.assert_launched_once();
    assert_eq!(stage.fake.state().released.len(), 10, "the backend may forget them");
}

#[tokio::test(start_paused = true)]
async fn a_run_is_made_ten_seconds_ahead_and_a_change_of_its_job_reaches_it_until_its_time() {
    let stage = Stage::new();
    let lead = stage.open().await;
    lead.apply(job("minutely", EVERY_MINUTE)).await;
    let next = Timestamp((stage.wall().0 / 60_000 + 1) * 60_000);
    pass(next.before(secs(11)).since(stage.wall())).await;
    assert!(lead.runs("minutely").is_empty(), "not yet");
    pass(secs(2)).await;
    let run_id = lead.runs("minutely")[0].run_id.clone();
    assert_eq!(lead.run(&run_id).state, RunState::PreRun);
    assert_eq!(lead.scheduler.state(run_id.clone()).await.unwrap().state, RunState::PreRun);
    let more = r#", "schedule": ["* * * * *"], "retry": {"max_retries": 7}"#;
    lead.apply(job("minutely", more)).await;
    lead.until(&run_id, RunState::Completed, secs(20)).await;
    let run = lead.run(&run_id);
    assert_eq!((run.revision, run.metrics.as_ref().unwrap().max_retries), (2, 7));
    assert!(run.timeline.iter().any(|entry| entry.noted == Noted::Revision { revision: 2 }));
}

#[tokio::test(start_paused = true)]
async fn work_that_fails_is_tried_again_after_exactly_its_delay() {
    let (stage, lead, run_id) =
        triggered(Manner::Ends(&[3, 4, 0]), r#", "retry": {"max_retries": 3}"#).await;
    lead.until(&run_id, RunState::Completed, secs(60)).await;
    let launches = stage.fake.state().launches.clone();
    let waits: Vec<i64> = launches.windows(2).map(|two| two[1].1.0 - two[0].1.0).collect();
    assert!(
        (10_000..10_030).contains(&waits[0]) && (20_000..20_030).contains(&waits[1]),
        "{waits:?}"
    );
    let run = lead.run(&run_id);
    assert_eq!((run.attempt, run.exit_code, run.place.as_str()), (2, Some(0), "here"));
    stage.fake.assert_launched_once();
}

#[tokio::test(start_paused = true)]
async fn constraints_and_actions_go_before_and_after_the_work() {
    let stage = Stage::new();
    stage.checker.set(|script| {
        script.wants = Wants { before: true, after: true };
        script.acts = true;
        script.act = Course::Busy(20);
    });
    let lead = stage.open().await;
    lead.apply(job("once", "")).await;
    let run_id = lead.trigger("once", 1, stage.wall()).await;
    lead.until_under_way(&run_id, RunState::ActionRunning).await;
    assert_eq!(lead.run(&run_id).state, RunState::PreRun, "of that the board is not told");
    lead.until(&run_id, RunState::Completed, secs(30)).await;
    let metrics = **lead.run(&run_id).metrics.as_ref().unwrap();
    assert_eq!((metrics.constraints_checked, metrics.actions_executed), (3, 3));
    assert!(metrics.constraint_check_ms >= 20_000);
    for (verdict, state) in
        [(Verdict::Fail, RunState::Failed), (Verdict::Skip, RunState::Completed)]
    {
        stage.checker.set(|script| (script.acts, script.check) = (false, Course::Done(verdict)));
        let run_id = lead.trigger("once", state as u64, stage.wall()).await;
        lead.until(&run_id, state, secs(5)).await;
    }
    assert_eq!(stage.fake.state().launches.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_run_is_cancelled_whatever_it_is_at() {
    let stage = Stage::new();
    stage.fake.state().manner = Manner::Held;
    let lead = stage.open().await;
    lead.apply(job("once", r#", "overlap": "allow""#)).await;
    let early = lead.trigger("once", 1, stage.wall().after(secs(3_600))).await;
    let busy = lead.trigger("once", 2, stage.wall()).await;
    lead.until(&busy, RunState::Running, secs(5)).await;
    stage.checker.set(|script| (script.wants.before, script.check) = (true, Course::Busy(100)));
    let checked = lead.trigger("once", 3, stage.wall()).await;
    lead.until_under_way(&checked, RunState::ConditionRunning).await;
    for run_id in [early, busy.clone(), checked] {
        let cancelled =
            lead.scheduler.cancel(run_id.clone(), StopKind::Graceful, "asked by ann".to_owned());
        cancelled.await.unwrap().unwrap();
        lead.until(&run_id, RunState::Cancelled, secs(5)).await;
        assert_eq!(lead.run(&run_id).reason, "asked by ann");
    }
    let stops = stage.fake.state().stops.clone();
    assert_eq!(stops.len(), 1);
    assert_eq!((stops[0].0.run_id.clone(), stops[0].1), (busy.clone(), StopKind::Graceful));
    let again = lead.scheduler.cancel(busy, StopKind::AtOnce, "again".to_owned()).await.unwrap();
    assert!(again.is_err(), "it has ended");
}

/// A run that is cancelled in a state, of work of that manner; says how often its work was stopped.
async fn cancelled_at(at: RunState, manner: Manner, more: &str, kind: StopKind) -> usize {
    let stage = Stage::new();
    stage.fake.state().manner = manner;
    stage.checker.set(|script| {
        let (acts, after) = (at == RunState::ActionRunning, at == RunState::Terminating);
        (script.wants.before, script.acts, script.wants.after) = (acts, acts, after);
        (script.act, script.post) = (Course::Busy(100), Course::Busy(100));
    });
    let lead = stage.open().await;
    lead.apply(job("once", more)).await;
    let mut run_id = lead.trigger("once", 1, stage.wall()).await;
    if at == RunState::Pending {
        lead.until(&run_id, RunState::Running, secs(5)).await;
        run_id = lead.trigger("once", 2, stage.wall()).await;
    }
    lead.until_under_way(&run_id, at).await;
    let launches = stage.fake.state().launches.len();
    let cancelled = lead.scheduler.cancel(run_id.clone(), kind, "asked by ann".to_owned());
    cancelled.await.unwrap().unwrap();
    lead.until(&run_id, RunState::Cancelled, secs(5)).await;
    assert_eq!(lead.run(&run_id).reason, "asked by ann", "{}", at.name());
    pass(secs(120)).await;
    assert_eq!(lead.run(&run_id).state, RunState::Cancelled, "and stays so");
    assert_eq!(stage.fake.state().launches.len(), launches, "{}", at.name());
    stage.fake.state().stops.iter().filter(|(attempt, _)| attempt.run_id == run_id).count()
}

#[tokio::test(start_paused = true)]
async fn a_run_is_cancelled_wherever_it_waits() {
    let retry = r#", "retry": {"max_retries": 3, "initial_delay": "60s"}"#;
    let queue = r#", "overlap": "queue""#;
    for kind in [StopKind::Graceful, StopKind::AtOnce] {
        for (state, manner, more, stops) in [
            (RunState::Pending, Manner::Held, queue, 0),
            (RunState::ActionRunning, Manner::Held, "", 0),
            (RunState::ContainerCreating, Manner::NeverStarts, "", 1),
            (RunState::Terminating, Manner::Ends(&[0]), "", 0),
            (RunState::Retrying, Manner::Ends(&[1]), retry, 0),
        ] {
            let stopped = cancelled_at(state, manner, more, kind).await;
            assert_eq!(stopped, stops, "{}, {kind:?}", state.name());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn those_who_ask_are_told_how_runs_and_jobs_stand() {
    let (stage, lead, run_id) = triggered(Manner::Held, EVERY_MINUTE).await;
    lead.until(&run_id, RunState::Running, secs(5)).await;
    let view = lead.scheduler.state(run_id.clone()).await.unwrap();
    assert_eq!((view.state, view.previous_state), (RunState::Running, RunState::ContainerCreating));
    assert_eq!(lead.scheduler.active().await.unwrap().len(), 1);
    let of_job = lead.scheduler.job_state(run_id.job_id()).await.unwrap();
    assert_eq!((of_job.active.len(), of_job.last), (1, None));
    assert!(of_job.next.unwrap() > stage.wall());
    let attempt = stage.fake.state().launches[0].0.clone();
    stage.fake.end(&attempt, 9);
    lead.until(&run_id, RunState::Failed, secs(5)).await;
    pass(secs(1)).await;
    assert_eq!(lead.scheduler.state(run_id.clone()).await, None);
    let history = lead.scheduler.job_history(run_id.job_id(), 10).await.unwrap();
    assert_eq!((history.len(), history[0].exit_code), (1, Some(9)));
    let last = lead.scheduler.job_state(run_id.job_id()).await.unwrap().last.unwrap();
    assert_eq!(last.run_id, run_id);
}

#[tokio::test(start_paused = true)]
async fn another_revision_handed_to_a_run_counts_only_before_its_time() {
    let stage = Stage::new();
    stage.fake.state().manner = Manner::Held;
    let lead = stage.open().await;
    lead.apply(job("once", "")).await;
    let run_id = lead.trigger("once", 1, stage.wall().after(secs(5))).await;
    pass(secs(1)).await;
    let newer = std::sync::Arc::new(job("once", r#", "retry": {"max_retries": 1}"#));
    assert_eq!(lead.scheduler.update_run(run_id.clone(), 9, newer.clone()).await, Some(true));
    lead.until(&run_id, RunState::Running, secs(10)).await;
    assert_eq!(lead.scheduler.update_run(run_id.clone(), 10, newer).await, Some(false));
    assert_eq!(lead.run(&run_id).revision, 9);
}

#[tokio::test(start_paused = true)]
async fn a_paused_job_makes_no_runs_until_it_is_resumed() {
    let stage = Stage::new();
    let lead = stage.open().await;
    lead.apply(job("minutely", EVERY_MINUTE)).await;
    let job_id = kapell_core::board::JobId::new("minutely");
    let cause = PauseCause::Person { who: "ann".to_owned() };
    lead.ask(JobRequest::Pause { job_id: job_id.clone(), cause, note: "holidays".to_owned() })
        .await;
    pass(secs(300)).await;
    assert!(lead.runs("minutely").is_empty());
    lead.ask(JobRequest::Resume { job_id: job_id.clone() }).await;
    pass(secs(120)).await;
    assert_eq!(stage.fake.state().launches.len(), 2);
    lead.ask(JobRequest::Remove { job_id: job_id.clone(), cancel_runs: true }).await;
    pass(secs(120)).await;
    assert_eq!(stage.fake.state().launches.len(), 2);
    assert!(lead.show.board.look("minutely", |records| records.job(&job_id).is_none()));
}

#[tokio::test(start_paused = true)]
async fn parameters_are_those_of_the_run_and_otherwise_the_usual_ones() {
    let more = r#", "parameters": [{"name": "REGION", "default": "eu"}]"#;
    let (stage, lead, run_id) = triggered(Manner::Ends(&[0]), more).await;
    lead.until(&run_id, RunState::Completed, secs(5)).await;
    let parameters = stage.fake.state().parameters.clone();
    assert_eq!(
        parameters.into_iter().collect::<Vec<_>>(),
        [("REGION".to_owned(), "eu".to_owned())]
    );
}

#[tokio::test(start_paused = true)]
async fn runs_that_are_kept_for_a_time_only_are_forgotten_when_it_is_over() {
    let (_stage, lead, run_id) =
        triggered(Manner::Ends(&[0]), r#", "history": {"max_age": "1h"}"#).await;
    lead.until(&run_id, RunState::Completed, secs(5)).await;
    pass(secs(3_500)).await;
    assert_eq!(lead.runs("once").len(), 1);
    pass(secs(800)).await;
    assert!(lead.runs("once").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_made_ahead_does_not_begin_once_its_job_is_paused() {
    let stage = Stage::new();
    let lead = stage.open().await;
    lead.apply(job("minutely", EVERY_MINUTE)).await;
    let next = Timestamp((stage.wall().0 / 60_000 + 1) * 60_000);
    pass(next.before(secs(9)).since(stage.wall())).await;
    let run_id = lead.runs("minutely")[0].run_id.clone();
    let cause = PauseCause::Person { who: "me".to_owned() };
    let (job_id, note) = (run_id.job_id(), "holiday".to_owned());
    lead.ask(JobRequest::Pause { job_id, cause, note }).await;
    lead.until(&run_id, RunState::Completed, secs(20)).await;
    let run = lead.run(&run_id);
    assert_eq!((run.skipped, run.reason.as_str()), (true, "its job is paused: holiday"));
    assert!(stage.fake.state().launches.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_run_for_a_cluster_fails_with_what_to_do_where_none_is_known() {
    let stage = Stage::new();
    let lead = stage.open().await;
    let text = r#"{"job_id": "far", "schedule": ["* * * * *"], "kubernetes": {"image": "alpine"}}"#;
    lead.apply(serde_json::from_str(text).unwrap()).await;
    pass(secs(61)).await;
    let run_id = lead.runs("far")[0].run_id.clone();
    lead.until(&run_id, RunState::Failed, secs(20)).await;
    let run = lead.run(&run_id);
    assert!(
        run.reason.starts_with("no Kubernetes cluster is known to this host"),
        "{}",
        run.reason
    );
    assert_eq!(run.metrics.as_ref().unwrap().kubernetes_api_calls, 0);
}
