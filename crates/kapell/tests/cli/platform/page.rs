//! The page, in a real browser.

use super::Site;
use super::browser::Browser;
use super::life::STAYS;
use crate::bench::skip;

fn with_browser(name: &str, test: impl FnOnce(Browser)) {
    match Browser::open() {
        Ok(browser) => test(browser),
        Err(reason) => skip(&format!("platform::page::{name}"), &reason),
    }
}

/// Where pictures for the docs go, if somebody wants them.
fn keep(name: &str, picture: &[u8]) {
    if let Some(dir) = std::env::var_os("KAPELL_TEST_PICTURES") {
        std::fs::write(std::path::Path::new(&dir).join(name), picture).expect("a picture");
    }
}

#[test]
fn the_page_shows_what_runs_lives_and_has_no_complaints() {
    with_browser("the_page_shows_what_runs_lives_and_has_no_complaints", |mut browser| {
        let site = Site::up();
        site.desire("web", 3, "while :; do date; sleep 0.2; done");
        site.desire("broken", 1, "echo cannot reach the database >&2; exit 1");
        site.all_run("web", 3);
        browser.resize(1200, 800);
        browser.go(&format!("{}/?token={}", site.url(), site.token()));
        browser.until("web");
        browser.until("cannot reach the database");
        keep("overview.png", &browser.picture());
        // Live: nobody reloads.
        site.ask("PATCH", "/v1/desired-lrps/web", Some(&serde_json::json!({"instances": 4})));
        browser.until("4/4");
        browser.dark(true);
        keep("overview-dark.png", &browser.picture());
        browser.dark(false);
        browser.go(&format!("{}/lrp/web", site.url()));
        browser.until("RUNNING");
        keep("instances.png", &browser.picture());
        browser.go(&format!("{}/lrp/web/0/log", site.url()));
        browser.until(":");
        keep("log.png", &browser.picture());
        browser.resize(390, 800);
        browser.go(&format!("{}/", site.url()));
        browser.until("web");
        let wide = browser.evaluate("document.documentElement.scrollWidth > innerWidth");
        assert_eq!(wide, false, "it scrolls sideways on a phone");
        assert_eq!(browser.complaints(), Vec::<String>::new());
    });
}

#[test]
fn a_live_log_grows_and_hostile_output_stays_text() {
    with_browser("a_live_log_grows_and_hostile_output_stays_text", |mut browser| {
        let site = Site::up();
        let script = "echo '<img src=x onerror=alert(1)>'; while [ ! -e go ]; do sleep 0.05; done; \
                      echo later; exec sleep 1000";
        site.desire("log", 1, script);
        site.all_run("log", 1);
        browser.go(&format!("{}/?token={}", site.url(), site.token()));
        browser.until("log");
        browser.go(&format!("{}/lrp/log/0/log", site.url()));
        browser.until("<img src=x onerror=alert(1)>");
        assert_eq!(browser.evaluate("document.querySelectorAll('img[src=\"x\"]').length"), 0);
        for process in site.work() {
            let cwd = format!("/proc/{}/cwd/go", process.pid);
            let _made = std::fs::write(cwd, "");
        }
        browser.until("later");
        assert_eq!(browser.complaints(), Vec::<String>::new());
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
    });
}
