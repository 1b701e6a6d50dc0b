use std::path::PathBuf;

use async_trait::async_trait;
use kapell_api::v1::{SchedulerStats, WebhookDelivery};
use kapell_core::board::{JobId, Request};
use kapell_core::job::JobRequest;
use kapell_core::log::{Frame, Stream};
use kapell_core::run::{Doing, Entry, Noted, RunId, RunState, Sight, StopKind, Timer, Trigger};
use kapell_node::cell::ContainerLogs;
use kapell_node::scheduler::RunView;

use super::desk::run;
use super::*;

const JOB: &str =
    r#"{"job_id":"j","domain":"d","schedule":"@hourly","timezone":"Asia/Tokyo","command":"true"}"#;

/// A scheduler that keeps the logs of one directory.
#[derive(Debug)]
struct FakeScheduler {
    dir: PathBuf,
    live: Mutex<Option<RunView>>,
}

impl FakeScheduler {
    fn dir(&self, run_id: &RunId, attempt: u32) -> PathBuf {
        self.dir.join(run_id.as_str()).join(attempt.to_string())
    }

    fn wrote(&self, run_id: &str, attempt: u32, text: &str) {
        let part = self.dir(&RunId::parse(run_id).unwrap(), attempt).join("main");
        std::fs::create_dir_all(&part).unwrap();
        let bytes = text.as_bytes().to_vec();
        let frame = Frame { stream: Stream::Out, at: Timestamp(7), bytes };
        std::fs::write(part.join("00000001.log"), frame.encode()).unwrap();
    }
}

#[async_trait]
impl Scheduler for FakeScheduler {
    fn log(&self, run_id: &RunId, attempt: u32) -> Option<ContainerLogs> {
        let dir = self.dir(run_id, attempt);
        dir.exists().then(|| ContainerLogs { parts: vec![dir.join("main")], dir })
    }

    async fn live(&self, _run_id: &RunId) -> Option<RunView> {
        self.live.lock().unwrap().clone()
    }

    fn stats(&self) -> SchedulerStats {
        SchedulerStats { active: [("Running".to_owned(), 2)].into(), ..SchedulerStats::default() }
    }

    fn metrics(&self, _job_id: &JobId) -> Vec<(String, f64)> {
        vec![("late_reports".to_owned(), 3.0)]
    }

    fn deliveries(&self) -> Vec<WebhookDelivery> {
        let delivery = |job: &str| WebhookDelivery {
            webhook_id: format!("msg-{job}"),
            job_id: job.into(),
            run_id: RunId::parse(&format!("{job}:1")).unwrap(),
            what: "onMet webhook of time_window".to_owned(),
            place: "https://hooks.example:443".to_owned(),
            asked_at: Timestamp(1),
            attempts: 1,
            last_at: None,
            status: Some(200),
            state: "delivered".to_owned(),
            why: String::new(),
        };
        vec![delivery("j"), delivery("gone")]
    }
}

fn scheduler(host: &Host) -> (tempfile::TempDir, Arc<FakeScheduler>) {
    let dir = tempfile::tempdir().unwrap();
    let scheduler = Arc::new(FakeScheduler { dir: dir.path().to_owned(), live: Mutex::default() });
    *host.face.scheduler.lock().unwrap() = Some(Arc::clone(&scheduler) as Arc<dyn Scheduler>);
    (dir, scheduler)
}

#[tokio::test]
async fn runs_are_filtered_and_the_latest_comes_first() {
    let (host, desk) = Host::with_board().await;
    desk.job(JOB);
    desk.run(run("j:9", RunState::Completed, 9_000));
    desk.run(run("j:100", RunState::Running, 100_000));
    desk.run(run("j:50-beef", RunState::Failed, 50_000));
    let mut other = run("k:70", RunState::PreRun, 70_000);
    other.domain = "e".into();
    desk.run(other);
    let ids = async |path: &str| {
        let list = host.get(path).await.json();
        let ids = list.as_array().unwrap().iter().map(|it| it["run_id"].as_str().unwrap());
        ids.collect::<Vec<_>>().join(" ")
    };
    for (query, want) in [
        ("", "j:100 k:70 j:50-beef j:9"),
        ("?job=j", "j:100 j:50-beef j:9"),
        ("?job=j&state=FAILED", "j:50-beef"),
        ("?active=true", "j:100 k:70"),
        ("?active=false", "j:50-beef j:9"),
        ("?domain=e", "k:70"),
        ("?limit=2", "j:100 k:70"),
        ("?before=70000", "j:50-beef j:9"),
        ("?job=j&active=true&before=1", ""),
        ("?job=none", ""),
    ] {
        assert_eq!(ids(&format!("/v1/runs{query}")).await, want, "{query}");
    }
    for query in ["state=Done", "active=maybe", "limit=0", "limit=10001", "before=x", "x=1"] {
        assert_eq!(host.get(&format!("/v1/runs?{query}")).await.status, 400, "{query}");
    }
}

