use kapell_core::board::Request;
use kapell_core::job::{JobRequest, Pause, PauseCause};
use kapell_core::run::{Entry, Noted, RunState};

use super::desk::run;
use super::*;

const JOB: &str = r#"{"job_id":"j","name":"<script>alert(1)</script>","domain":"d","schedule":"30 2 * * *","timezone":"Europe/Berlin",
    "command":"echo '<img src=x onerror=alert(1)>'","tags":["\"><b>"],
    "parameters":[{"name":"SIZE","default":"\"><script>","about":"<i>"},{"name":"KIND","options":["a","b"],"default":"b"},
        {"name":"FIXED","default":"f","changeable":false}]}"#;
const BY_HAND: &str =
    r#"{"job_id":"h","domain":"d","command":"true","parameters":[{"name":"NEEDED"}]}"#;

async fn board() -> (Host, Arc<FakeDesk>) {
    let (host, desk) = Host::with_board().await;
    desk.job(JOB);
    desk.job(BY_HAND);
    let mut failed = run("j:100", RunState::Failed, 100_000);
    failed.reason = "<script>alert(2)</script>".to_owned();
    failed.parameters.insert("<b>".to_owned(), "</dd><script>".to_owned());
    failed.started_at = Some(Timestamp(102_000));
    let noted = Noted::Action { name: "<u>".into(), ok: false, message: "<script>".into() };
    failed.timeline.push(Entry { at: Timestamp(103_000), attempt: 0, noted });
    desk.run(failed);
    desk.run(run("j:200", RunState::Running, 200_000));
    (host, desk)
}

#[tokio::test]
async fn names_of_others_are_shown_and_not_run() {
    let (host, _) = board().await;
    for path in [
        "/jobs",
        "/job/j",
        "/runs",
        "/runs?job=%3Cscript%3E&state=%22%3E%3Cb%3E",
        "/run/j:100",
        "/run/j%3A100",
        "/run/j:100/log",
        "/fragments/jobs",
        "/fragments/job/j",
        "/fragments/runs?job=j&state=&span=all",
        "/fragments/run/j:100",
    ] {
        let page = host.get(path).await;
        assert_eq!(page.status, 200, "{path}");
        let body = page.body.to_ascii_lowercase().replace("<script src=\"/assets/kapell.js?v=", "");
        for evil in ["<script>", "<script ", "<img", "<u>", "<b>", "<i>", "onerror=alert(1)>"] {
            assert!(!body.contains(evil), "{path}: {evil}");
        }
        assert!(page.header("content-security-policy").unwrap().contains("default-src 'none'"));
    }
}

