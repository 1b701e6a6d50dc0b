//! What constraints and actions are answered, and what is done for them.

use std::collections::BTreeMap;

use kapell_core::board::{JobId, Records};
use kapell_core::constraint::MetricKind;
use kapell_core::job::{ActionId, Figure, JobRequest, PauseCause};
use kapell_core::run::record::MOST_KICKS;
use kapell_core::run::{RunId, RunState, StopKind, Trigger};
use kapell_core::seams::Timestamp;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::fakes::Manner;
use super::stage::{Lead, Stage, job, secs};
use crate::board::tests::theatre::pass;
use crate::constraint::{Message, Which};
use crate::scheduler::backend::Attempt;
use crate::scheduler::concierge;
use crate::testing::{Call, Fault};

/// A way to ask as constraints and actions do.
struct Desk {
    messages: mpsc::Sender<Message>,
    _serving: JoinSet<()>,
}

impl Desk {
    fn of(lead: &Lead) -> Self {
        let (messages, asked) = mpsc::channel(8);
        let mut serving = JoinSet::new();
        serving.spawn(concierge::serve(lead.show.board.clone(), lead.scheduler.clone(), asked));
        Self { messages, _serving: serving }
    }

    async fn ask<T>(&self, message: impl FnOnce(oneshot::Sender<T>) -> Message) -> T {
        let (reply, answer) = oneshot::channel();
        self.messages.send(message(reply)).await.unwrap();
        answer.await.unwrap()
    }

    async fn kick(&self, job_id: &str, of: &RunId, drawn: u64) -> Result<RunId, String> {
        let run_id = RunId::asked_for(&JobId::new(job_id), Timestamp(0), drawn);
        let (asked, of) = (run_id.clone(), of.clone());
        self.ask(|reply| Message::Trigger {
            run_id: asked,
            of,
            parameters: BTreeMap::new(),
            reply,
        })
        .await?;
        Ok(run_id)
    }
}

