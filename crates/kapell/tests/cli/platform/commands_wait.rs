//! `kapell wait` and `kapell events`.

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::Site;
use super::api::post;
use super::life::STAYS;

#[test]
fn waiting_ends_when_it_is_as_desired() {
    let site = Site::up();
    let mut running = site.begin(&["wait", "domain/apps"]);
    // It waits: what it waits for comes later.
    site.until("somebody to listen", || {
        let told = running.stderr_so_far();
        assert_eq!(told, "", "progress is for terminals");
        running_waits(&site).then_some(())
    });
    site.kapell(&["domain", "set", "apps"]).expect(0);
    running.finish().expect(0);
    site.desire("web", 2, STAYS);
    site.kapell(&["wait", "lrp/web"]).expect(0);
    assert_eq!(site.instances("web").iter().filter(|it| it["state"] == "RUNNING").count(), 2);
    site.kapell(&["wait", "web/1"]).expect(0);
    site.kapell(&["wait", "cell/local"]).expect(0);
    site.kapell(&["task", "run", "--name", "good", "--", "true"]).expect(0);
    site.kapell(&["wait", "task/good"]).expect(0);
}

/// Somebody reads the stream of events.
fn running_waits(site: &Site) -> bool {
    let needle = "wait domain/apps";
    !crate::census::running(|command| command.contains(needle)).is_empty()
        && site.try_ask("GET", "/v1/domains", None).is_some()
}

#[test]
fn waiting_in_vain_says_what_for() {
    let site = Site::up();
    let mut huge = site.lrp("huge", 1, STAYS);
    huge["memory_mb"] = json!(1_000_000_000);
    assert_eq!(post(&site, "/v1/desired-lrps", &huge).status, 201);
    site.until("a reason", || {
        site.instances("huge").first()?["placement_error"].as_str().map(drop)
    });
    let vain = |of: &str| site.kapell(&["wait", of, "--timeout", "200ms"]).expect(1);
    vain("lrp/huge")
        .stderr_has("gave up on lrp/huge after 200ms: 0 of 1 instances run")
        .stderr_has("insufficient resources: memory");
    vain("domain/none").stderr_has("domain none is not fresh");
    vain("cell/none").stderr_has("cell none is not there");
    vain("lrp/none").stderr_has("there is no desired LRP `none`");
    vain("task/none").stderr_has("there is no task `none`");
    vain("huge/5").stderr_has("huge/5 is not desired");
    site.kapell(&["task", "run", "--name", "bad", "--", "sh", "-c", "exit 9"]).expect(0);
    site.kapell(&["wait", "task/bad"]).expect(1).stderr_has("Exited with status 9");
    site.kapell(&["wait", "task/bad", "--timeout", "soon"]).expect(2);
}

#[test]
fn events_are_printed_all_that_are_kept_or_as_they_come() {
    let mut site = Site::up();
    site.kapell(&["domain", "set", "one"]).expect(0);
    let all = site.kapell(&["events"]).expect(0);
    let lines: Vec<&str> = all.stdout.lines().collect();
    assert!(lines[0].starts_with("1-1 ") && !all.stdout.contains("gap"), "{}", all.stdout);
    all.stdout_has("cell_present").stdout_has("one");
    let last = lines.last().and_then(|line| line.split(' ').next()).expect("an id").to_owned();
    assert_eq!(site.kapell(&["events", "--after", &last]).expect(0).stdout, "");
    let one = site.kapell(&["events", "-o", "json"]).expect(0);
    let told: Value =
        serde_json::from_str(one.stdout.lines().next().expect("a line")).expect("JSON");
    assert_eq!(told["id"], "1-1");
    site.kapell(&["events", "-o", "yaml"]).expect(0).stdout_has("---\n").stdout_has("id: \"1-1\"");
    let ahead = site.kapell(&["events", "--after", "1-1000000"]).expect(0);
    assert!(ahead.stdout.lines().next().is_some_and(|line| line.contains(" gap")), "{ahead:?}");
    site.kapell(&["events", "--after", "99-1"]).expect(0).stdout_has(" gap");
    site.kapell(&["events", "--after", "x"]).expect(1).stderr_has("`x` is no id of an event");

    let mut follower = site.begin(&["events", "-f", "--after", &last]);
    site.kapell(&["domain", "set", "two"]).expect(0);
    follower.until("two");
    site.kill();
    site.start(&[]);
    follower.until("gap");
    site.kapell(&["domain", "set", "three"]).expect(0);
    follower.until("three");
    follower.signal(Signal::SIGINT);
    let told = follower.finish().stdout;
    let ids: Vec<(u64, u64)> = told
        .lines()
        .map(|line| {
            let (epoch, number) =
                line.split(' ').next().and_then(|id| id.split_once('-')).expect("an id");
            (epoch.parse().expect("a number"), number.parse().expect("a number"))
        })
        .collect();
    assert!(ids.is_sorted() && ids.windows(2).all(|pair| pair[0] != pair[1]), "{told}");
    assert_eq!(told.matches("gap").count(), 1, "{told}");
    let all = site.kapell(&["events"]).expect(0);
    assert!(all.stdout.starts_with("2-0 "), "{}", all.stdout);
    all.stdout_has("gap").stdout_has("three");
}
