//! The API as programs use it, against a real platform.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::Site;
use super::life::STAYS;
use crate::bench::LIMIT;

/// An answer with its head.
#[derive(Debug)]
pub(crate) struct Heard {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Heard {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let text = String::from_utf8_lossy(&self.body);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let fits = |line: &&str| {
            line.split_once(':').is_some_and(|(each, _)| each.eq_ignore_ascii_case(name))
        };
        self.head.lines().find(fits)?.split_once(':').map(|(_, value)| value.trim())
    }

    /// Asserts the status and the code of a refusal.
    #[track_caller]
    pub(crate) fn refused(&self, status: u16, code: &str) -> Value {
        let body = self.json();
        assert_eq!((self.status, body["code"].as_str()), (status, Some(code)), "{body}");
        assert!(body["message"].as_str().is_some_and(|text| !text.is_empty()), "{body}");
        body["details"].clone()
    }
}

/// Sends a request as it is written, and returns the connection.
pub(crate) fn request(
    site: &Site,
    method: &str,
    path: &str,
    headers: &[&str],
    body: &str,
) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", site.port)).expect("it listens");
    stream.set_read_timeout(Some(LIMIT)).expect("a timeout");
    let mut head = format!("{method} {path} HTTP/1.0\r\nHost: 127.0.0.1:{}\r\n", site.port);
    if !headers.iter().any(|each| each.starts_with("Authorization")) {
        head.push_str(&format!("Authorization: Bearer {}\r\n", site.token()));
    }
    if !headers.iter().any(|each| each.starts_with("Content-Length")) {
        head.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    for header in headers {
        head.push_str(&format!("{header}\r\n"));
    }
    stream.write_all(format!("{head}\r\n{body}").as_bytes()).expect("it reads");
    stream
}

pub(crate) const JSON: &str = "Content-Type: application/json";

/// Sends a request, and reads the whole answer.
#[track_caller]
pub(crate) fn send(site: &Site, method: &str, path: &str, headers: &[&str], body: &str) -> Heard {
    let mut stream = request(site, method, path, headers, body);
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer");
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let status = head.split(' ').nth(1).and_then(|it| it.parse().ok()).expect("a status");
    Heard { status, head, body: answer[end + 4..].to_vec() }
}

#[track_caller]
pub(crate) fn post(site: &Site, path: &str, body: &Value) -> Heard {
    send(site, "POST", path, &[JSON], &body.to_string())
}

#[track_caller]
fn patch(site: &Site, path: &str, body: &Value) -> Heard {
    send(site, "PATCH", path, &[JSON], &body.to_string())
}

#[test]
pub(super) fn a_process_is_desired_once_and_changed_by_version() {
    let site = Site::up();
    let lrp = site.lrp("web", 1, STAYS);
    let made = post(&site, "/v1/desired-lrps", &lrp);
    assert_eq!((made.status, made.header("location")), (201, Some("/v1/desired-lrps/web")));
    let again = post(&site, "/v1/desired-lrps", &lrp);
    assert_eq!((again.status, again.json()), (200, made.json()));
    let mut other = lrp.clone();
    other["memory_mb"] = json!(7);
    other["domain"] = json!("other");
    let details = post(&site, "/v1/desired-lrps", &other).refused(409, "exists");
    assert_eq!(details["fields"], json!(["domain", "memory_mb"]));
    assert_eq!(site.get("/v1/desired-lrps/web"), made.json(), "a refusal changes nothing");

    let path = "/v1/desired-lrps/web";
    let first = made.json()["version"].as_u64().expect("a version");
    let update = json!({"instances": 2, "annotation": "two", "version": first,
                        "routes": {"http": ["web.example"]}});
    let changed = patch(&site, path, &update);
    assert_eq!(changed.status, 200, "{}", changed.text());
    let now = changed.json();
    assert_eq!((&now["instances"], &now["annotation"]), (&json!(2), &json!("two")));
    assert_eq!(now["routes"], json!({"http": ["web.example"]}));
    assert!(now["version"].as_u64() > Some(first));
    let details = patch(&site, path, &update).refused(409, "version");
    assert_eq!((&details["asked"], &details["stands"]), (&json!(first), &now["version"]));
    assert_eq!(patch(&site, path, &json!({"instances": 3})).status, 200, "without a version");
    for fixed in [json!({"memory_mb": 1}), json!({"action": {}}), json!({"process_guid": "x"})] {
        let details = patch(&site, path, &fixed).refused(400, "bad_json");
        assert!(details["line"] == 1 && details["column"].as_u64() > Some(1), "{details}");
    }
    let details = patch(&site, path, &json!({"instances": 100_001})).refused(422, "invalid");
    assert_eq!(details["problems"].as_array().map(Vec::len), Some(1), "{details}");
    let long = "x".repeat(10 * 1024 + 1);
    patch(&site, path, &json!({"annotation": long})).refused(422, "invalid");
    site.all_run("web", 3);

    assert_eq!(send(&site, "DELETE", path, &[], "").status, 204);
    send(&site, "DELETE", path, &[], "").refused(404, "not_found");
    send(&site, "GET", path, &[], "").refused(404, "not_found");
    patch(&site, path, &json!({"instances": 1})).refused(404, "not_found");
    site.until("all to be gone", || site.work().is_empty().then_some(()));
}

