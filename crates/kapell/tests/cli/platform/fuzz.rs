//! Requests that nobody means: every route of the API, asked in ways that no client would.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::chance::Chance;
use crate::bench::{Bench, LIMIT};
use crate::leadership::cluster::free_port;
use crate::running::Running;

/// How long it goes on where nothing else is said.
const USUAL: Duration = Duration::from_secs(4);
const SECONDS: &str = "KAPELL_FUZZ_SECONDS";
const SEED: &str = "KAPELL_FUZZ_SEED";

/// A host without cells: whatever is made of this, nothing runs.
struct Target {
    /// Kept for as long as it runs.
    _bench: Bench,
    running: Running,
    token: String,
    port: u16,
}

impl Target {
    fn start() -> Self {
        let (bench, port) = (Bench::new(), free_port());
        let store = format!("file:{}", bench.path("store").display());
        let listen = format!("127.0.0.1:{port}");
        let args = ["host", "--store", &store, "--listen", &listen, "--advertise", &listen];
        let running = bench.start(&args);
        let token = || std::fs::read_to_string(bench.path("state/token")).ok();
        let token = crate::bench::eventually("a token", token).trim().to_owned();
        let target = Self { _bench: bench, running, token, port };
        let up = crate::bench::try_eventually(LIMIT, || {
            let answer = target.send(&target.request("GET", "/v1/tasks", &[], b""))?;
            (answer.status == 200).then_some(())
        });
        assert!(up.is_some(), "it does not lead");
        target
    }

    fn request(&self, method: &str, path: &str, more: &[&str], body: &[u8]) -> Vec<u8> {
        let mut head = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: Bearer {}\r\n\
             Connection: close\r\nContent-Length: {}\r\n",
            self.port,
            self.token,
            body.len()
        );
        for line in more {
            head.push_str(line);
            head.push_str("\r\n");
        }
        let mut request = head.into_bytes();
        request.extend_from_slice(b"\r\n");
        request.extend_from_slice(body);
        request
    }

    /// Nothing if the connection was closed without an answer.
    fn send(&self, request: &[u8]) -> Option<Got> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(20))).ok()?;
        // It may be refused before all of it was sent.
        let _sent = stream.write_all(request);
        let mut bytes = Vec::new();
        let mut piece = [0; 4096];
        // Streams do not end: what they begin with is enough.
        loop {
            let count = stream.read(&mut piece).ok().filter(|count| *count > 0);
            bytes.extend_from_slice(&piece[..count.unwrap_or(0)]);
            let text = String::from_utf8_lossy(&bytes);
            let head = text.split_once("\r\n\r\n").map(|(head, _)| head.to_ascii_lowercase());
            let streams = head.as_ref().is_some_and(|it| it.contains("text/event-stream"));
            if count.is_none() || streams {
                let (head, body) = text.split_once("\r\n\r\n")?;
                let status = head.split(' ').nth(1)?.parse().ok()?;
                return Some(Got { status, head: head.to_owned(), body: body.to_owned() });
            }
        }
    }
}

struct Got {
    status: u16,
    head: String,
    body: String,
}

/// One line of the routing table, as the host itself tells it.
struct Line {
    method: String,
    path: String,
    takes: Option<String>,
    query: Vec<String>,
}

fn lines(document: &Value) -> Vec<Line> {
    let mut lines = Vec::new();
    for (path, methods) in document["paths"].as_object().expect("paths") {
        for (method, about) in methods.as_object().expect("methods") {
            let schema = &about["requestBody"]["content"]["application/json"]["schema"]["$ref"];
            let parameters = about["parameters"].as_array().cloned().unwrap_or_default();
            let query = parameters.iter().filter(|it| it["in"] == "query");
            lines.push(Line {
                method: method.to_uppercase(),
                path: path.clone(),
                takes: schema.as_str().and_then(|it| it.rsplit('/').next()).map(str::to_owned),
                query: query.filter_map(|it| it["name"].as_str().map(str::to_owned)).collect(),
            });
        }
    }
    lines
}