/// A run of `ours`, beside jobs of its own domain and of another.
async fn stage() -> (Stage, Lead, RunId) {
    let stage = Stage::new();
    stage.fake.state().manner = Manner::Held;
    let lead = stage.open().await;
    lead.apply(job("ours", "")).await;
    lead.apply(job("friend", "")).await;
    lead.apply(job("foreign", r#", "domain": "others""#)).await;
    for id in ["friend", "foreign"] {
        let run_id = lead.trigger(id, 1, stage.wall()).await;
        lead.until(&run_id, RunState::Running, secs(5)).await;
    }
    let run_id = lead.trigger("ours", 1, stage.wall()).await;
    (stage, lead, run_id)
}

#[tokio::test(start_paused = true)]
async fn jobs_of_other_domains_are_answered_for_as_if_they_were_not_there() {
    let (_stage, lead, of) = stage().await;
    let desk = Desk::of(&lead);
    for (id, is_there) in [("friend", true), ("foreign", false), ("nobody", false)] {
        let (job, run) = (JobId::new(id), of.clone());
        let state = desk.ask(|reply| Message::JobState { job, of: run, reply }).await;
        assert_eq!(state.map(|state| state.running), is_there.then_some(1), "{id}");
        let (job, run) = (JobId::new(id), of.clone());
        let past = desk.ask(|reply| Message::JobHistory { job, of: run, most: 9, reply }).await;
        assert_eq!(past.is_some(), is_there, "{id}");
    }
    let of_friend = "there is no job `foreign` in domain `jobs`";
    let of_nobody = "there is no job `nobody` in domain `jobs`";
    for (id, why) in [("foreign", of_friend), ("nobody", of_nobody)] {
        let refused = desk.kick(id, &of, 1).await.unwrap_err();
        assert!(refused.starts_with(why), "{refused}");
        let (job, except, why_cancel) = (JobId::new(id), of.clone(), String::new());
        let (which, kind) = (Which::All, StopKind::AtOnce);
        let cancelled = desk.ask(|reply| Message::CancelRuns {
            job,
            which,
            except,
            kind,
            why: why_cancel,
            reply,
        });
        assert!(cancelled.await.unwrap_err().starts_with(why));
        let (job, run, action) = (JobId::new(id), of.clone(), ActionId(1));
        let skipped =
            desk.ask(|reply| Message::SkipNext { job, of: run, action, count: 1, reply }).await;
        assert!(skipped.unwrap_err().starts_with(why));
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_waits_for_its_turn_does_not_run() {
    let (stage, lead, of) = stage().await;
    let desk = Desk::of(&lead);
    let running = async |id: &str| {
        let (job, run) = (JobId::new(id), of.clone());
        desk.ask(|reply| Message::JobState { job, of: run, reply }).await.unwrap().running
    };
    let grouped = r#", "group": {"name": "g", "limit": 1}, "overlap": "queue""#;
    for id in ["first", "second"] {
        lead.apply(job(id, grouped)).await;
    }
    let first = lead.trigger("first", 1, stage.wall()).await;
    lead.until(&first, RunState::Running, secs(5)).await;
    let second = lead.trigger("second", 1, stage.wall()).await;
    lead.until_under_way(&second, RunState::Pending).await;
    assert_eq!((running("first").await, running("second").await), (1, 0));
    stage.fake.end(&Attempt { run_id: first.clone(), number: 0 }, 0);
    lead.until(&second, RunState::Running, secs(5)).await;
    assert_eq!((running("first").await, running("second").await), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn what_is_counted_is_counted_once_over_a_change_of_leader() {
    let (stage, lead, of) = stage().await;
    let (job_id, figure) =
        (of.job_id(), Figure { kind: MetricKind::Counter, value: 1.0, at: stage.wall() });
    let count = async |lead: &Lead| {
        let desk = Desk::of(lead);
        let (job, run) = (job_id.clone(), of.clone());
        let skip = |reply| Message::SkipNext { job, of: run, action: ActionId(7), count: 2, reply };
        desk.ask(skip).await.unwrap();
        let (run, metric) = (of.clone(), "late".to_owned());
        let set =
            |reply| Message::SetMetric { of: run, action: ActionId(8), metric, figure, reply };
        desk.ask(set).await.unwrap();
        let skips =
            lead.show.board.look(job_id.as_str(), |records| records.jobs[&job_id].skip_next);
        (skips, lead.scheduler.metrics()[&(job_id.clone(), "late".to_owned())].value)
    };
    let want = (2, 1.0);
    assert_eq!(count(&lead).await, want);
    assert_eq!(count(&lead).await, want);
    lead.die().await;
    let lead = stage.open().await;
    let kept = lead.scheduler.metrics()[&(job_id.clone(), "late".to_owned())];
    assert_eq!(kept, figure, "it is not forgotten");
    assert_eq!(count(&lead).await, want, "the next leader takes the same action again");
}

#[tokio::test(start_paused = true)]
async fn runs_that_kick_each_other_off_come_to_an_end() {
    let (_stage, lead, mut of) = stage().await;
    let desk = Desk::of(&lead);
    let (mut count, mut before) = (0, of.clone());
    let refused = loop {
        count += 1;
        match desk.kick("friend", &of, count).await {
            Ok(run_id) => before = std::mem::replace(&mut of, run_id),
            Err(refused) => break refused,
        }
    };
    assert_eq!(count, u64::from(MOST_KICKS) + 1);
    assert!(refused.contains("these jobs go in a circle"), "{refused}");
    let Trigger::Action { depth, .. } = lead.run(&of).trigger else { panic!("{of}") };
    assert_eq!(depth, MOST_KICKS);
    // The same again is as good as new: its host died before it heard of it.
    assert_eq!(desk.kick("friend", &before, count - 1).await.unwrap(), of);
}

#[tokio::test(start_paused = true)]
async fn the_next_instance_that_is_skipped_is_one_that_was_made_ahead() {
    for dies in [false, true] {
        let (stage, lead, of) = stage().await;
        stage.fake.state().manner = Manner::Ends(&[0]);
        lead.apply(job("often", r#", "schedule": ["* * * * *"]"#)).await;
        let next = Timestamp((stage.wall().0 / 60_000 + 1) * 60_000);
        pass(next.before(secs(5)).since(stage.wall())).await;
        let made = RunId::scheduled(&"often".into(), next);
        assert_eq!(lead.run(&made).state, RunState::PreRun);
        let (job, action) = (JobId::new("often"), ActionId(1));
        let desk = Desk::of(&lead);
        let skip = |reply| Message::SkipNext { job, of, action, count: 1, reply };
        desk.ask(skip).await.unwrap();
        let lead = if dies {
            lead.die().await;
            stage.open().await
        } else {
            lead
        };
        lead.until(&made, RunState::Completed, secs(10)).await;
        let run = lead.run(&made);
        assert!(run.skipped && run.reason.contains("skipNextInstance"), "{run:?}");
        let after = RunId::scheduled(&"often".into(), next.after(secs(60)));
        pass(secs(70)).await;
        let run = lead.run(&after);
        assert_eq!((run.state, run.skipped), (RunState::Completed, false), "only one is");
        let job_id = JobId::new("often");
        let skips = |records: &Records| {
            (records.jobs[&job_id].skips.len(), records.jobs[&job_id].skip_next)
        };
        assert_eq!(lead.show.board.look("often", skips), (0, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_that_rests_or_whose_moments_are_excluded_is_not_scheduled_soon() {
    let (stage, lead, of) = stage().await;
    let desk = Desk::of(&lead);
    let minutely = r#", "schedule": ["* * * * *"]"#;
    let always = r#", "exclude": [{"name": "off", "hours": "00:00-24:00"}]"#;
    let next = Timestamp((stage.wall().0 / 60_000 + 1) * 60_000);
    for (more, want) in [
        ("", Some(next)),
        (r#", "suspend": true"#, None),
        (always, None),
        (r#", "tags": ["again"]"#, Some(next)),
    ] {
        lead.apply(job("friend", &format!("{minutely}{more}"))).await;
        pass(secs(1)).await;
        let (job, run) = (JobId::new("friend"), of.clone());
        let found = desk.ask(|reply| Message::JobState { job, of: run, reply }).await.unwrap();
        assert_eq!(found.next_at, want, "{more}");
    }
    let (cause, note) = (PauseCause::Person { who: "ann".to_owned() }, String::new());
    lead.ask(JobRequest::Pause { job_id: "friend".into(), cause, note }).await;
    let job = JobId::new("friend");
    let found = desk.ask(|reply| Message::JobState { job, of, reply }).await.unwrap();
    assert_eq!(found.next_at, None, "it is paused");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_takes_no_writes_for_a_while_fails_neither_a_kick_nor_a_kill() {
    let (stage, lead, of) = stage().await;
    let desk = Desk::of(&lead);
    lead.apply(job("crowd", r#", "overlap": "allow""#)).await;
    let mut crowd = Vec::new();
    for drawn in 0..3 {
        let run_id = lead.trigger("crowd", drawn, stage.wall()).await;
        lead.until(&run_id, RunState::Running, secs(5)).await;
        crowd.push(run_id);
    }
    stage.theatre.store.set(&[Call::Commit], Fault::Fail);
    let healed = async {
        pass(secs(40)).await;
        stage.theatre.store.heal();
    };
    let (job, except, why) = (JobId::new("crowd"), of.clone(), "too many".to_owned());
    let (which, kind) = (Which::All, StopKind::AtOnce);
    let killed = desk.ask(|reply| Message::CancelRuns { job, which, except, kind, why, reply });
    let (kicked, killed, ()) = tokio::join!(desk.kick("friend", &of, 9), killed, healed);
    assert_eq!(lead.run(&kicked.unwrap()).run_id.job(), "friend");
    assert!(killed.is_ok(), "{killed:?}");
    for run_id in crowd {
        lead.until(&run_id, RunState::Cancelled, secs(10)).await;
    }
}
