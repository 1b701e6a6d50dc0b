//! The pages of jobs and runs, in a real browser.

use std::path::Path;

use serde_json::{Value, json};

use super::Site;
use super::page::{enter, is_for_everybody, keep, with_browser_of};

/// Waits for a file.
fn until(file: &Path) -> String {
    format!("while [ ! -e {} ]; do sleep 0.05; done", file.display())
}

fn apply(site: &Site, job: &Value) {
    site.ask("POST", "/v1/jobs", Some(job)).expect(201);
}

/// Jobs as people have them: one that greets, one that first takes an action, one that fails, and a line of others.
fn busy_site(dir: &Path) -> Site {
    let site = Site::up();
    apply(
        &site,
        &json!({
            "job_id": "greeting", "schedule": "30 2 * * *", "timezone": "Europe/Berlin", "tags": "people",
            "parameters": {"WHO": {"default": "world", "about": "whom to greet"}},
            "command": format!("echo hello $WHO; {}; echo bye $WHO >&2", until(&dir.join("go"))),
        }),
    );
    apply(
        &site,
        &json!({
            "job_id": "careful", "command": "echo done",
            "constraints": [{"time_window": {"onMet": [{"delay": "4s"}, {"metric": "looked"}]}}],
        }),
    );
    apply(
        &site,
        &json!({"job_id": "failing", "command": "echo no luck >&2; exit 3", "retry": {"max_retries": 1, "initial_delay": "1s"}}),
    );
    apply(
        &site,
        &json!({"job_id": "queued", "overlap": "queue", "command": until(&dir.join("go"))}),
    );
    site
}

fn trigger(site: &Site, job: &str) -> String {
    let made = site.ask("POST", &format!("/v1/jobs/{job}/trigger"), None).expect(201);
    made.json()["run_id"].as_str().expect("an id").to_owned()
}

#[test]
fn jobs_are_listed_and_one_is_run_by_hand_with_other_values() {
    let name = "jobs_are_listed_and_one_is_run_by_hand_with_other_values";
    with_browser_of("page_jobs", name, |mut browser| {
        let dir = tempfile::tempdir().expect("a directory");
        let site = busy_site(dir.path());
        browser.resize(1200, 800);
        enter(&mut browser, &site);
        browser.go(&format!("{}/jobs", site.url()));
        for text in ["greeting", "careful", "30 2 * * *"] {
            browser.until(text);
        }
        keep("jobs.png", &mut browser);
        is_for_everybody(&mut browser);
        browser.resize(1200, 800);
        browser.go(&format!("{}/job/greeting", site.url()));
        browser.until("whom to greet");
        browser.evaluate("document.querySelector('[name=\"param.WHO\"]').value = 'Ada'");
        browser.evaluate("document.querySelector('form[data-key=trigger] button').click()");
        // Its state and its log are on its page, and grow there.
        browser.until("hello Ada");
        browser.until("Running");
        browser.evaluate("window.stays = true");
        keep("run.png", &mut browser);
        std::fs::write(dir.path().join("go"), "").expect("a file");
        browser.until("bye Ada");
        browser.until("Completed");
        assert_eq!(browser.evaluate("window.stays"), true, "nobody reloads");
        is_for_everybody(&mut browser);
        browser.resize(1200, 800);
        browser.go(&format!("{}/job/greeting", site.url()));
        browser.until("Last runs");
        keep("job.png", &mut browser);
        is_for_everybody(&mut browser);
        assert_eq!(browser.complaints(), Vec::<String>::new());
    });
}

#[test]
fn what_holds_a_run_up_is_seen_without_a_reload() {
    let name = "what_holds_a_run_up_is_seen_without_a_reload";
    with_browser_of("page_jobs", name, |mut browser| {
        let dir = tempfile::tempdir().expect("a directory");
        let site = busy_site(dir.path());
        browser.resize(1200, 800);
        enter(&mut browser, &site);
        let first = trigger(&site, "queued");
        let second = trigger(&site, "queued");
        browser.go(&format!("{}/run/{second}", site.url()));
        browser.until("Pending");
        browser.until(&format!("{first} is under way, and at most 1 of job queued may be"));
        browser.evaluate("window.stays = true");
        keep("run-waits.png", &mut browser);
        std::fs::write(dir.path().join("go"), "").expect("a file");
        browser.until("Completed");
        assert_eq!(browser.evaluate("window.stays"), true, "nobody reloads");
        let careful = trigger(&site, "careful");
        browser.go(&format!("{}/run/{careful}", site.url()));
        browser.until("ActionRunning");
        browser.until("delay");
        browser.until("Completed");
        browser.until("done");
        browser.go(&format!("{}/job/careful", site.url()));
        browser.until("looked");
        assert_eq!(browser.complaints(), Vec::<String>::new());
    });
}

#[test]
fn runs_are_bars_over_time_and_can_be_filtered() {
    let name = "runs_are_bars_over_time_and_can_be_filtered";
    with_browser_of("page_jobs", name, |mut browser| {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::write(dir.path().join("go"), "").expect("a file");
        let site = busy_site(dir.path());
        for job in ["failing", "greeting", "greeting", "queued"] {
            trigger(&site, job);
        }
        browser.resize(1200, 800);
        enter(&mut browser, &site);
        browser.go(&format!("{}/runs", site.url()));
        browser.until("Failed");
        browser.until_true("document.querySelectorAll('svg.gantt rect.bar').length >= 4");
        keep("runs.png", &mut browser);
        browser.dark(true);
        keep("runs-dark.png", &mut browser);
        browser.dark(false);
        is_for_everybody(&mut browser);
        browser.resize(1200, 800);
        browser.evaluate(
            "document.querySelector('form[data-key=filter] [name=state]').value = 'Failed'",
        );
        browser.evaluate("document.querySelector('form[data-key=filter] button').click()");
        browser.until_true("document.querySelectorAll('table.runs tbody tr').length === 1");
        assert!(browser.text().contains("failing:"), "{}", browser.text());
        browser.evaluate("document.querySelector('svg.gantt a[href^=\"/run/\"]').dispatchEvent(new MouseEvent('click', {bubbles: true, cancelable: true, view: window}))");
        browser.until("no luck");
        keep("run-failed.png", &mut browser);
        assert_eq!(browser.complaints(), Vec::<String>::new());
    });
}
