//! `kapell logs`.

use nix::sys::signal::Signal;
use serde_json::json;

use super::Site;
use crate::running::send;

const SPEAKS: &str =
    "echo \"hello from $INSTANCE_INDEX\"; echo \"$INSTANCE_GUID\" >&2; exec sleep 1000";

/// Waits until the log of an instance has so many lines.
#[track_caller]
fn written(site: &Site, of: &str, lines: usize) {
    site.until(&format!("{lines} lines of {of}"), || {
        let log = site.kapell(&["logs", of]);
        (log.stdout.lines().count() == lines).then_some(())
    });
}

#[test]
fn logs_are_printed_with_prefixes_times_and_tails() {
    let site = Site::up();
    site.desire("web", 2, SPEAKS);
    site.all_run("web", 2);
    written(&site, "web", 4);
    let one = site.kapell(&["logs", "web/1"]).expect(0);
    assert!(one.stdout.contains("hello from 1\n") && !one.stdout.contains(" | "), "{}", one.stdout);
    let all = site.kapell(&["logs", "web"]).expect(0);
    all.stdout_has("web/0 | hello from 0\n").stdout_has("web/1 | hello from 1\n");
    assert!(all.stdout.lines().all(|line| line.starts_with("web/")), "{}", all.stdout);
    let timed = site.kapell(&["logs", "--timestamps", "web/0"]).expect(0);
    let is_time = |line: &str| {
        let (time, _) = line.split_once(' ').expect("a time");
        time.len() == 24 && time.ends_with('Z') && time.contains('T')
    };
    assert!(timed.stdout.lines().all(is_time), "{}", timed.stdout);
    site.desire("count", 1, "seq 1 100; exec sleep 1000");
    written(&site, "count/0", 100);
    let tail = |count: &str| site.kapell(&["logs", "--tail", count, "count/0"]).expect(0).stdout;
    assert_eq!((tail("3").as_str(), tail("0").as_str()), ("98\n99\n100\n", ""));
    assert_eq!(tail("1000").lines().count(), 100);
    site.kapell(&["logs", "none/0"]).expect(1).stderr_has("there is no instance `none/0`");
    site.kapell(&["logs", "none"]).expect(1).stderr_has("`none` has no instances");
    site.kapell(&["logs", "task/none"]).expect(1).stderr_has("there is no task `none`");
    site.kapell(&["logs", "cell/local"])
        .expect(1)
        .stderr_has("only instances, tasks and runs have logs");
}

#[test]
fn following_goes_on_after_a_restart_of_the_instance_and_ends_with_it() {
    let site = Site::up();
    site.desire("web", 1, "echo \"I am $INSTANCE_GUID\"; exec sleep 1000");
    let mut follower = site.begin(&["logs", "-f", "web/0"]);
    let mut guids = Vec::new();
    for round in 0..2 {
        let lrp = site.all_run("web", 1).remove(0);
        let guid = lrp["instance_guid"].as_str().expect("a guid").to_owned();
        follower.until(&format!("I am {guid}\n"));
        assert!(!guids.contains(&guid));
        guids.push(guid);
        if round == 0 {
            site.work().iter().for_each(|process| send(process.pid, Signal::SIGKILL));
            site.until("another", || {
                (site.instances("web").pop()?["instance_guid"] != *guids[0]).then_some(())
            });
        }
    }
    site.kapell(&["lrp", "delete", "web"]).expect(0);
    let told = follower.finish().expect(0).stdout;
    let want: String = guids.iter().map(|guid| format!("I am {guid}\n")).collect();
    assert_eq!(told, want, "each once, and then the end");
}

#[test]
fn following_goes_on_over_a_restart_of_the_platform_without_gap_or_repetition() {
    let mut site = Site::up();
    site.desire("count", 1, "n=0; while :; do n=$((n+1)); echo \"line $n.\"; sleep 0.01; done");
    let mut follower = site.begin(&["logs", "-f", "count/0"]);
    follower.until("line 20.\n");
    site.kill();
    site.start(&[]);
    follower.until("line 100.\n");
    follower.signal(Signal::SIGINT);
    let told = follower.finish().stdout;
    for (number, line) in (1..).zip(told.lines().take(100)) {
        assert_eq!(line, format!("line {number}."));
    }
}

#[test]
fn programs_that_run_at_once_are_followed_at_once_and_read_in_their_order() {
    let site = Site::up();
    let traces = site.traces();
    let speaks = |name: &str| {
        let word = format!("{}/{name}", traces.display());
        let script = format!(
            "for n in 1 2 3 4; do while [ ! -e {word}$n ]; do sleep 0.01; done; echo \"{name} $n\"; done; exec sleep 1000"
        );
        json!({"run": {"path": "/bin/sh", "args": ["-c", script]}})
    };
    let mut web = site.lrp("web", 1, "");
    web["action"] = json!({"parallel": {"actions": [speaks("one"), speaks("other")]}});
    site.ask("POST", "/v1/desired-lrps", Some(&web)).expect(201);
    site.all_run("web", 1);
    let mut follower = site.begin(&["logs", "-f", "web/0"]);
    let mut want = String::new();
    for number in 1..=4 {
        for name in ["one", "other"] {
            std::fs::write(traces.join(format!("{name}{number}")), "").expect("a file");
            let line = format!("{name} {number}\n");
            follower.until(&line);
            want.push_str(&line);
        }
    }
    assert_eq!(site.kapell(&["logs", "web/0"]).expect(0).stdout, want);
    let tail = site.kapell(&["logs", "--tail", "3", "web/0"]).expect(0).stdout;
    assert_eq!(tail, "other 3\none 4\nother 4\n");
    site.kapell(&["lrp", "delete", "web"]).expect(0);
    assert_eq!(follower.finish().expect(0).stdout, want, "each once");
}

#[test]
fn following_all_instances_takes_up_those_that_come() {
    let site = Site::up();
    site.desire("web", 1, SPEAKS);
    let mut follower = site.begin(&["logs", "-f", "web"]);
    follower.until("web/0 | hello from 0\n");
    site.kapell(&["lrp", "scale", "web", "2"]).expect(0);
    follower.until("web/1 | hello from 1\n");
    site.kapell(&["lrp", "delete", "web"]).expect(0);
    follower.finish().expect(0);
}