/// Something that could be sent there.
fn valid(schema: &str, number: u64) -> Value {
    let run = json!({"run": {"path": "/bin/true", "args": ["-c", "x"], "env": [{"name": "A", "value": "b"}]}});
    let lrp = json!({
        "process_guid": format!("p{number}"), "domain": "d", "instances": 2, "memory_mb": 16, "disk_mb": 16,
        "setup": run, "action": {"codependent": [run, {"timeout": {"action": run, "ms": 5}}]},
        "monitor": {"tcp": {"port": 80}}, "ports": [80, 81], "start_timeout_ms": 1000,
        "routes": {"a": {"b": [1, null, "c"]}}, "placement_tags": ["x"], "annotation": "n",
    });
    let task = json!({
        "task_guid": format!("t{number}"), "domain": "d", "action": {"parallel": [run, {"try": run}]},
        "memory_mb": 1, "result_file": "/tmp/x", "completion_callback_url": "http://127.0.0.1:1/x",
    });
    match schema {
        "DesiredLrp" | "DesiredLrpWanted" => lrp,
        "TaskDefinition" => task,
        "CellPresence" => json!({
            "cell_id": "c", "url": "http://127.0.0.1:1", "zone": "z", "evacuating": false,
            "capacity": {"memory_mb": 100, "disk_mb": 100, "containers": 10},
        }),
        "Reports" => json!({"reports": [
            {"claim": {"key": {"process_guid": "p1", "index": 0}, "instance_guid": "i"}},
            {"start_task": {"task_guid": "t1", "instance_guid": "i"}},
        ]}),
        "RecordsWanted" => json!({"lrps": [{"process_guid": "p1", "index": 0}], "tasks": ["t1"]}),
        "Wishes" => json!({"lrps": [lrp], "tasks": [task], "domains": []}),
        _ => {
            json!({"instances": 3, "ttl": "5s", "annotation": "x", "role": "reader", "domains": ["d"]})
        }
    }
}

const ODD: [&str; 14] = [
    "",
    "..",
    "%00",
    "%ff",
    "%",
    "%2e%2e%2f",
    "a/b",
    "\u{fffd}",
    "18446744073709551616",
    "-1",
    "0",
    "p1",
    "x%20y?z#w",
    "'\"<script>",
];

/// Replaces one thing somewhere in a value.
fn mutate(value: &mut Value, chance: &mut Chance) {
    match value {
        Value::Object(map) if !map.is_empty() && chance.index(4) > 0 => {
            let at = chance.index(map.len());
            let key = map.keys().nth(at).cloned().unwrap_or_default();
            match chance.index(6) {
                0 => drop(map.remove(&key)),
                1 => drop(map.insert(format!("{key}x"), json!(1))),
                _ => map.values_mut().nth(at).into_iter().for_each(|it| mutate(it, chance)),
            }
        }
        Value::Array(list) if !list.is_empty() && chance.index(4) > 0 => {
            let at = chance.index(list.len());
            if chance.index(4) == 0 {
                let again = list[at].clone();
                list.extend(std::iter::repeat_n(again, chance.index(300)));
            } else {
                mutate(&mut list[at], chance);
            }
        }
        Value::Object(_)
        | Value::Array(_)
        | Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_) => *value = random(chance, 0),
    }
}

fn random(chance: &mut Chance, depth: usize) -> Value {
    match chance.index(if depth > 4 { 9 } else { 12 }) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(-1),
        3 => json!(u64::MAX),
        4 => json!(1e308),
        5 => json!(i64::MIN),
        6 => json!("x".repeat(chance.index(70_000))),
        7 => json!(ODD[chance.index(ODD.len())]),
        8 => json!("\u{0}\u{202e}\u{1f4a9}\n"),
        9 => Value::Array((0..chance.index(5)).map(|_| random(chance, depth + 1)).collect()),
        10 => json!({"run": random(chance, depth + 1)}),
        _ => json!({"action": random(chance, depth + 1), "domain": random(chance, depth + 1)}),
    }
}

fn body(line: &Line, chance: &mut Chance) -> Vec<u8> {
    let schema = line.takes.as_deref().unwrap_or_default();
    let mut value = valid(schema, chance.below(20));
    match chance.index(12) {
        0 => random(chance, 0).to_string().into_bytes(),
        1 => {
            let text = value.to_string();
            text.as_bytes()[..chance.index(text.len())].to_vec()
        }
        2 => {
            let deep = 1 + chance.index(200_000);
            [b"[".repeat(deep), b"]".repeat(chance.index(deep))].concat()
        }
        3 => format!("{{\"instances\":{}}}", "9".repeat(1 + chance.index(400))).into_bytes(),
        4 => {
            let mut bytes = value.to_string().into_bytes();
            let at = chance.index(bytes.len());
            bytes[at] = u8::try_from(chance.index(256)).unwrap_or_default();
            bytes
        }
        5 => br#"{"action":{"try":"#.repeat(1 + chance.index(5_000)),
        6 => Vec::new(),
        _ => {
            for _ in 0..=chance.index(3) {
                mutate(&mut value, chance);
            }
            value.to_string().into_bytes()
        }
    }
}

