//! Jobs and runs over commits and leaders.

use kapell_core::board::{JobId, Record, RecordKey, Records, Reply, Request, shard_of};
use kapell_core::job::{JobDefinition, JobRequest, NewRun, SchedulerNews};
use kapell_core::run::{RunId, RunState, Trigger};
use kapell_core::seams::Timestamp;
use kapell_core::seat::Epoch;
use kapell_store::Shards as _;
use kapell_store::model::{Commit, Fence, Key, Op, SHARDS, Shard};

use super::theatre::{SEAT, Show, Theatre, pass, secs};
use crate::testing::eventually;

fn job() -> JobId {
    "j".into()
}

async fn ask(show: &Show, request: JobRequest) -> Reply {
    show.board.ask(Request::Job(request)).await.unwrap()
}

async fn apply(show: &Show) {
    let text = r#"{"job_id":"j","schedule":["* * * * *"],"command":{"command":"true"}}"#;
    let definition: JobDefinition = serde_json::from_str(text).unwrap();
    ask(show, JobRequest::Apply { definition: Box::new(definition) }).await;
}

fn stands(show: &Show) -> Timestamp {
    show.board.look("j", |records| records.stands(&records.jobs[&job()]))
}

/// Makes the run of the next whole minute.
async fn make(show: &Show) -> RunId {
    let from = stands(show);
    let at = Timestamp((from.0 / 60_000 + 1) * 60_000);
    let run_id = RunId::scheduled(&job(), at);
    let run = NewRun {
        run_id: run_id.clone(),
        scheduled_at: at,
        due_at: at,
        trigger: Trigger::Schedule,
        parameters: std::collections::BTreeMap::new(),
    };
    ask(show, JobRequest::Advance { job_id: job(), from, to: at, runs: vec![run], passed: vec![] })
        .await;
    run_id
}

fn all(show: &Show) -> Vec<Records> {
    let mut all = Vec::new();
    show.board.look_at_all(|records| all.push(records.clone()));
    all
}

#[tokio::test(start_paused = true)]
async fn the_scheduler_is_told_of_what_is_committed_from_the_beginning_and_only_one_is() {
    let theatre = Theatre::new();
    let show = theatre.open().await;
    apply(&show).await;
    let mut news = show.board.scheduler_news().unwrap();
    assert!(show.board.scheduler_news().is_none());
    let run_id = make(&show).await;
    assert_eq!(news.recv().await, Some(SchedulerNews::Applied { job_id: job() }));
    assert_eq!(news.recv().await, Some(SchedulerNews::Made { run_id }));
    assert!(news.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_new_leader_knows_jobs_and_runs_and_where_they_stand() {
    let theatre = Theatre::new();
    let show = theatre.open().await;
    apply(&show).await;
    make(&show).await;
    make(&show).await;
    let (before, stood) = (all(&show), stands(&show));
    show.close().await;
    let show = theatre.open().await;
    assert_eq!((all(&show), stands(&show)), (before, stood));
}

#[tokio::test(start_paused = true)]
async fn what_a_leader_left_of_a_deleted_job_goes_with_the_next_one() {
    let theatre = Theatre::new();
    let show = theatre.open().await;
    apply(&show).await;
    show.close().await;
    // It was deleted, and the leader was gone before the rest was.
    let show = theatre.open().await;
    let mut record = show.board.look("j", |records| records.jobs[&job()].clone());
    show.close().await;
    record.removed = true;
    let shard = Shard { seat: SEAT, number: shard_of("j", SHARDS) };
    let fence = theatre.mem.fence(shard).await.unwrap();
    let record = Record::Job(Box::new(record));
    let ops = [Op::Put(Key::new(record.key().encode()), record.encode())];
    assert_eq!(theatre.mem.commit(shard, fence, &ops).await.unwrap(), Commit::Done);
    let show = theatre.open().await;
    let gone = || {
        show.board.look("j", |records| records.jobs.is_empty() && records.definitions.is_empty())
    };
    eventually("it is gone", secs(5), async || gone()).await;
}

/// Otherwise its moment would be due once more.
#[tokio::test(start_paused = true)]
async fn the_moment_of_a_run_that_cannot_be_read_is_not_due_again() {
    let theatre = Theatre::new();
    let show = theatre.open().await;
    apply(&show).await;
    let run_id = make(&show).await;
    let stood = stands(&show);
    show.close().await;
    let shard = Shard { seat: SEAT, number: shard_of("j", SHARDS) };
    let fence: Fence = theatre.mem.fence(shard).await.unwrap();
    assert_eq!(fence.epoch, Epoch(1));
    let key = RecordKey::Run(run_id.clone()).encode();
    let ops = [Op::Put(Key::new(key), b"r\x01{".to_vec())];
    assert_eq!(theatre.mem.commit(shard, fence, &ops).await.unwrap(), Commit::Done);
    let show = theatre.open().await;
    assert_eq!((stands(&show), show.board.set_aside_count()), (stood, 1));
    let state = show.board.look("j", |records| records.runs[&run_id].state);
    assert_eq!(state, RunState::Orphaned);
    pass(secs(1)).await;
}