#[test]
pub(super) fn a_task_is_created_once_and_cancelled_and_deleted() {
    let site = Site::up();
    let task = json!({"task_guid": "t", "domain": "test",
                      "action": {"run": {"path": "sleep", "args": ["1000"]}}});
    let made = post(&site, "/v1/tasks", &task);
    assert_eq!((made.status, made.header("location")), (201, Some("/v1/tasks/t")));
    assert_eq!(post(&site, "/v1/tasks", &task).status, 200);
    let mut other = task.clone();
    other["disk_mb"] = json!(5);
    let details = post(&site, "/v1/tasks", &other).refused(409, "exists");
    assert_eq!(details["fields"], json!(["disk_mb"]));
    send(&site, "DELETE", "/v1/tasks/t", &[], "").refused(409, "state");
    let cancelled = send(&site, "POST", "/v1/tasks/t/cancel", &[], "");
    assert_eq!((cancelled.status, &cancelled.json()["failed"]), (200, &json!(true)));
    send(&site, "POST", "/v1/tasks/t/cancel", &[], "").refused(409, "state");
    assert_eq!(send(&site, "DELETE", "/v1/tasks/t", &[], "").status, 204);
    for (method, path) in
        [("GET", "/v1/tasks/t"), ("DELETE", "/v1/tasks/t"), ("POST", "/v1/tasks/t/cancel")]
    {
        send(&site, method, path, &[], "").refused(404, "not_found");
    }
    let unnamed = json!({"domain": "test", "action": {"run": {"path": "true"}}});
    let drawn = post(&site, "/v1/tasks", &unnamed);
    let guid = drawn.json()["task_guid"].as_str().expect("a guid").to_owned();
    assert_eq!(drawn.header("location"), Some(format!("/v1/tasks/{guid}").as_str()));
}

#[test]
pub(super) fn what_cannot_be_asked_is_refused_with_its_reason() {
    let site = Site::up();
    let bad = send(&site, "POST", "/v1/tasks", &[JSON], "{\n  \"task_guid\": }");
    let details = bad.refused(400, "bad_json");
    assert_eq!((&details["line"], &details["column"]), (&json!(2), &json!(16)));
    send(&site, "POST", "/v1/tasks", &[JSON], "").refused(400, "bad_json");
    let details =
        send(&site, "GET", "/v1/tasks?stat=DONE", &[], "").refused(400, "unknown_parameter");
    assert_eq!(details["parameter"], "stat");
    send(&site, "GET", "/v1/tasks?state=DONE", &[], "").refused(400, "bad_parameter");
    for path in ["/v1/nothing", "/v1", "/v2/tasks", "/v1/desired-lrps/a/b"] {
        send(&site, "GET", path, &[], "").refused(404, "not_found");
    }
    for (method, path, allow) in [
        ("PUT", "/v1/desired-lrps", "GET, HEAD, POST"),
        ("POST", "/v1/desired-lrps/x", "DELETE, GET, HEAD, PATCH"),
        ("POST", "/v1/actual-lrps", "GET, HEAD"),
        ("GET", "/v1/tasks/x/cancel", "POST"),
        ("DELETE", "/v1/domains/x", "PUT"),
    ] {
        let answer = send(&site, method, path, &[], "");
        answer.refused(405, "method_not_allowed");
        assert_eq!(answer.header("allow"), Some(allow), "{method} {path}");
    }
    let text = send(&site, "POST", "/v1/tasks", &["Content-Type: text/plain"], "{}");
    text.refused(415, "unsupported_media_type");
    let long = send(&site, "POST", "/v1/tasks", &[JSON, "Content-Length: 1048577"], "");
    assert_eq!(long.refused(413, "body_too_large")["limit_bytes"], 1_048_576);
    for (header, challenge) in [
        ("Authorization: none", r#"Bearer realm="kapell""#),
        ("Authorization: Bearer wrong", r#"Bearer realm="kapell", error="invalid_token""#),
    ] {
        for path in ["/v1/tasks", "/v1/openapi.json", "/v1/nothing"] {
            let answer = send(&site, "GET", path, &[header], "");
            answer.refused(401, "unauthorized");
            assert_eq!(answer.header("www-authenticate"), Some(challenge), "{path}");
        }
    }
}
