//! What becomes of instances on one machine.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::Site;
use crate::bench::Bench;
use crate::running::send;

/// Prints that it runs, and goes on until it is told to stop.
pub(crate) const STAYS: &str = "echo up; exec sleep 1000";

pub(crate) fn text<'a>(lrp: &'a Value, field: &str) -> &'a str {
    lrp[field].as_str().unwrap_or_default()
}

#[test]
fn instances_run_scale_and_go() {
    let site = Site::up();
    site.desire("web", 3, STAYS);
    let waits = site.begin(&["wait", "lrp/web"]);
    let all = site.all_run("web", 3);
    waits.finish().expect(0);
    assert_eq!(site.work().len(), 3);
    let guids: std::collections::BTreeSet<&str> =
        all.iter().map(|lrp| text(lrp, "instance_guid")).collect();
    assert_eq!(guids.len(), 3);
    site.ask("PATCH", "/v1/desired-lrps/web", Some(&json!({"instances": 5}))).expect(200);
    site.all_run("web", 5);
    site.ask("PATCH", "/v1/desired-lrps/web", Some(&json!({"instances": 1}))).expect(200);
    let left = site.all_run("web", 1);
    assert_eq!(left[0]["index"], 0);
    assert_eq!(left[0]["instance_guid"], all[0]["instance_guid"], "index 0 never stopped");
    site.until("the others to be gone", || (site.work().len() == 1).then_some(()));
    site.ask("DELETE", "/v1/desired-lrps/web", None).expect(204);
    site.until("all to be gone", || {
        (site.instances("web").is_empty() && site.work().is_empty()).then_some(())
    });
    site.until("the shims to be gone", || site.shims().is_empty().then_some(()));
}

#[test]
fn a_crashed_instance_is_back_at_once() {
    let site = Site::up();
    site.desire("web", 1, STAYS);
    let before = site.all_run("web", 1).remove(0);
    let victim = site.work().remove(0);
    let killed = Instant::now();
    send(victim.pid, Signal::SIGKILL);
    let after = site.until("another instance", || {
        let lrp = site.instances("web").pop()?;
        let is_new = lrp["instance_guid"] != before["instance_guid"] && lrp["state"] == "RUNNING";
        is_new.then_some(lrp)
    });
    assert_eq!(after["crash_count"], 1);
    site.explains("lrp/web/0", "signal 9");
    assert!(text(&after, "crash_reason").contains("signal 9"), "{after}");
    assert!(killed.elapsed() < Duration::from_secs(5), "took {:?}", killed.elapsed());
}

#[test]
fn a_crash_loop_backs_off_by_its_rule_and_says_when_it_is_tried_again() {
    let bench = Bench::new()
        .set("KAPELL_CRASH_WAIT", "500ms")
        .set("KAPELL_LONGEST_CRASH_WAIT", "1500ms")
        .set("KAPELL_CONVERGE_EVERY", "60s");
    let site = Site::with(bench, &[]);
    site.desire("bad", 1, "echo no luck >&2; exit 3");
    // The wait after the third crash is once, after the fourth twice what is set, and so on to the longest.
    let mut at = Vec::new();
    for count in 4..=7 {
        let lrp = site.until(&format!("crash {count}"), || {
            let lrp = site.instances("bad").pop()?;
            let waits = lrp["crash_count"] == count && lrp["state"] == "CRASHED";
            waits.then_some(lrp)
        });
        assert_eq!(text(&lrp, "crash_reason"), "Exited with status 3: no luck");
        at.push(lrp["since"].as_i64().expect("a time"));
        if count == 4 {
            let why = site.get("/v1/explain/lrp/bad/0");
            let next = why["next_try_at"].as_i64().expect("a time");
            assert_eq!(next - at[0], 1_000, "{why}");
            site.explains("lrp/bad/0", "Exited with status 3: no luck");
        }
    }
    let waits: Vec<i64> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
    for (wait, wanted) in waits.iter().zip([1_000, 1_500, 1_500]) {
        assert!((wanted..wanted + 700).contains(wait), "{waits:?}");
    }
    site.ask("DELETE", "/v1/desired-lrps/bad", None).expect(204);
    site.until("it to be gone", || site.instances("bad").is_empty().then_some(()));
}

#[test]
fn what_is_deleted_or_scaled_down_while_it_starts_is_gone_in_the_end() {
    let site = Site::up();
    for round in 0..crate::leadership::rounds(5) {
        let guid = format!("web-{round}");
        site.desire(&guid, 10, STAYS);
        crate::bench::pause(Duration::from_millis(round as u64 * 3));
        site.ask("PATCH", &format!("/v1/desired-lrps/{guid}"), Some(&json!({"instances": 4})))
            .expect(200);
        crate::bench::pause(Duration::from_millis(round as u64 * 3));
        site.ask("DELETE", &format!("/v1/desired-lrps/{guid}"), None).expect(204);
    }
    site.until("all to be gone", || {
        let left = site.get("/v1/actual-lrps").as_array().expect("a list").len();
        (left == 0).then_some(())
    });
    site.until_dead();
}
