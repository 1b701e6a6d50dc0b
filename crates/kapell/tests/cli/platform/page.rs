//! The page, in a real browser.

use serde_json::json;

use super::Site;
use super::browser::Browser;
use super::life::STAYS;
use crate::bench::skip;

const SERVES: &str = "while :; do echo \"$(date +%T) GET /cart 200 in 12 ms\"; sleep 0.2; \
                      echo 'slow query: 240 ms' >&2; sleep 0.2; done";
const HOSTILE: &str = "<img src=x onerror=alert(1)>";

fn with_browser(name: &str, test: impl FnOnce(Browser)) {
    with_browser_of("page", name, test);
}

pub(super) fn with_browser_of(module: &str, name: &str, test: impl FnOnce(Browser)) {
    match Browser::open() {
        Ok(browser) => test(browser),
        Err(reason) => skip(&format!("platform::{module}::{name}"), &reason),
    }
}

/// Where pictures for the docs go, if somebody wants them.
pub(super) fn keep(name: &str, browser: &mut Browser) {
    if let Some(dir) = std::env::var_os("KAPELL_TEST_PICTURES") {
        let picture = browser.picture();
        std::fs::write(std::path::Path::new(&dir).join(name), picture).expect("a picture");
    }
}

/// A platform as people have it: most of it runs, some does not.
fn busy_site() -> Site {
    let site = Site::up();
    let mut web = site.lrp("web", 3, SERVES);
    web["ports"] = json!([8080]);
    web["memory_mb"] = json!(64);
    let mut huge = site.lrp("warehouse", 2, STAYS);
    huge["memory_mb"] = json!(10_000_000);
    for lrp in [web, huge] {
        site.ask("POST", "/v1/desired-lrps", Some(&lrp)).expect(201);
    }
    site.desire("billing", 1, "echo cannot reach the database >&2; exit 1");
    for (guid, script) in
        [("backup", "echo disk full >&2; exit 3"), ("migrate", "true"), ("reindex", STAYS)]
    {
        let mut task = site.lrp("", 0, script);
        for key in ["process_guid", "instances"] {
            task.as_object_mut().expect("an object").remove(key);
        }
        task["task_guid"] = json!(guid);
        site.ask("POST", "/v1/tasks", Some(&task)).expect(201);
    }
    site.all_run("web", 3);
    site
}

pub(super) fn enter(browser: &mut Browser, site: &Site) {
    browser.go(&format!("{}/?token={}", site.url(), site.token()));
    browser.until("Live");
}

/// In light and in dark: nobody is kept out, and nothing scrolls sideways.
#[track_caller]
pub(super) fn is_for_everybody(browser: &mut Browser) {
    for dark in [true, false] {
        browser.dark(dark);
        assert_eq!(browser.barriers(), Vec::<String>::new(), "dark: {dark}");
    }
    for width in [390, 768, 1200] {
        browser.resize(width, 800);
        let wide = browser.evaluate("document.documentElement.scrollWidth > innerWidth");
        assert_eq!(wide, false, "it scrolls sideways at {width} px");
    }
}

#[test]
fn the_page_shows_what_runs_lives_and_has_no_complaints() {
    with_browser("the_page_shows_what_runs_lives_and_has_no_complaints", |mut browser| {
        let site = busy_site();
        browser.resize(1200, 800);
        enter(&mut browser, &site);
        for text in ["1 crashed", "cannot reach the database", "2 cannot be placed", "disk full"] {
            browser.until(text);
        }
        let text = browser.text();
        let (trouble, all) = (text.find("Needs attention"), text.find("Long-running processes"));
        assert!(trouble.expect("what is wrong") < all.expect("what runs"), "{text}");
        // Live: nobody reloads.
        browser.evaluate("window.stays = true");
        site.ask("PATCH", "/v1/desired-lrps/web", Some(&json!({"instances": 4})));
        browser.until("4/4");
        assert_eq!(browser.evaluate("window.stays"), true);
        keep("overview.png", &mut browser);
        browser.dark(true);
        keep("overview-dark.png", &mut browser);
        browser.dark(false);
        browser.resize(390, 844);
        keep("phone.png", &mut browser);
        let long = "long-name-".repeat(16);
        site.desire(&long, 1, STAYS);
        browser.until(&long);
        is_for_everybody(&mut browser);
        assert_eq!(browser.complaints(), Vec::<String>::new());
    });
}

