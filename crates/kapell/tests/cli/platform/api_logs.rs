//! Logs over the API, in all formats.

use std::io::Read as _;

use serde_json::{Value, json};

use super::Site;
use super::api::{post, request, send};
use crate::bench::LIMIT;

const LINES: &str =
    "echo one; echo two; printf 'caf\\303\\251\\n'; echo three >&2; exec sleep 1000";

fn task(site: &Site, guid: &str, script: &str) {
    let mut lrp = site.lrp("x", 1, script);
    let task = json!({"task_guid": guid, "domain": "test", "action": lrp["action"].take(),
                      "env": lrp["env"].take()});
    assert_eq!(post(site, "/v1/tasks", &task).status, 201);
}

/// Reads a stream until it holds `text`.
#[track_caller]
fn until(site: &Site, path: &str, text: &str) -> String {
    let mut stream = request(site, "GET", path, &[], "");
    stream.set_read_timeout(Some(LIMIT)).expect("a timeout");
    let mut heard = Vec::new();
    let mut piece = [0; 4096];
    while !String::from_utf8_lossy(&heard).contains(text) {
        let length = stream.read(&mut piece).expect("more of it");
        assert!(length > 0, "ended without {text}: {}", String::from_utf8_lossy(&heard));
        heard.extend_from_slice(&piece[..length]);
    }
    String::from_utf8_lossy(&heard).into_owned()
}

/// `(stream, text)` of frames as they are sent.
fn frames(mut bytes: &[u8]) -> Vec<(u8, String)> {
    let mut all = Vec::new();
    while let [stream, rest @ ..] = bytes {
        let length = u32::from_be_bytes(rest[8..12].try_into().expect("four bytes")) as usize;
        all.push((*stream, String::from_utf8_lossy(&rest[12..12 + length]).into_owned()));
        bytes = &rest[12 + length..];
    }
    all
}

#[test]
pub(super) fn a_log_comes_raw_in_frames_and_as_events() {
    let site = Site::up();
    site.desire("web", 1, LINES);
    let path = "/v1/logs/lrp/web/0";
    until(&site, &format!("{path}?follow=true"), "three\n");
    let raw = send(&site, "GET", path, &[], "");
    assert_eq!((raw.status, raw.header("content-type")), (200, Some("application/octet-stream")));
    // The streams of a program are read side by side.
    let mut lines: Vec<_> = raw.text().lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["café", "one", "three", "two"]);
    let of = |wanted: u8| {
        let framed = send(&site, "GET", &format!("{path}?format=frames"), &[], "");
        let all = frames(&framed.body).into_iter().filter(|(stream, _)| *stream == wanted);
        all.map(|(_, text)| text).collect::<String>()
    };
    assert_eq!((of(1).as_str(), of(2).as_str()), ("one\ntwo\ncafé\n", "three\n"));
    let events = send(&site, "GET", &format!("{path}?format=events"), &[], "");
    assert_eq!(events.header("content-type"), Some("text/event-stream"));
    let text = events.text();
    let told: Vec<Value> = text
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| serde_json::from_str(data).expect("JSON"))
        .collect();
    let of = |stream: &str| {
        let fits = told.iter().filter(|it| it["stream"] == stream);
        fits.filter_map(|it| it["text"].as_str()).collect::<String>()
    };
    assert_eq!((of("stdout").as_str(), of("stderr").as_str()), ("one\ntwo\ncafé\n", "three\n"));
    assert!(told[0]["at"].as_i64().is_some() && text.ends_with("event: end\ndata: {}\n\n"));
    let tail = |count: u32| send(&site, "GET", &format!("{path}?tail={count}"), &[], "").text();
    assert_eq!((tail(0).lines().count(), tail(1).lines().count()), (0, 1));
    assert_eq!(tail(3).lines().count(), 3);
    assert_eq!(tail(9).lines().count(), 4);
    for wrong in ["format=xml", "tail=x", "follow=maybe"] {
        send(&site, "GET", &format!("{path}?{wrong}"), &[], "").refused(400, "bad_parameter");
    }
}

#[test]
pub(super) fn the_log_of_a_task_ends_with_it_and_outlives_its_record() {
    let site = Site::up();
    task(&site, "t", "echo first; sleep 0.1; echo last");
    let followed = send(&site, "GET", "/v1/logs/task/t?follow=true", &[], "");
    assert_eq!((followed.status, followed.text().as_str()), (200, "first\nlast\n"));
    site.until("its end", || {
        (send(&site, "DELETE", "/v1/tasks/t", &[], "").status == 204).then_some(())
    });
    for path in ["task/never", "lrp/never/0", "lrp/never/x"] {
        send(&site, "GET", &format!("/v1/logs/{path}"), &[], "").refused(404, "not_found");
    }
}

#[test]
pub(super) fn following_goes_on_with_the_next_container() {
    let site = Site::up();
    site.desire("web", 1, "echo \"I am $INSTANCE_GUID\"; exec sleep 1000");
    let path = "/v1/logs/lrp/web/0?follow=true";
    let mut stream = request(&site, "GET", path, &[], "");
    let mut heard = String::new();
    let mut piece = [0; 4096];
    while heard.matches("I am ").count() < 1 {
        let length = stream.read(&mut piece).expect("more of it");
        heard.push_str(&String::from_utf8_lossy(&piece[..length]));
    }
    let first = site.all_run("web", 1).remove(0);
    let victim = site.work().remove(0);
    crate::running::send(victim.pid, nix::sys::signal::Signal::SIGKILL);
    while heard.matches("I am ").count() < 2 {
        let length = stream.read(&mut piece).expect("more of it");
        assert!(length > 0, "ended: {heard}");
        heard.push_str(&String::from_utf8_lossy(&piece[..length]));
    }
    let first = first["instance_guid"].as_str().expect("a guid");
    assert_eq!(heard.matches(first).count(), 1, "nothing comes twice: {heard}");
}
