use kapell_core::board::{Refusal, Reply as BoardReply, Request};
use kapell_core::job::{JobRequest, PauseCause};
use kapell_core::run::{RunState, Trigger};
use kapell_node::board::Declined;

use super::desk::{job, run};
use super::*;

const NIGHTLY: &str = r#"{"job_id":"nightly","domain":"d","schedule":"30 2 * * *","timezone":"Europe/Berlin",
    "tags":["db"],"command":"backup","parameters":[{"name":"SIZE","default":"small","options":["small","large"]}]}"#;
const TASK: &str = r#"{"job_id":"on-cell","domain":"d","schedule":"@hourly","task":{"action":{"run":{"path":"true"}}}}"#;

fn asked(desk: &FakeDesk) -> Vec<JobRequest> {
    let requests = desk.take_asked().into_iter();
    requests.map(|it| if let Request::Job(it) = it { it } else { panic!("{it:?}") }).collect()
}

fn applied(json: &str, created: bool) -> BoardReply {
    let definition = kapell_core::manifest::read_job(json.as_bytes()).unwrap();
    BoardReply::Job { job: Box::new(job(&definition)), created }
}

#[tokio::test]
async fn a_job_is_made_and_changed_and_it_is_told_what_changed() {
    let (host, desk) = Host::with_board().await;
    desk.answers(Ok(applied(NIGHTLY, true)));
    let reply = host.send("POST", "/v1/jobs", NIGHTLY).await;
    assert_eq!(reply.status, 201);
    assert_eq!(reply.header("location"), Some("/v1/jobs/nightly"));
    let told = reply.json();
    assert_eq!((&told["job_id"], &told["changed"]), (&"nightly".into(), &serde_json::json!([])));
    assert_eq!(told["definition"]["schedule"], serde_json::json!(["30 2 * * *"]));
    desk.job(NIGHTLY);
    desk.answers(Ok(applied(NIGHTLY, false)));
    let same = host.send("POST", "/v1/jobs", NIGHTLY).await;
    assert_eq!((same.status, &same.json()["changed"]), (200, &serde_json::json!([])));
    desk.answers(Ok(applied(NIGHTLY, false)));
    let other = NIGHTLY.replace("30 2", "31 2").replace("backup", "restore");
    let changed = host.send("POST", "/v1/jobs", &other).await;
    assert_eq!(changed.json()["changed"], serde_json::json!(["command", "schedule"]));
    assert!(matches!(&asked(&desk)[..], [JobRequest::Apply { .. }, _, _]));
}

#[tokio::test]
async fn what_is_wrong_with_a_job_is_told_at_once_and_nothing_is_asked() {
    let (host, desk) = Host::with_board().await;
    let bad =
        r#"{"job_id":"a b","schedule":["61 * * * *"],"timezone":"Europe/Berln","comand":"x"}"#;
    let reply = host.send("POST", "/v1/jobs", bad).await;
    assert_eq!(reply.problem(), (422, "invalid".to_owned()));
    let problems = reply.json()["details"]["problems"].to_string();
    for part in ["comand", "command", "(line 1, column"] {
        assert!(problems.contains(part), "{part}: {problems}");
    }
    let reply = host.send("POST", "/v1/jobs", "{").await;
    assert_eq!(reply.problem(), (400, "bad_json".to_owned()));
    let zone = NIGHTLY.replace("Europe/Berlin", "Europe/Berln");
    let reply = host.send("POST", "/v1/jobs", &zone).await;
    assert!(reply.json()["message"].as_str().unwrap().contains("Europe/Berlin"), "{reply:?}");
    assert!(desk.take_asked().is_empty());
}

#[tokio::test]
async fn it_can_be_asked_whether_a_job_would_be_taken() {
    let (host, desk) = Host::with_board().await;
    assert_eq!(host.send("POST", "/v1/jobs?dry_run=true", NIGHTLY).await.status, 204);
    let bad = r#"{"job_id":"w","workflow":{"file":"/nowhere/flow.yaml"}}"#;
    let reply = host.send("POST", "/v1/jobs?dry_run=true", bad).await;
    assert_eq!(reply.problem(), (422, "invalid".to_owned()), "{reply:?}");
    assert!(desk.take_asked().is_empty(), "nothing was changed");
}

