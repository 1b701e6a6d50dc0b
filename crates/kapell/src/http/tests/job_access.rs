//! Who may do what with jobs and runs.

use kapell_core::access::Purpose;
use kapell_core::board::{Domain, Request};
use kapell_core::job::JobRequest;
use kapell_core::run::RunState;
use kapell_node::access::Wanted;
use kapell_node::system::{SystemClock, SystemIds};
use kapell_store::mem::Mem;

use super::access::ask;
use super::desk::run;
use super::*;

async fn scene() -> (Host, Arc<FakeDesk>, Arc<Ledger>) {
    let (host, desk) = Host::with_board().await;
    let store = Arc::new(Mem::new(Arc::new(SystemClock)));
    let ledger = Ledger::open(store, Arc::new(SystemClock), Arc::new(SystemIds)).await.unwrap();
    let ledger = Arc::new(ledger);
    *host.face.ledger.lock().unwrap() = Some(Arc::clone(&ledger));
    for domain in ["a", "b"] {
        desk.job(&task_job(&format!("job-{domain}"), domain));
        let mut one = run(&format!("job-{domain}:60"), RunState::Running, 60_000);
        one.domain = domain.into();
        desk.run(one);
    }
    (host, desk, ledger)
}

fn task_job(id: &str, domain: &str) -> String {
    format!(
        r#"{{"job_id":"{id}","domain":"{domain}","schedule":"@hourly","task":{{"action":{{"run":{{"path":"true"}}}}}}}}"#
    )
}

async fn token(ledger: &Ledger, purpose: Purpose, domains: Option<&str>) -> String {
    let domains = domains.map(|it| [Domain::from(it)].into());
    let (name, ttl) = ("ann".to_owned(), Duration::from_secs(60));
    let wanted = Wanted { purpose, domains, name, ttl, cell_id: None };
    key().sign(&ledger.issue(wanted).await.unwrap().claims)
}

#[tokio::test]
async fn jobs_and_runs_of_other_domains_are_not_there() {
    let (host, desk, ledger) = scene().await;
    let operator = token(&ledger, Purpose::Operator, Some("a")).await;
    let names = async |path: &str, key: &str| {
        let list = ask(host.at(), &operator, "GET", path, "").await.json();
        let all = list.as_array().unwrap().iter().map(|it| it[key].as_str().unwrap().to_owned());
        all.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names("/v1/jobs", "job_id").await, "job-a");
    assert_eq!(names("/v1/jobs?domain=b", "job_id").await, "");
    assert_eq!(names("/v1/runs", "run_id").await, "job-a:60");
    assert_eq!(names("/v1/runs?job=job-b", "run_id").await, "");
    for (method, path) in [
        ("GET", "/v1/jobs/job-b"),
        ("GET", "/v1/jobs/job-b/next"),
        ("GET", "/v1/explain/job/job-b"),
        ("GET", "/v1/explain/run/job-b:60"),
        ("GET", "/v1/runs/job-b:60"),
        ("GET", "/v1/runs/job-b:60/logs"),
        ("DELETE", "/v1/jobs/job-b"),
        ("POST", "/v1/jobs/job-b/pause"),
        ("POST", "/v1/jobs/job-b/resume"),
        ("POST", "/v1/jobs/job-b/trigger"),
        ("POST", "/v1/runs/job-b:60/cancel"),
        ("POST", "/v1/runs/job-b:60/retry"),
    ] {
        let reply = ask(host.at(), &operator, method, path, "").await;
        assert_eq!(reply.problem(), (404, "not_found".to_owned()), "{method} {path}");
    }
    let body = r#"{"from":1,"to":2}"#;
    let reply = ask(host.at(), &operator, "POST", "/v1/jobs/job-b/backfill", body).await;
    assert_eq!(reply.problem(), (404, "not_found".to_owned()));
    assert!(desk.take_asked().is_empty());
    assert_eq!(ask(host.at(), &operator, "POST", "/v1/jobs/job-a/resume", "").await.status, 200);
    assert!(matches!(&desk.take_asked()[..], [Request::Job(JobRequest::Resume { .. })]));
}

#[tokio::test]
async fn a_job_of_others_is_not_taken_over_nor_kicked_off() {
    let (host, desk, ledger) = scene().await;
    let operator = token(&ledger, Purpose::Operator, Some("a")).await;
    let apply = async |body: &str| ask(host.at(), &operator, "POST", "/v1/jobs", body).await;
    let taken = apply(&task_job("job-b", "a")).await;
    assert_eq!(taken.problem(), (409, "exists".to_owned()), "{taken:?}");
    assert!(!taken.body.contains("`b`"), "{taken:?}");
    let foreign = apply(&task_job("new", "b")).await;
    assert_eq!(foreign.problem(), (403, "forbidden".to_owned()));
    let kick = task_job("new", "a").replacen(
        '{',
        r#"{"constraints":[{"time_window":{"config":{"start":"00:00","end":"06:00"},"onMet":[{"kickOffJob":{"job":"job-b"}}]}}],"#,
        1,
    );
    assert_eq!(apply(&kick).await.problem(), (409, "exists".to_owned()));
    assert!(desk.take_asked().is_empty());
    assert_eq!(apply(&task_job("new", "a")).await.status, 204);
    assert_eq!(desk.take_asked().len(), 1);
}

/// A host knows the cluster's key and its token: whoever runs programs there is nobody of one domain any more.
#[tokio::test]
async fn only_who_has_all_domains_has_the_hosts_run_programs() {
    let (host, desk, ledger) = scene().await;
    let some = token(&ledger, Purpose::Operator, Some("a")).await;
    let all = token(&ledger, Purpose::Operator, None).await;
    let reader = token(&ledger, Purpose::Reader, None).await;
    for work in [r#""command":"id""#, r#""workflow":{"text":"steps: [{name: s, command: id}]"}"#] {
        let body = format!(r#"{{"job_id":"new","domain":"a",{work}}}"#);
        for bearer in [&some, &reader] {
            let reply = ask(host.at(), bearer, "POST", "/v1/jobs", &body).await;
            assert_eq!(reply.problem(), (403, "forbidden".to_owned()), "{work}");
        }
        assert!(desk.take_asked().is_empty());
        let reply = ask(host.at(), &all, "POST", "/v1/jobs", &body).await;
        assert_eq!(reply.status, 204, "{reply:?}");
        assert_eq!(desk.take_asked().len(), 1);
    }
    assert_eq!(ask(host.at(), &some, "GET", "/v1/scheduler/stats", "").await.status, 403);
    assert_eq!(ask(host.at(), &reader, "POST", "/job/job-a/pause", "").await.status, 403);
    assert!(desk.take_asked().is_empty());
}