/// A run that takes actions: stored as one that waits for its time.
fn acting(desk: &FakeDesk, id: &str, state: RunState) {
    let run = run(id, RunState::PreRun, 100_000);
    let sight = Sight {
        state,
        previous_state: RunState::ConditionRunning,
        attempt: 0,
        since: Timestamp(101_000),
        why: "taking actions".into(),
        doing: Some(Box::new(Doing {
            what: "action `delay` of `a`".to_owned(),
            since: Timestamp(102_000),
        })),
    };
    desk.sights.put(&run.run_id, sight);
    desk.run(run);
}

#[tokio::test]
async fn a_run_is_seen_as_it_stands_in_lists_alone_explained_and_beside_its_job() {
    let (host, desk) = Host::with_board().await;
    desk.job(JOB);
    desk.run(run("j:50", RunState::PreRun, 50_000));
    acting(&desk, "j:100", RunState::ActionRunning);
    let ids = async |query: &str| {
        let list = host.get(&format!("/v1/runs?{query}")).await.json();
        let ids = list.as_array().unwrap().iter().map(|it| it["run_id"].as_str().unwrap());
        ids.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(ids("state=actionrunning").await, "j:100");
    assert_eq!(ids("state=ActionRunning&job=j").await, "j:100");
    assert_eq!(ids("state=PreRun").await, "j:50");
    assert_eq!(ids("active=true").await, "j:100 j:50");
    let list = host.get("/v1/runs?limit=1").await.json();
    let reason = "taking actions: action `delay` of `a`";
    assert_eq!((&list[0]["state"], &list[0]["reason"]), (&"ActionRunning".into(), &reason.into()));
    assert_eq!(list[0]["live"]["doing"]["since"], 102_000);
    let one = host.get("/v1/runs/j:100").await.json();
    assert_eq!((&one["state"], &one["live"]["since"]), (&"ActionRunning".into(), &101_000.into()));
    let job = host.get("/v1/jobs/j").await.json();
    assert_eq!(job["last_run"]["state"], "ActionRunning", "{job}");
    assert_eq!(job["active_runs"], 2);
    let why = host.get("/v1/explain/job/j").await.json();
    let facts = why["facts"].as_array().unwrap();
    let told = format!("run `j:100` has actions taken: {reason}");
    assert!(facts.iter().any(|fact| fact.as_str().unwrap().ends_with(&told)), "{why}");
}

#[tokio::test]
async fn what_its_leader_knows_of_a_run_is_told_with_its_timeline() {
    let (host, desk) = Host::with_board().await;
    let (_dir, scheduler) = scheduler(&host);
    desk.job(JOB);
    acting(&desk, "j:100", RunState::ActionRunning);
    let noted = Noted::State { to: RunState::Pending, why: "its time has come".into() };
    *scheduler.live.lock().unwrap() = Some(RunView {
        run_id: RunId::parse("j:100").unwrap(),
        state: RunState::ActionRunning,
        previous_state: RunState::ActionPending,
        holds_place: true,
        attempt: 0,
        scheduled_at: Timestamp(100_000),
        due_at: Timestamp(100_000),
        since: Timestamp(101_000),
        started_at: None,
        heartbeats: 4,
        timer: Some((Timer::Deadline, Timestamp(200_000))),
        noted: vec![Entry { at: Timestamp(100_500), attempt: 0, noted }],
    });
    let one = host.get("/v1/runs/j:100").await.json();
    assert_eq!(one["timeline"][0]["why"], "its time has come", "{one}");
    let live = &one["live"];
    assert_eq!(
        (&live["heartbeats"], &live["timer"]["what"]),
        (&4.into(), &"starting_deadline".into())
    );
    let why = host.get("/v1/explain/run/j:100").await.json();
    let facts = why["facts"].to_string();
    assert!(why["summary"].as_str().unwrap().contains("has actions taken"), "{why}");
    for part in [
        "Pending: its time has come",
        "now: ActionRunning for",
        "action `delay` of `a`, for",
        "next: starting_deadline at",
        "signs of life so far: 4",
    ] {
        assert!(facts.contains(part), "{part}: {why}");
    }
    desk.run(run("j:100", RunState::Completed, 100_000));
    let ended = host.get("/v1/runs/j:100").await.json();
    assert_eq!((&ended["state"], ended.get("live")), (&"Completed".into(), None));
}

#[tokio::test]
async fn the_id_of_a_run_is_one_name_plain_and_encoded() {
    let (host, desk) = Host::with_board().await;
    desk.job(JOB);
    desk.run(run("j:100-beef", RunState::Completed, 100_000));
    for path in ["/v1/runs/j:100-beef", "/v1/runs/j%3A100-beef", "/v1/runs/j%3a100%2Dbeef"] {
        let run = host.get(path).await.json();
        assert_eq!(run["run_id"], "j:100-beef", "{path}");
        assert_eq!((&run["job_id"], &run["timezone"]), (&"j".into(), &"Asia/Tokyo".into()));
        let why = host.get(&path.replace("/v1/runs", "/v1/explain/run")).await.json();
        assert_eq!(why["summary"], "run `j:100-beef` succeeded", "{path}");
    }
    for path in
        ["/v1/runs/j", "/v1/runs/j:1", "/v1/runs/j:x", "/v1/runs/j:100-beef:2", "/v1/runs/:1"]
    {
        assert_eq!(host.get(path).await.problem(), (404, "not_found".to_owned()), "{path}");
    }
}

#[tokio::test]
async fn a_run_is_cancelled_and_done_once_more() {
    let (host, desk) = Host::with_board().await;
    desk.job(JOB);
    desk.run(run("j:100", RunState::Running, 100_000));
    let mut ended = run("j:50", RunState::Failed, 50_000);
    ended.parameters.insert("A".into(), "1".into());
    desk.run(ended);
    assert_eq!(host.send("POST", "/v1/runs/j:100/cancel", r#"{"at_once":true}"#).await.status, 200);
    assert_eq!(host.ask("POST", "/v1/runs/j%3A100/cancel", "").await.status, 200);
    let early = host.ask("POST", "/v1/runs/j:100/retry", "").await;
    assert_eq!(early.problem(), (409, "state".to_owned()));
    host.ask("POST", "/v1/runs/j:50/retry", "").await;
    let asked = desk.take_asked();
    let [Request::Job(now), Request::Job(then), Request::Job(JobRequest::Trigger { run, .. })] =
        &asked[..]
    else {
        panic!("{asked:?}")
    };
    let cancel = |kind| JobRequest::Cancel {
        run_id: RunId::parse("j:100").unwrap(),
        kind,
        why: "cancelled by state directory".to_owned(),
    };
    assert_eq!((now, then), (&cancel(StopKind::AtOnce), &cancel(StopKind::Graceful)));
    let of = RunId::parse("j:50").unwrap();
    assert_eq!(run.trigger, Trigger::Retry { of, who: "state directory".into() });
    assert_eq!((run.scheduled_at, &run.parameters["A"]), (Timestamp(50_000), &"1".into()));
    assert!(run.run_id.as_str().starts_with("j:50-"), "{}", run.run_id);
}

#[tokio::test]
async fn the_decisions_about_a_run_are_told_in_the_zone_of_its_job() {
    let (host, desk) = Host::with_board().await;
    desk.job(JOB);
    let mut one = run("j:100", RunState::Failed, 100_000);
    one.reason = "exit code 3".to_owned();
    let noted =
        Noted::Constraint { name: "time_window".into(), met: false, message: "too early".into() };
    one.timeline.push(Entry { at: Timestamp(101_000), attempt: 0, noted });
    desk.run(one);
    let why = host.get("/v1/explain/run/j:100").await.json();
    assert_eq!(why["summary"], "run `j:100` failed: exit code 3");
    assert_eq!(why["facts"][0], "1970-01-01 09:01:40 JST due: a run was made for it", "{why}");
    assert_eq!(
        why["facts"][1],
        "1970-01-01 09:01:41 JST constraint: `time_window` is not met: too early"
    );
    assert_eq!(why["remedies"][0], "`kapell run retry j:100` has it done once more");
}

#[tokio::test]
async fn what_an_attempt_wrote_is_read_and_followed_to_its_end() {
    let (host, desk) = Host::with_board().await;
    let (_dir, scheduler) = scheduler(&host);
    desk.job(JOB);
    let mut ended = run("j:100", RunState::Completed, 100_000);
    ended.attempt = 1;
    desk.run(ended);
    scheduler.wrote("j:100", 0, "first\n");
    scheduler.wrote("j:100", 1, "<second>\n");
    for (query, want) in [
        ("", "<second>\n"),
        ("?attempt=0", "first\n"),
        ("?follow=true", "<second>\n"),
        ("?attempt=0&tail=1&follow=true", "first\n"),
    ] {
        let reply = host.get(&format!("/v1/runs/j:100/logs{query}")).await;
        assert_eq!(reply.status, 200, "{query}");
        assert!(reply.body.contains(want), "{query}: {reply:?}");
    }
    let events = host.get("/v1/runs/j:100/logs?format=events").await;
    assert!(
        events.body.contains(r#"data: {"at":7,"stream":"stdout","text":"<second>\n"}"#),
        "{events:?}"
    );
    assert!(events.body.contains("event: end"), "{events:?}");
    for (query, status) in [("?attempt=2", 404), ("?attempt=x", 400), ("?format=x", 400)] {
        assert_eq!(
            host.get(&format!("/v1/runs/j:100/logs{query}")).await.status,
            status,
            "{query}"
        );
    }
    desk.run(run("j:200", RunState::Completed, 200_000));
    assert_eq!(host.get("/v1/runs/j:200/logs").await.problem(), (404, "not_found".to_owned()));
    assert_eq!(host.get("/v1/runs/j:1/logs").await.problem(), (404, "not_found".to_owned()));
}

#[tokio::test]
async fn the_scheduler_tells_its_figures_and_its_messages_once_it_has_begun() {
    let (host, desk) = Host::with_board().await;
    for path in ["/v1/scheduler/stats", "/v1/webhooks/deliveries"] {
        let reply = host.get(path).await;
        assert_eq!(reply.problem(), (503, "starting".to_owned()), "{path}");
    }
    let _kept = scheduler(&host);
    desk.job(JOB);
    assert_eq!(host.get("/v1/scheduler/stats").await.json()["active"]["Running"], 2);
    let deliveries = host.get("/v1/webhooks/deliveries").await.json();
    assert_eq!(deliveries[0]["webhook_id"], "msg-j");
    assert_eq!(deliveries.as_array().unwrap().len(), 2);
    for (query, want) in
        [("job=j", "msg-j"), ("run=gone:1", "msg-gone"), ("job=gone&run=gone:1", "msg-gone")]
    {
        let found = host.get(&format!("/v1/webhooks/deliveries?{query}")).await.json();
        assert_eq!(found.as_array().unwrap().len(), 1, "{query}");
        assert_eq!(found[0]["webhook_id"], want, "{query}");
    }
}

#[tokio::test]
async fn pages_show_how_a_run_stands_its_log_its_messages_and_the_figures_of_its_job() {
    let (host, desk) = Host::with_board().await;
    let _kept = scheduler(&host);
    desk.job(JOB);
    acting(&desk, "j:1", RunState::ActionRunning);
    let page = host.get("/run/j:1").await.body;
    for part in [
        "ActionRunning</span>",
        "Now: action <code>delay</code> of <code>a</code>",
        "onMet webhook of time_window",
        "data-source=\"/v1/runs/j:1/logs\"",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let fragment = host.get("/fragments/run/j:1").await.body;
    assert!(!fragment.contains("data-source"), "what is fetched anew has no log in it");
    let page = host.get("/job/j").await.body;
    for part in ["<dt>late_reports</dt><dd>3</dd>", "Messages", "https://hooks.example:443"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    desk.run(run("j:7", RunState::Completed, 7_000));
    let page = host.get("/run/j:7").await.body;
    assert!(!page.contains("data-source"), "it ended without having written anything: {page}");
}