#[tokio::test]
async fn a_workflow_is_read_before_its_job_is_stored() {
    let (host, desk) = Host::with_board().await;
    for (workflow, want) in [
        (r#"{"text":"steps: 3"}"#, "workflow.text: "),
        (r#"{"file":"flow.yaml"}"#, "is not an absolute path on the hosts"),
        (r#"{"file":"/nowhere/flow.yaml"}"#, "`/nowhere/flow.yaml` cannot be read here"),
    ] {
        let body = format!(r#"{{"job_id":"w","schedule":"@daily","workflow":{workflow}}}"#);
        let reply = host.send("POST", "/v1/jobs", &body).await;
        assert_eq!(reply.problem(), (422, "invalid".to_owned()), "{reply:?}");
        assert!(reply.json()["message"].as_str().unwrap().contains(want), "{reply:?}");
    }
    assert!(desk.take_asked().is_empty());
}

#[tokio::test]
async fn jobs_that_kick_each_other_off_in_a_circle_are_refused() {
    let (host, desk) = Host::with_board().await;
    let kick = |id: &str, other: &str| {
        format!(
            r#"{{"job_id":"{id}","domain":"d","schedule":"@daily","command":"true","constraints":[
                {{"time_window":{{"config":{{"start":"00:00","end":"06:00"}},"onViolation":[{{"kickOffJob":{{"job":"{other}"}}}}]}}}}]}}"#
        )
    };
    desk.job(&kick("b", "c"));
    desk.job(&kick("c", "a"));
    let reply = host.send("POST", "/v1/jobs", &kick("a", "b")).await;
    assert_eq!(reply.problem(), (422, "invalid".to_owned()), "{reply:?}");
    let message = reply.json()["message"].as_str().unwrap().to_owned();
    assert!(message.contains("`a` → `b` → `c` → `a`"), "{message}");
    let itself = host.send("POST", "/v1/jobs", &kick("x", "x")).await;
    assert!(itself.json()["message"].as_str().unwrap().contains("`x` → `x`"), "{itself:?}");
    assert!(desk.take_asked().is_empty());
}

#[tokio::test]
async fn jobs_are_listed_by_domain_and_tag_with_their_next_and_last_runs() {
    let (host, desk) = Host::with_board().await;
    desk.job(NIGHTLY);
    desk.job(TASK);
    desk.job(r#"{"job_id":"other","domain":"e","command":"true"}"#);
    desk.run(run("nightly:60", RunState::Failed, 60_000));
    desk.run(run("nightly:90", RunState::Running, 90_000));
    let ids = async |path: &str| {
        let reply = host.get(path).await;
        assert_eq!(reply.header("kapell-event-id"), Some("7-0"), "{path}");
        let list = reply.json();
        let ids = list.as_array().unwrap().iter().map(|it| it["job_id"].as_str().unwrap());
        ids.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(ids("/v1/jobs").await, "nightly on-cell other");
    assert_eq!(ids("/v1/jobs?domain=d").await, "nightly on-cell");
    assert_eq!(ids("/v1/jobs?tag=db").await, "nightly");
    assert_eq!(ids("/v1/jobs?domain=e&tag=db").await, "");
    let job = host.get("/v1/jobs/nightly").await.json();
    assert_eq!(
        (&job["active_runs"], &job["last_run"]["run_id"]),
        (&1.into(), &"nightly:90".into())
    );
    assert!(job["next_at"].as_i64().unwrap() > desk.now().0, "{job}");
    assert_eq!(host.get("/v1/jobs/other").await.json().get("next_at"), None);
    desk.change_job("nightly", |job| {
        let cause = PauseCause::Person { who: "ann".to_owned() };
        job.paused = Some(kapell_core::job::Pause { at: Timestamp(5), cause, note: "n".into() });
    });
    assert_eq!(host.get("/v1/jobs/nightly").await.json().get("next_at"), None);
    assert_eq!(host.get("/v1/jobs/none").await.problem(), (404, "not_found".to_owned()));
}

#[tokio::test]
async fn a_job_is_paused_resumed_and_deleted() {
    let (host, desk) = Host::with_board().await;
    desk.job(NIGHTLY);
    assert_eq!(
        host.send("POST", "/v1/jobs/nightly/pause", r#"{"note":"moving"}"#).await.status,
        200
    );
    assert_eq!(host.ask("POST", "/v1/jobs/nightly/pause", "").await.status, 200);
    assert_eq!(host.ask("POST", "/v1/jobs/nightly/resume", "").await.status, 200);
    assert_eq!(host.ask("DELETE", "/v1/jobs/nightly?cancel_runs=true", "").await.status, 204);
    let who = "state directory".to_owned();
    let (job_id, cause) = ("nightly".into(), PauseCause::Person { who });
    let want = [
        JobRequest::Pause { job_id, cause: cause.clone(), note: "moving".to_owned() },
        JobRequest::Pause { job_id: "nightly".into(), cause, note: String::new() },
        JobRequest::Resume { job_id: "nightly".into() },
        JobRequest::Remove { job_id: "nightly".into(), cancel_runs: true },
    ];
    assert_eq!(asked(&desk), want);
    for (path, body) in [("/v1/jobs/none/pause", "{}"), ("/v1/jobs/none/trigger", "{}")] {
        assert_eq!(host.send("POST", path, body).await.problem(), (404, "not_found".to_owned()));
    }
    let wrong = host.send("POST", "/v1/jobs/nightly/pause", r#"{"nota":"x"}"#).await;
    assert_eq!(wrong.problem(), (400, "bad_json".to_owned()));
}

#[tokio::test]
async fn a_run_by_hand_has_its_parameters_checked() {
    let (host, desk) = Host::with_board().await;
    desk.job(NIGHTLY);
    let wrong = host.send(
        "POST",
        "/v1/jobs/nightly/trigger",
        r#"{"parameters":{"SIZ":"x","SIZE":"huge"}}"#,
    );
    let wrong = wrong.await;
    assert_eq!(wrong.problem(), (422, "invalid".to_owned()));
    assert_eq!(wrong.json()["details"]["problems"].as_array().unwrap().len(), 2, "{wrong:?}");
    assert!(desk.take_asked().is_empty());
    host.send("POST", "/v1/jobs/nightly/trigger", r#"{"parameters":{"SIZE":"large"}}"#).await;
    host.ask("POST", "/v1/jobs/nightly/trigger", "").await;
    let asked = asked(&desk);
    let [JobRequest::Trigger { run: large, .. }, JobRequest::Trigger { run: small, .. }] =
        &asked[..]
    else {
        panic!("{asked:?}")
    };
    assert_eq!(
        (&large.parameters["SIZE"], &small.parameters["SIZE"]),
        (&"large".into(), &"small".into())
    );
    assert_eq!(large.trigger, Trigger::Manual { who: "state directory".into() });
    assert_ne!(large.run_id, small.run_id);
}

#[tokio::test]
async fn past_moments_are_made_up_for_or_only_told() {
    let (host, desk) = Host::with_board().await;
    desk.job(NIGHTLY);
    let body = r#"{"from":"2026-03-27","to":"2026-03-31 00:00","dry_run":true}"#;
    let told = host.send("POST", "/v1/jobs/nightly/backfill", body).await.json();
    let at: Vec<i64> = told["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["scheduled_at"].as_i64().unwrap())
        .collect();
    // At 02:30 in Berlin; on 29 March 2026 that is left out, and the first instant is 03:00 CEST.
    assert_eq!(at, [1_774_575_000_000, 1_774_661_400_000, 1_774_746_000_000, 1_774_830_600_000]);
    assert_eq!(told["timezone"], "Europe/Berlin");
    assert!(desk.take_asked().is_empty());
    let made = host.send("POST", "/v1/jobs/nightly/backfill", &body.replace("true", "false")).await;
    assert_eq!(made.status, 200);
    let asked = asked(&desk);
    assert_eq!(asked.len(), 4);
    assert!(
        matches!(&asked[0], JobRequest::Trigger { run, .. } if run.parameters["SIZE"] == "small")
    );
    for (body, want) in [
        (r#"{"from":"soon","to":"2026-03-31"}"#, "from: `soon` is no time"),
        (r#"{"from":"2026-03-31","to":"2026-03-30"}"#, "`from` must be before `to`"),
        (r#"{"from":0,"to":99999999999999}"#, "`to` must not be later than now"),
    ] {
        let reply = host.send("POST", "/v1/jobs/nightly/backfill", body).await;
        assert_eq!(reply.problem(), (422, "invalid".to_owned()), "{body}");
        assert!(reply.json()["message"].as_str().unwrap().contains(want), "{reply:?}");
    }
}

const FOUR_DAYS: &str = r#"{"from":"2026-03-27","to":"2026-03-31 00:00"}"#;

/// The ids of the runs that were asked for.
fn triggered(desk: &FakeDesk) -> Vec<String> {
    let ids = asked(desk).into_iter().map(|it| {
        let JobRequest::Trigger { run, .. } = &it else { panic!("{it:?}") };
        run.run_id.to_string()
    });
    ids.collect()
}

#[tokio::test]
async fn a_backfill_that_meets_a_busy_board_makes_each_run_once() {
    let (host, desk) = Host::with_board().await;
    desk.job(NIGHTLY);
    let done = || Ok(BoardReply::Done);
    let full = || Err(Declined::ReadOnly("full".to_owned()));
    for answer in [done(), Err(Declined::Busy), done(), full(), Err(Declined::Busy), done()] {
        desk.answers(answer);
    }
    let reply = host.send("POST", "/v1/jobs/nightly/backfill", FOUR_DAYS).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let mut asked = triggered(&desk);
    assert_eq!(asked.len(), 7);
    asked.dedup();
    assert_eq!(asked.len(), 4, "the same run is asked for again");
}

#[tokio::test]
async fn a_backfill_that_is_asked_for_again_makes_nothing_twice_unless_that_is_wanted() {
    let (host, desk) = Host::with_board().await;
    desk.job(NIGHTLY);
    let path = "/v1/jobs/nightly/backfill";
    desk.answers(Ok(BoardReply::Done));
    // Of the second one nobody knows for as long as anybody waits.
    for _ in 0..100 {
        desk.answers(Err(Declined::Busy));
    }
    let reply = host.send("POST", path, FOUR_DAYS).await;
    assert_eq!(reply.problem(), (429, "busy".to_owned()));
    let told = reply.json();
    assert!(told["message"].as_str().unwrap().starts_with("1 of 4 runs are there"), "{told}");
    assert_eq!((&told["details"]["made"], &told["details"]["of"]), (&1.into(), &4.into()));
    desk.answers.lock().unwrap().clear();
    let first = triggered(&desk)[0].clone();
    // It is there now, and the board says so.
    let mut made = run(&first, RunState::PreRun, 1_774_575_000_000);
    made.trigger = Trigger::Backfill { who: "another".into() };
    made.parameters.insert("SIZE".to_owned(), "small".to_owned());
    desk.run(made);
    let exists = || {
        let (text, fields) = ("it is there already".to_owned(), Vec::new());
        Err(Declined::Refused(Refusal::Exists { text, fields }))
    };
    desk.answers(exists());
    let told = host.send("POST", path, FOUR_DAYS).await.json();
    let there: Vec<bool> =
        told["runs"].as_array().unwrap().iter().map(|it| it["there"] == true).collect();
    assert_eq!(there, [true, false, false, false]);
    let again = triggered(&desk);
    assert_eq!((again.len(), &again[0]), (4, &first));
    let keyed = FOUR_DAYS.replace("00\"}", "00\",\"key\":\"once more\"}");
    assert_eq!(host.send("POST", path, &keyed).await.status, 200);
    let anew = triggered(&desk);
    assert!(anew.len() == 4 && anew.iter().all(|it| !again.contains(it)), "{anew:?}");
    // One of that id that is none of a backfill's is no run of it.
    desk.run(run(&first, RunState::PreRun, 1_774_575_000_000));
    desk.answers(exists());
    assert_eq!(host.send("POST", path, FOUR_DAYS).await.problem(), (409, "exists".to_owned()));
}

#[tokio::test]
async fn the_next_moments_are_told() {
    let (host, desk) = Host::with_board().await;
    desk.job(NIGHTLY);
    let next = host.get("/v1/jobs/nightly/next?n=3").await.json();
    assert_eq!(next["timezone"], "Europe/Berlin");
    let moments = next["moments"].as_array().unwrap();
    assert_eq!(moments.len(), 3);
    assert!(moments[0]["at"].as_i64() < moments[1]["at"].as_i64());
    assert_eq!(next.get("hold"), None);
    let hold = async || host.get("/v1/jobs/nightly/next?n=1").await.json()["hold"].clone();
    desk.change_job("nightly", |job| job.skip_next = 2);
    assert_eq!(hold().await, "the next 2 moments are passed over by actions (skipNextInstance)");
    desk.change_job("nightly", |job| {
        let cause = PauseCause::Person { who: "ann".to_owned() };
        job.paused = Some(kapell_core::job::Pause { at: Timestamp(5), cause, note: "n".into() });
    });
    assert_eq!(hold().await, "nothing is scheduled: paused by ann: n");
    assert_eq!(
        host.get("/v1/jobs/nightly/next").await.json()["moments"].as_array().unwrap().len(),
        20
    );
    for n in ["0", "1001", "x"] {
        let reply = host.get(&format!("/v1/jobs/nightly/next?n={n}")).await;
        assert_eq!(reply.problem(), (400, "bad_parameter".to_owned()), "{n}");
    }
}

#[tokio::test]
async fn it_is_explained_why_a_job_did_or_did_not_run() {
    let (host, desk) = Host::with_board().await;
    desk.job(NIGHTLY);
    let why = host.get("/v1/explain/job/nightly").await.json();
    assert_eq!(
        (&why["subject"], &why["summary"]),
        (&"job/nightly".into(), &"job `nightly`: it is scheduled".into())
    );
    let inputs = why["inputs"].as_array().unwrap();
    assert!(
        inputs.iter().any(|it| it["name"] == "timezone" && it["value"] == "Europe/Berlin"),
        "{why}"
    );
    assert!(why["next_try_at"].as_i64().unwrap() > desk.now().0);
    let past = host.get("/v1/explain/job/nightly?at=1970-01-01%2000:00").await.json();
    assert_eq!(past["facts"][0], "1970-01-01 02:30:00 CET due: a moment of its schedule", "{past}");
    let wrong = host.get("/v1/explain/job/nightly?at=soon").await;
    assert_eq!(wrong.problem(), (400, "bad_parameter".to_owned()));
    assert_eq!(host.get("/v1/explain/job/none").await.problem(), (404, "not_found".to_owned()));
}