#[tokio::test]
async fn a_job_shows_its_next_and_last_runs_and_a_form_for_a_run_by_hand() {
    let (host, desk) = board().await;
    let jobs = host.get("/jobs").await.body;
    assert!(jobs.contains("<a href=\"/job/j\">j</a>"), "{jobs}");
    assert!(
        jobs.contains("<a href=\"/run/j:200\"><span class=\"state starting\">Running</span></a>"),
        "{jobs}"
    );
    assert!(jobs.contains("02:30:00 CE"), "{jobs}");
    let job = host.get("/job/j").await.body;
    for part in [
        "action=\"/job/j/trigger\"",
        "<input name=\"param.SIZE\" value=\"&quot;&gt;&lt;script&gt;\">",
        "<select name=\"param.KIND\"><option value=\"a\">a</option><option value=\"b\" selected>b</option></select>",
        "<output>f</output>",
        "action=\"/job/j/pause\"",
        "<svg class=\"gantt\"",
        "data-fragment=\"/fragments/job/j\"",
    ] {
        assert!(job.contains(part), "{part}: {job}");
    }
    let by_hand = host.get("/job/h").await.body;
    assert!(by_hand.contains("<input name=\"param.NEEDED\" value=\"\" required>"), "{by_hand}");
    desk.change_job("j", |job| {
        let cause = PauseCause::Person { who: "<ann>".to_owned() };
        job.paused = Some(Pause { at: Timestamp(5), cause, note: "<moving>".into() });
    });
    let paused = host.get("/job/j").await.body;
    assert!(paused.contains("action=\"/job/j/resume\""), "{paused}");
    assert!(paused.contains("Paused by &lt;ann&gt;"), "{paused}");
    assert!(paused.contains("&lt;moving&gt;"), "{paused}");
    for path in ["/job/none", "/run/j:1", "/run/j", "/fragments/run/none:1"] {
        assert_eq!(host.get(path).await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn runs_are_bars_that_are_filtered_without_a_script() {
    let (host, _) = board().await;
    let all = host.get("/runs?span=all").await.body;
    for part in [
        "<a href=\"/run/j:100\"><title>j:100 Failed, 1970-01-01 01:01:40 CET &lt;script&gt;",
        "<rect class=\"bar wait\"",
        "<rect class=\"bar bad\"",
        "<rect class=\"bar starting\"",
        "<form method=\"get\" action=\"/runs\"",
        "data-fragment=\"/fragments/runs?job=&amp;state=&amp;span=all\"",
    ] {
        assert!(all.contains(part), "{part}: {all}");
    }
    let failed = host.get("/runs?span=all&state=Failed&job=j").await.body;
    assert!(failed.contains("/run/j:100") && !failed.contains("/run/j:200"), "{failed}");
    // What ended long ago is not of the last day; what is under way is.
    let today = host.get("/runs").await.body;
    assert!(!today.contains("/run/j:100") && today.contains("/run/j:200"), "{today}");
}

#[tokio::test]
async fn a_run_shows_every_decision_and_its_log() {
    let (host, _) = board().await;
    let page = host.get("/run/j:100").await.body;
    for part in [
        "<th scope=\"row\" class=\"number\">1970-01-01 01:01:43 CET</th><td>action</td>",
        "<code>&lt;u&gt;</code> failed: &lt;script&gt;",
        "href=\"/run/j:100/log\"",
        "action=\"/run/j:100/retry\"",
        "Parameter &lt;b&gt;",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(host.get("/run/j:200").await.body.contains("action=\"/run/j:200/cancel\""));
    let log = host.get("/run/j:200/log").await.body;
    assert!(log.contains("data-source=\"/v1/runs/j:200/logs\""), "{log}");
}

async fn submit(host: &Host, path: &str, form: &str) -> Reply {
    let length = form.len();
    let more = format!(
        "accept: text/html\r\ncontent-type: application/x-www-form-urlencoded\r\ncontent-length: {length}\r\n\r\n{form}"
    );
    host.ask("POST", path, &more).await
}

#[tokio::test]
async fn the_buttons_of_pages_do_what_the_api_does() {
    let (host, desk) = board().await;
    let reply = submit(&host, "/job/j/pause", "note=moving+the+%3Cdb%3E").await;
    assert_eq!((reply.status, reply.header("location")), (303, Some("/job/j")), "{reply:?}");
    assert_eq!(submit(&host, "/job/j/resume", "").await.status, 303);
    let form = "param.SIZE=big%26small&param.KIND=a&other=1";
    let run = submit(&host, "/job/j/trigger", form).await;
    assert_eq!(run.status, 303, "{run:?}");
    assert!(run.header("location").unwrap().starts_with("/run/j:"), "{run:?}");
    let cancel = submit(&host, "/run/j%3A200/cancel", "").await;
    assert_eq!((cancel.status, cancel.header("location")), (303, Some("/run/j:200")));
    let asked = desk.take_asked();
    let [
        Request::Job(JobRequest::Pause { note, .. }),
        Request::Job(JobRequest::Resume { .. }),
        Request::Job(JobRequest::Trigger { run, .. }),
        Request::Job(JobRequest::Cancel { .. }),
    ] = &asked[..]
    else {
        panic!("{asked:?}")
    };
    assert_eq!(note, "moving the <db>");
    assert_eq!(run.parameters["SIZE"], "big&small");
    let empty = submit(&host, "/job/h/trigger", "param.NEEDED=").await;
    assert_eq!(empty.status, 422);
    assert!(
        empty.body.contains("NEEDED") && empty.has("content-type: text/html; charset=utf-8"),
        "{empty:?}"
    );
    assert_eq!(submit(&host, "/job/none/pause", "").await.status, 404);
    assert_eq!(submit(&host, "/jobs", "").await.status, 405);
    assert!(desk.take_asked().is_empty());
}