#[test]
fn the_pages_of_a_process_and_a_task_say_why() {
    with_browser("the_pages_of_a_process_and_a_task_say_why", |mut browser| {
        let site = busy_site();
        browser.resize(1200, 800);
        enter(&mut browser, &site);
        browser.go(&format!("{}/lrp/billing", site.url()));
        for text in ["0/1 running", "CRASHED", "cannot reach the database", "is restarted in"] {
            browser.until(text);
        }
        is_for_everybody(&mut browser);
        browser.go(&format!("{}/lrp/web", site.url()));
        browser.until("3/3 running");
        browser.until("127.0.0.1:6");
        // What somebody unfolded stays so when something changes.
        browser.evaluate("document.querySelector('details[data-key=\"web/1\"]').open = true");
        site.ask("PATCH", "/v1/desired-lrps/web", Some(&json!({"instances": 4})));
        browser.until("4/4 running");
        browser.until_true("document.querySelector('details[data-key=\"web/1\"]').open");
        keep("instances.png", &mut browser);
        browser.go(&format!("{}/task/backup", site.url()));
        browser.until("FAILED");
        browser.until("Exited with status 3: disk full");
        is_for_everybody(&mut browser);
        browser.go(&format!("{}/lrp/warehouse", site.url()));
        browser.until("insufficient resources: memory");
        let evacuated = site.kapell(&["cells", "evacuate", "local"]);
        evacuated.expect(0);
        browser.go(&format!("{}/lrp/web", site.url()));
        browser.until("EVACUATING");
        browser.go(&site.url());
        browser.until("4 evacuating");
        assert_eq!(browser.complaints(), Vec::<String>::new());
    });
}

/// Makes a file where the instance runs, which waits for it.
fn touch(site: &Site, name: &str) {
    for process in site.work() {
        let _made = std::fs::write(format!("/proc/{}/cwd/{name}", process.pid), "");
    }
}

#[test]
fn a_live_log_grows_and_hostile_output_stays_text() {
    with_browser("a_live_log_grows_and_hostile_output_stays_text", |mut browser| {
        let site = Site::up();
        let until = |file: &str| format!("while [ ! -e {file} ]; do sleep 0.05; done");
        let script = format!(
            "i=0; while [ $i -lt 300 ]; do echo line $i; i=$((i+1)); done; echo '{HOSTILE}'; \
             printf '\\033[31mred\\033[0m paint\\n'; {}; echo later; {}; echo last; exec sleep 1000",
            until("go"),
            until("more"),
        );
        site.desire("log", 1, &script);
        site.desire("hostile", 1, &format!("echo '{HOSTILE}' >&2; exit 1"));
        site.all_run("log", 1);
        browser.resize(1200, 800);
        enter(&mut browser, &site);
        browser.until(&format!("Exited with status 1: {HOSTILE}"));
        assert_eq!(browser.evaluate("document.querySelectorAll('img').length"), 0);
        browser.go(&format!("{}/lrp/log/0/log", site.url()));
        browser.until(HOSTILE);
        browser.until("\nred paint");
        assert_eq!(browser.evaluate("document.querySelectorAll('img').length"), 0);
        is_for_everybody(&mut browser);
        // It follows, until the reader goes up, and again when told to.
        let at_end =
            "log.scrollTop > 0 && log.scrollHeight - log.scrollTop - log.clientHeight < 40";
        browser.until_true(at_end);
        browser.evaluate("log.scrollTop = 0");
        browser.until_true("!autoscroll.checked");
        touch(&site, "go");
        browser.until("later");
        assert_eq!(browser.evaluate("log.scrollTop"), 0, "the reader is pulled away");
        browser.evaluate("autoscroll.click()");
        touch(&site, "more");
        browser.until("last");
        browser.until_true(at_end);
        assert_eq!(browser.complaints(), Vec::<String>::new());
    });
}

#[test]
fn a_page_says_that_its_host_is_gone_and_finds_it_again() {
    with_browser("a_page_says_that_its_host_is_gone_and_finds_it_again", |mut browser| {
        let mut site = Site::up();
        enter(&mut browser, &site);
        browser.until("Nothing runs here yet");
        browser.until("kapell apply -f");
        is_for_everybody(&mut browser);
        site.desire("web", 1, SERVES);
        site.all_run("web", 1);
        browser.until("1/1");
        browser.evaluate("window.stays = true");
        site.kill();
        browser.until("Connection lost");
        is_for_everybody(&mut browser);
        site.start(&[]);
        site.desire("second", 2, STAYS);
        browser.until("2/2");
        browser.until("Live");
        assert_eq!(browser.evaluate("window.stays"), true, "it was loaded again");
        browser.go(&format!("{}/lrp/web/0/log", site.url()));
        browser.until("GET /cart");
        keep("log.png", &mut browser);
        site.kill();
        browser.until("Connection lost");
        browser.until("GET /cart");
        site.start(&[]);
        browser.until("Live");
        browser.until("GET /cart");
    });
}

#[test]
fn without_the_token_the_page_asks_for_it() {
    with_browser("without_the_token_the_page_asks_for_it", |mut browser| {
        let site = Site::up();
        site.desire("secret", 1, STAYS);
        browser.go(&site.url());
        browser.until("token");
        assert!(!browser.text().contains("secret"));
        is_for_everybody(&mut browser);
    });
}
