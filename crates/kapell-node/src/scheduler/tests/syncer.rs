use std::sync::Arc;

use kapell_core::job::JobRequest;
use kapell_core::run::{Entry, Noted, RunState, RunUpdate, UpdateKind};
use kapell_core::seams::{Clock as _, Moment, Timestamp};

use super::fakes::Manner;
use super::stage::{Stage, job, secs, triggered};
use crate::board::tests::theatre::pass;
use crate::scheduler::slab::Key;
use crate::scheduler::syncer::{Stored, Syncer};
use crate::testing::{Call, Fault};

fn update(kind: UpdateKind, state: RunState, at: i64) -> Arc<RunUpdate> {
    let noted = Noted::State { to: state, why: "so".into() };
    Arc::new(RunUpdate {
        kind,
        attempt: 0,
        place: "".into(),
        log_host: "".into(),
        at: Timestamp(at),
        state,
        previous_state: RunState::Pending,
        revision: 1,
        started_at: None,
        retry_at: None,
        completed_at: state.is_final().then_some(Timestamp(at)),
        exit_code: None,
        reason: String::new(),
        skipped: false,
        timeline: [Entry { at: Timestamp(at), attempt: 0, noted }].into(),
        metrics: None,
    })
}

#[tokio::test(start_paused = true)]
async fn of_a_run_one_update_is_on_its_way_and_the_rest_is_put_together() {
    let stage = Stage::new();
    let lead = stage.open().await;
    lead.apply(job("once", "")).await;
    let run_id = lead.trigger("once", 1, stage.wall().after(secs(3_600))).await;
    let mut syncer = Syncer::new(lead.show.board.clone());
    let now = || stage.theatre.clock.now();
    let line = (Key::of_tag(7), &run_id);
    syncer.offer(line, update(UpdateKind::Intent, RunState::ContainerCreating, 1), now());
    syncer.flush(now());
    syncer.offer(line, update(UpdateKind::Started, RunState::Running, 2), now());
    syncer.offer(line, update(UpdateKind::Ended, RunState::Completed, 3), now());
    syncer.offer(line, update(UpdateKind::Ended, RunState::Completed, 3), now());
    syncer.flush(now());
    let kinds = |stored: Stored| {
        assert_eq!(stored.key, line.0);
        stored.all().collect::<Vec<_>>()
    };
    assert_eq!(kinds(syncer.next(now).await.unwrap()), [(UpdateKind::Intent, 0)]);
    assert_eq!(lead.run(&run_id).state, RunState::ContainerCreating);
    syncer.flush(now());
    assert_eq!(
        kinds(syncer.next(now).await.unwrap()),
        [(UpdateKind::Started, 0), (UpdateKind::Ended, 0)]
    );
    let run = lead.run(&run_id);
    assert_eq!(run.state, RunState::Completed);
    let times: Vec<i64> = run.timeline.iter().map(|entry| entry.at.0).collect();
    assert_eq!(times, [1, 2, 3, 3], "all that the earlier ones said is there");
    assert_eq!((syncer.waiting(), syncer.is_idle()), (0, true));
}