fn path(line: &Line, chance: &mut Chance) -> String {
    let mut path = String::new();
    for part in line.path.split('/').skip(1) {
        path.push('/');
        match part.strip_prefix('{') {
            Some(_) if chance.index(4) == 0 => path.push_str(ODD[chance.index(ODD.len())]),
            Some(_) => path.push_str(["p1", "t1", "c", "0", "d"][chance.index(5)]),
            None => path.push_str(part),
        }
    }
    if chance.index(3) == 0 {
        let name = line.query.get(chance.index(line.query.len().max(1)));
        let name = name.map_or("no_such", String::as_str);
        path.push_str(&format!("?{name}={}", ODD[chance.index(ODD.len())]));
    }
    // What cannot stand in a request line is refused by the reader of heads.
    path.retain(|it| it.is_ascii_graphic());
    path
}

const HEADERS: [&str; 8] = [
    "Content-Type: application/json",
    "Content-Type: application/json; charset=utf-8",
    "Content-Type: text/plain",
    "Content-Type: application/merge-patch+json",
    "X-Request-Id: \u{7f}\u{ff}",
    "Last-Event-Id: 99999999999999999999-1",
    "If-Match: \"*\"",
    "kapell-forwarded-by: nobody",
];

/// What is wrong with an answer, if anything is.
fn fault(got: &Got) -> Option<String> {
    if (200..400).contains(&got.status) {
        return None;
    }
    if got.status >= 500 && got.status != 503 && got.status != 502 {
        return Some("a failure of ours".to_owned());
    }
    let body: Value = match serde_json::from_str(&got.body) {
        Ok(body) => body,
        // The reader of heads says no in its own way.
        Err(_) if got.body.is_empty() && got.status == 400 => return None,
        Err(error) => return Some(format!("no problem in JSON: {error}")),
    };
    let whole =
        body["code"].is_string() && body["message"].is_string() && body["details"].is_object();
    (!whole).then(|| "a problem without code, message or details".to_owned())
}

#[test]
#[expect(clippy::print_stderr, reason = "figures, for whoever looks")]
fn no_request_makes_a_host_fail() {
    let seconds = std::env::var(SECONDS).ok().and_then(|text| text.parse().ok());
    let time = seconds.map_or(USUAL, Duration::from_secs);
    let seed = std::env::var(SEED).ok().and_then(|text| text.parse().ok()).unwrap_or(7);
    let mut target = Target::start();
    let document = target.send(&target.request("GET", "/v1/openapi.json", &[], b""));
    let document = document.expect("the document").body;
    let lines = lines(&serde_json::from_str(&document).expect("JSON"));
    assert!(lines.len() > 30, "{}", lines.len());
    let mut chance = Chance::of(seed);
    let (began, mut count, mut refused) = (Instant::now(), 0_usize, 0_usize);
    while began.elapsed() < time {
        for line in &lines {
            let kind = HEADERS[if chance.index(4) > 0 { 0 } else { chance.index(HEADERS.len()) }];
            let (path, body) = (path(line, &mut chance), body(line, &mut chance));
            let request = target.request(&line.method, &path, &[kind], &body);
            let shown =
                || String::from_utf8_lossy(&request[..request.len().min(2_000)]).into_owned();
            let Some(got) = target.send(&request) else {
                let log = target.running.stderr_so_far();
                panic!("seed {seed}, request {count}: no answer to {}\n{log}", shown())
            };
            if let Some(fault) = fault(&got) {
                panic!(
                    "seed {seed}, request {count}: {fault}: {}\n{}\n{}",
                    shown(),
                    got.head,
                    got.body
                );
            }
            count += 1;
            refused += usize::from(got.status >= 400);
        }
    }
    let log = target.running.stderr_so_far();
    eprintln!("fuzz: {count} requests, {refused} refused, in {:?}", began.elapsed());
    assert!(!log.contains("panicked"), "{log}");
    assert!(refused > 0 && refused < count, "{refused} of {count}");
    let health = target.send(&target.request("GET", "/healthz", &[], b"")).expect("an answer");
    assert!(health.body.contains("\"writes\":\"accepted\""), "{}", health.body);
}
