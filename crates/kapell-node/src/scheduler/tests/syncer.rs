use kapell_core::run::{Entry, Noted, RunState, RunUpdate, UpdateKind};
use kapell_core::seams::{Clock as _, Moment, Timestamp};

use super::fakes::Manner;
use super::stage::{Stage, job, secs, triggered};
use crate::board::tests::theatre::pass;
use crate::scheduler::syncer::{Stored, Syncer};
use crate::testing::{Call, Fault};

fn update(kind: UpdateKind, state: RunState, at: i64) -> Box<RunUpdate> {
    let noted = Noted::State { to: state, why: "so".into() };
    Box::new(RunUpdate {
        kind,
        attempt: 0,
        place: String::new(),
        log_host: String::new(),
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
        timeline: vec![Entry { at: Timestamp(at), attempt: 0, noted }],
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
    syncer.offer(&run_id, update(UpdateKind::Intent, RunState::ContainerCreating, 1), now());
    syncer.flush(now());
    syncer.offer(&run_id, update(UpdateKind::Started, RunState::Running, 2), now());
    syncer.offer(&run_id, update(UpdateKind::Ended, RunState::Completed, 3), now());
    syncer.offer(&run_id, update(UpdateKind::Ended, RunState::Completed, 3), now());
    syncer.flush(now());
    let stored = |kind| Stored { run_id: run_id.clone(), kind, attempt: 0 };
    assert_eq!(syncer.next(now).await.unwrap(), [stored(UpdateKind::Intent)]);
    assert_eq!(lead.run(&run_id).state, RunState::ContainerCreating);
    syncer.flush(now());
    assert_eq!(
        syncer.next(now).await.unwrap(),
        [stored(UpdateKind::Started), stored(UpdateKind::Ended)]
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
        for run_id in &runs[range] {
            syncer.offer(run_id, update(UpdateKind::Intent, RunState::ContainerCreating, 1), zero);
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
async fn an_update_whose_outcome_is_unknown_is_sent_again_and_written_once() {
    let (stage, lead, run_id) = triggered(Manner::Held, "").await;
    lead.until(&run_id, RunState::Running, secs(5)).await;
    stage.theatre.store.set(&[Call::Commit], Fault::LoseAnswer);
    let attempt = stage.fake.state().launches[0].0.clone();
    stage.fake.end(&attempt, 0);
    pass(secs(40)).await;
    stage.theatre.store.heal();
    lead.until(&run_id, RunState::Completed, secs(30)).await;
    let ended =
        |entry: &&Entry| matches!(entry.noted, Noted::State { to: RunState::Completed, .. });
    assert_eq!(lead.run(&run_id).timeline.iter().filter(ended).count(), 1);
}
