use futures_util::future::join_all;
use kapell_core::board::shard_of;
use kapell_core::job::JobRequest;
use kapell_core::run::{Noted, Run, RunState, StopKind};
use kapell_core::seams::Timestamp;
use kapell_store::model::SHARDS;

use super::fakes::Manner;
use super::stage::{Lead, Stage, job, secs};
use crate::board::tests::theatre::pass;
use crate::scheduler::backend::Attempt;
use crate::testing::{Call, Fault};

const JOBS: usize = 10_000;

/// Applies that many jobs that are due within the second after the next full minute, and says when that begins.
async fn gather(stage: &Stage, lead: &Lead) -> Timestamp {
    let minute = Timestamp((stage.wall().0 / 60_000 + 2) * 60_000);
    // Not in the minute before: its runs would be in the way.
    let (of_hour, hour) = (minute.0 / 60_000 % 60, minute.0 / 3_600_000 % 24);
    let more = format!(r#", "schedule": ["{of_hour} {hour} * * *"], "jitter": "1s""#);
    let names: Vec<String> = (0..JOBS).map(|number| format!("report-{number}")).collect();
    for some in names.chunks(500) {
        join_all(some.iter().map(|name| lead.apply(job(name, &more)))).await;
    }
    pass(minute.before(secs(15)).since(stage.wall())).await;
    minute
}

fn runs(lead: &Lead, moment: Timestamp) -> Vec<Run> {
    let mut runs = Vec::new();
    lead.show.board.look_at_all(|records| {
        let of_moment = records.runs.values().filter(|run| run.scheduled_at == moment);
        runs.extend(of_moment.map(|run| run.as_ref().clone()));
    });
    runs.sort_by_key(|run| (run.due_at, run.run_id.clone()));
    runs
}

fn decided(run: &Run) -> Timestamp {
    let intent =
        |noted: &Noted| matches!(noted, Noted::State { to: RunState::ContainerCreating, .. });
    run.timeline.iter().find(|entry| intent(&entry.noted)).unwrap().at
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_jobs_due_in_one_second_run_once_each_and_in_the_order_of_their_times() {
    let stage = Stage::new();
    stage.fake.state().manner = Manner::Held;
    let lead = stage.open().await;
    let minute = gather(&stage, &lead).await;
    stage.fake.state().launches.clear();
    pass(minute.after(secs(2)).since(stage.wall())).await;
    stage.fake.assert_launched_once();
    assert_eq!(stage.fake.state().launches.len(), JOBS, "all were launched");
    let runs = runs(&lead, minute);
    assert_eq!(runs.len(), JOBS, "one of each job");
    assert!(runs.iter().all(|run| run.state == RunState::Running && run.attempt == 0));
    let times: Vec<Timestamp> = runs.iter().map(decided).collect();
    assert!(times.is_sorted(), "who is due first is decided first");
    for (run, decided) in runs.iter().zip(&times) {
        let late = decided.0 - run.due_at.0;
        assert!((0..=2).contains(&late), "{} is {late} ms late", run.run_id);
    }
}

#[tokio::test(start_paused = true)]
async fn a_timer_that_is_called_off_leaves_the_queue() {
    let stage = Stage::new();
    stage.fake.state().manner = Manner::Held;
    let lead = stage.open().await;
    lead.apply(job("once", r#", "overlap": "allow", "start_timeout": "1h""#)).await;
    for drawn in 0..50 {
        lead.trigger("once", drawn, stage.wall()).await;
    }
    // Figures are made every half minute.
    pass(secs(31)).await;
    assert_eq!(stage.fake.state().launches.len(), 50);
    let stats = lead.scheduler.stats();
    let timers = stats.figures().iter().find(|figure| figure.name == "kapell_scheduler_timers");
    assert_eq!(timers.unwrap().value.to_bits(), 0.0_f64.to_bits(), "all have started");
}

#[tokio::test(start_paused = true)]
async fn what_is_to_begin_and_waits_to_be_stored_goes_by_what_was_decided_and_can_be_called_off() {
    let stage = Stage::new();
    stage.fake.state().manner = Manner::Held;
    let lead = stage.open().await;
    lead.apply(job("many", r#", "overlap": "allow""#)).await;
    let shard = |name: &str| shard_of(name, SHARDS);
    let elsewhere = |name: &String| shard(name) != shard("many");
    let names = (0..).map(|number| format!("late-{number}")).filter(elsewhere).take(3);
    let names: Vec<String> = names.collect();
    for name in &names {
        lead.apply(job(name, "")).await;
    }
    let due = stage.wall().after(secs(60));
    // More than are stored at once.
    for drawn in (0..5_000).step_by(500) {
        join_all((drawn..drawn + 500).map(|drawn| lead.trigger("many", drawn, due))).await;
    }
    let mut late = Vec::new();
    for name in &names {
        late.push(lead.trigger(name, 0, due.next()).await);
    }
    pass(due.before(secs(1)).since(stage.wall())).await;
    stage.theatre.store.next(Call::Commit, 1, Fault::Delay(secs(10)));
    pass(secs(5)).await;
    assert!(late.iter().all(|run_id| lead.run(run_id).state == RunState::PreRun));
    let [plain, changed, cancelled] = &late[..] else { unreachable!() };
    // Its time has come: it goes by what its job was then.
    let later = r#", "starting_deadline": "1s", "group": {"name": "slow", "limit": 1}"#;
    lead.apply(job(&names[1], later)).await;
    let (kind, why) = (StopKind::Graceful, "not needed".to_owned());
    lead.ask(JobRequest::Cancel { run_id: cancelled.clone(), kind, why }).await;
    pass(secs(10)).await;
    assert_eq!(lead.run(cancelled).state, RunState::Cancelled);
    assert_eq!((lead.run(changed).state, lead.run(changed).revision), (RunState::Running, 1));
    assert_eq!(lead.run(plain).state, RunState::Running);
    assert_eq!(decided(&lead.run(plain)), due.next(), "it was decided when it was due");
    let launched = |run_id: &_| {
        let launches = &stage.fake.state().launches;
        launches.iter().filter(|(attempt, _)| attempt.run_id == *run_id).count()
    };
    assert_eq!(late.iter().map(launched).collect::<Vec<_>>(), [1, 1, 0]);
    assert_eq!(stage.fake.state().launches.len(), 5_002);
}

#[tokio::test(start_paused = true)]
async fn a_start_that_is_heard_late_because_much_is_to_be_stored_was_in_time() {
    let stage = Stage::new();
    stage.fake.state().manner = Manner::NeverStarts;
    let lead = stage.open().await;
    lead.apply(job("many", r#", "overlap": "allow", "start_timeout": "30s""#)).await;
    let now = stage.wall();
    // More than are on their way at once and wait for that.
    for drawn in (0..10_000).step_by(500) {
        join_all((drawn..drawn + 500).map(|drawn| lead.trigger("many", drawn, now))).await;
    }
    pass(secs(5)).await;
    let launches: Vec<_> =
        stage.fake.state().launches.iter().map(|(attempt, _)| attempt.clone()).collect();
    assert_eq!(launches.len(), 10_000);
    stage.theatre.store.next(Call::Commit, 1, Fault::Delay(secs(60)));
    for attempt in &launches {
        stage.fake.start(attempt);
    }
    pass(secs(45)).await;
    let state_of = |attempt: &Attempt| lead.run(&attempt.run_id).state;
    assert!(launches.iter().all(|attempt| state_of(attempt) == RunState::ContainerCreating));
    pass(secs(30)).await;
    assert!(
        launches.iter().all(|attempt| state_of(attempt) == RunState::Running),
        "all had started"
    );
    assert!(stage.fake.state().stops.is_empty(), "none was taken for late");
}
