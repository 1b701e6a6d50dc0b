//! Commands on a terminal.

use serde_json::json;

use super::Site;
use super::api::post;
use super::life::STAYS;
use crate::terminal::pty::Terminal;

fn terminal(site: &Site, script: &str, env: &[(&str, &str)], shape: (u16, u16)) -> Terminal {
    let url = site.url();
    let env: Vec<(&str, &str)> =
        [("KAPELL_URL", url.as_str())].iter().chain(env).copied().collect();
    Terminal::run(site.bench.dir(), script, &env, shape)
}

fn shows(rows: &[String], text: &str) -> bool {
    rows.iter().any(|row| row.contains(text))
}

#[test]
fn watching_draws_in_place() {
    let site = Site::up();
    site.desire("web", 1, STAYS);
    site.all_run("web", 1);
    let script = "echo before; exec $KAPELL lrp list --watch";
    let mut screen = terminal(&site, script, &[], (12, 80));
    screen.until("one instance", |rows| shows(rows, "1/1"));
    site.kapell(&["lrp", "scale", "web", "3"]).expect(0);
    screen.until("three instances", |rows| shows(rows, "3/3"));
    site.desire("other", 0, STAYS);
    screen.until("the other", |rows| shows(rows, "other"));
    let rows = screen.everything();
    for text in ["before", "PROCESS", "web ", "other"] {
        assert_eq!(rows.iter().filter(|row| row.contains(text)).count(), 1, "{rows:#?}");
    }
    screen.types(b"\x03");
    screen.end();
}

#[test]
fn watching_one_process_draws_in_place_on_a_narrow_screen() {
    let site = Site::up();
    let mut lrp = site.lrp("web", 1, STAYS);
    lrp["annotation"] = json!("long ".repeat(30));
    assert_eq!(post(&site, "/v1/desired-lrps", &lrp).status, 201);
    site.all_run("web", 1);
    let mut screen = terminal(&site, "exec $KAPELL lrp show web --watch", &[], (20, 40));
    screen.until("it", |rows| shows(rows, "RUNNING"));
    site.kapell(&["lrp", "scale", "web", "2"]).expect(0);
    screen.until("two instances", |rows| shows(rows, "instances  2"));
    let rows = screen.everything();
    for text in ["process ", "annotation", "INDEX"] {
        assert_eq!(rows.iter().filter(|row| row.contains(text)).count(), 1, "{rows:#?}");
    }
}

#[test]
fn tables_fit_the_terminal() {
    let site = Site::up();
    let long = format!("a-process-with-a-name-{}", "x".repeat(60));
    site.desire(&long, 1, STAYS);
    let mut huge = site.lrp("huge", 2, STAYS);
    huge["memory_mb"] = json!(1_000_000_000);
    assert_eq!(post(&site, "/v1/desired-lrps", &huge).status, 201);
    site.kapell(&["task", "run", "--wait", "--", "sh", "-c", "echo $(seq 100) >&2; exit 1"])
        .expect(1);
    site.kapell(&["domain", "set", &"d".repeat(100), "--ttl", "2m"]).expect(0);
    site.all_run(&long, 1);
    let lists = ["lrp list", "lrp show huge", "task list", "domain list", "cells"];
    let script: Vec<String> = lists.iter().map(|list| format!("$KAPELL {list}")).collect();
    for columns in [40, 80, 200] {
        let mut screen = terminal(&site, &script.join("; "), &[], (60, columns));
        assert_eq!(screen.end(), 0);
        let rows = screen.rows();
        assert!(!screen.wraps_below("PROCESS"), "{columns}: {rows:#?}");
        for text in ["PROCESS", "RUNNING", "INDEX", "TASK", "DOMAIN", "CELL", "failed", "local"] {
            assert!(shows(&rows, text), "no {text} at {columns}: {rows:#?}");
        }
        // The wider the more.
        assert_eq!(shows(&rows, "VERSION"), columns > 40, "{columns}: {rows:#?}");
    }
}

#[test]
fn colour_is_for_terminals_that_want_it() {
    let site = Site::up();
    site.desire("web", 1, STAYS);
    site.all_run("web", 1);
    let script = "$KAPELL lrp list; $KAPELL explain web/0; $KAPELL logs web";
    let raw = |env: &[(&str, &str)]| {
        let mut screen = terminal(&site, script, env, (24, 80));
        assert_eq!(screen.end(), 0);
        String::from_utf8_lossy(&screen.raw).into_owned()
    };
    assert!(raw(&[]).contains("\x1b[32mrunning\x1b[0m"));
    for plain in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let raw = raw(&[plain]);
        assert!(raw.contains("running") && !raw.contains('\x1b'), "{plain:?}: {raw:?}");
    }
    assert!(!site.kapell(&["lrp", "list"]).expect(0).stdout.contains('\x1b'));
}

#[test]
fn what_would_command_the_terminal_is_left_out_of_logs() {
    let site = Site::up();
    let speaks = "printf '\\033[2J\\033]0;title\\007\\033[31mred\\033[0m\\a plain\\n'";
    site.desire("web", 1, &format!("{speaks}; exec sleep 1000"));
    site.all_run("web", 1);
    site.until("the line", || {
        site.kapell(&["logs", "web/0"]).stdout.contains("plain").then_some(())
    });
    let piped = site.kapell(&["logs", "web/0"]).expect(0).stdout;
    assert_eq!(piped, "\x1b[2J\x1b]0;title\x07\x1b[31mred\x1b[0m\x07 plain\n", "as it was written");
    let script = format!(
        "$KAPELL logs web/0; $KAPELL task run --wait -- sh -c \"{}\"",
        speaks.replace('\\', "\\\\")
    );
    let mut screen = terminal(&site, &script, &[], (24, 80));
    assert_eq!(screen.end(), 0);
    let raw = String::from_utf8_lossy(&screen.raw).into_owned();
    assert_eq!(raw.matches("red plain").count(), 2, "{raw:?}");
    for bad in ["\x1b", "\x07", "title"] {
        assert!(!raw.contains(bad), "{raw:?}");
    }
}

#[test]
fn waiting_shows_progress_and_leaves_a_clean_line() {
    let site = Site::up();
    site.desire("web", 0, STAYS);
    let script = "$KAPELL wait domain/late; echo \"ended with $?\"";
    let mut screen = terminal(&site, script, &[], (10, 60));
    screen.until("progress", |rows| shows(rows, "domain late is not fresh"));
    site.kapell(&["domain", "set", "late"]).expect(0);
    assert_eq!(screen.end(), 0);
    assert_eq!(screen.everything(), ["ended with 0"]);
}