#[tokio::test(start_paused = true)]
async fn updates_wait_for_a_hundred_of_them_or_a_second_while_others_are_on_their_way() {
    let stage = Stage::new();
    let lead = stage.open().await;
    lead.apply(job("once", r#", "overlap": "allow""#)).await;
    let mut runs = Vec::new();
    for drawn in 0..151 {
        runs.push(lead.trigger("once", drawn, stage.wall().after(secs(3_600))).await);
    }
    stage.theatre.store.set(&[Call::Commit], Fault::Hang);
    let mut syncer = Syncer::new(lead.show.board.clone());
    let zero = Moment::ZERO;
    let offer = |range: std::ops::Range<usize>, syncer: &mut Syncer| {
        for (run_id, tag) in runs.iter().zip(0..).take(range.end).skip(range.start) {
            let started = update(UpdateKind::Started, RunState::Running, 1);
            syncer.offer((Key::of_tag(tag), run_id), started, zero);
        }
        syncer.flush(zero);
    };
    assert_eq!(syncer.due(), None);
    offer(0..1, &mut syncer);
    assert_eq!(syncer.due(), None, "at once if nothing is on its way");
    offer(1..50, &mut syncer);
    assert_eq!(syncer.due(), Some(zero.after(secs(1))), "they wait");
    offer(50..101, &mut syncer);
    assert_eq!(syncer.due(), None, "a hundred do not");
    offer(101..102, &mut syncer);
    syncer.flush(zero.after(secs(1)));
    assert_eq!(syncer.due(), None, "nor does what has waited a second");
    assert_eq!((syncer.waiting(), syncer.is_full()), (102, false));
}

#[tokio::test(start_paused = true)]
async fn intents_go_at_once_whatever_is_on_its_way() {
    let stage = Stage::new();
    let lead = stage.open().await;
    lead.apply(job("once", r#", "overlap": "allow""#)).await;
    let mut runs = Vec::new();
    for drawn in 0..3 {
        runs.push(lead.trigger("once", drawn, stage.wall().after(secs(3_600))).await);
    }
    let mut syncer = Syncer::new(lead.show.board.clone());
    let now = || stage.theatre.clock.now();
    let line = |number: usize| (Key::of_tag(number as u64), &runs[number]);
    let intent = || update(UpdateKind::Intent, RunState::ContainerCreating, 1);
    let ended = || update(UpdateKind::Ended, RunState::Failed, 2);
    syncer.offer(line(0), intent(), now());
    syncer.flush(now());
    // One for which nobody waits, one for which somebody does, and one that begins anew before it was told to have ended.
    syncer.offer(line(1), ended(), now());
    syncer.offer(line(2), ended(), now());
    syncer.offer(line(2), intent(), now());
    syncer.flush(now());
    let mut stored = Vec::new();
    for _ in 0..2 {
        stored.push(syncer.next(now).await.unwrap().key);
    }
    stored.sort_by_key(|key| key.tag());
    assert_eq!(stored, [Key::of_tag(0), Key::of_tag(2)]);
    assert_eq!((syncer.waiting(), syncer.is_idle()), (1, true), "the other one waits");
    syncer.flush(now());
    assert_eq!(syncer.next(now).await.unwrap().key, Key::of_tag(1));
    assert_eq!((syncer.waiting(), syncer.is_idle()), (0, true));
}

#[tokio::test(start_paused = true)]
async fn an_update_whose_outcome_is_unknown_is_sent_again_and_written_once() {
    let (stage, lead, run_id) = triggered(Manner::Held, "").await;
    lead.until(&run_id, RunState::Running, secs(5)).await;
    stage.theatre.store.set(&[Call::Commit], Fault::LoseAnswer);
    let attempt = stage.fake.state().launches[0].0.clone();
    stage.fake.end(&attempt, 0);
    pass(secs(40)).await;
    stage.theatre.store.heal();
    lead.until(&run_id, RunState::Completed, secs(30)).await;
    let ended = |entry: &Entry| matches!(entry.noted, Noted::State { to: RunState::Completed, .. });
    assert_eq!(lead.run(&run_id).timeline.iter().filter(ended).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_intent_that_the_board_refuses_fails_its_run_and_launches_nothing() {
    let stage = Stage::new();
    let lead = stage.open().await;
    lead.apply(job("once", "")).await;
    let mut syncer = Syncer::new(lead.show.board.clone());
    let now = || stage.theatre.clock.now();
    // Nobody has made this run.
    let run_id = kapell_core::run::RunId::parse("once:5-1").unwrap();
    let intent = update(UpdateKind::Intent, RunState::ContainerCreating, 1);
    syncer.offer((Key::of_tag(7), &run_id), intent, now());
    syncer.flush(now());
    let stored = syncer.next(now).await.unwrap();
    assert!(stored.run.is_none());
    assert!(stored.refused.as_ref().is_some_and(|why| why.contains("once:5-1")), "{stored:?}");
    // The same for a scheduler whose run was taken from the board under its hands.
    let waits = lead.trigger("once", 1, stage.wall().after(secs(10))).await;
    pass(secs(1)).await;
    let mut ended = Arc::unwrap_or_clone(update(UpdateKind::Ended, RunState::Completed, 2));
    ended.reason = "by hand".to_owned();
    lead.ask(JobRequest::Update { run_id: waits.clone(), update: Arc::new(ended) }).await;
    let definition = job("once", r#", "history": {"succeeded": 0, "failed": 0}"#);
    lead.apply(definition).await;
    lead.ask(JobRequest::Settle { job_id: waits.job_id() }).await;
    let is_there = || lead.runs("once").iter().any(|run| run.run_id == waits);
    assert!(!is_there());
    pass(secs(20)).await;
    assert!(stage.fake.state().launches.is_empty());
    assert_eq!(lead.scheduler.state(waits.clone()).await, None, "and it is gone");
}
