//! The stream of events: whole, in order, and resumed where it broke off.

use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Site;
use super::api::{request, send};
use super::site::ask;

/// One listener.
struct Stream {
    lines: BufReader<TcpStream>,
}

#[derive(Debug, Clone, PartialEq)]
struct Told {
    id: String,
    name: String,
    data: Value,
}

impl Told {
    fn number(&self) -> (u64, u64) {
        number(&self.id)
    }
}

fn number(id: &str) -> (u64, u64) {
    let (epoch, number) = id.split_once('-').expect("an id");
    (epoch.parse().expect("an epoch"), number.parse().expect("a number"))
}

impl Stream {
    fn open(site: &Site, after: Option<&str>) -> Self {
        let header = after.map(|id| format!("Last-Event-ID: {id}"));
        let headers: Vec<&str> = header.iter().map(String::as_str).collect();
        Self::begin(request(site, "GET", "/v1/events", &headers, ""))
    }

    fn begin(stream: TcpStream) -> Self {
        let mut lines = BufReader::new(stream);
        // The first piece of the body: from here on nothing is missed.
        loop {
            let mut line = String::new();
            lines.read_line(&mut line).expect("an answer");
            assert!(!line.is_empty(), "it ended");
            if line.starts_with("retry:") {
                return Self { lines };
            }
        }
    }

    #[track_caller]
    fn next(&mut self) -> Told {
        let (mut id, mut name) = (String::new(), String::new());
        loop {
            let mut line = String::new();
            self.lines.read_line(&mut line).expect("an event");
            assert!(!line.is_empty(), "the stream ended");
            let Some((field, value)) = line.trim_end().split_once(": ") else { continue };
            match field {
                "id" => value.clone_into(&mut id),
                "event" => value.clone_into(&mut name),
                "data" => {
                    let data = serde_json::from_str(value).expect("JSON");
                    return Told { id, name, data };
                }
                _ => {}
            }
        }
    }
}

fn set_domain(site: &Site, name: &str) {
    site.ask("PUT", &format!("/v1/domains/{name}"), None).expect(200);
}

/// Whether it tells of this domain.
fn is_about(told: &Told, domain: &str) -> bool {
    told.data.to_string().contains(&format!("\"{domain}\""))
}

#[test]
pub(super) fn resuming_neither_misses_nor_repeats_anything_while_things_happen() {
    const MANY: usize = 150;
    let site = Site::up();
    let mut all = Vec::new();
    std::thread::scope(|scope| {
        let mut stream = Stream::open(&site, Some("0-0"));
        let (port, token) = (site.port, site.token());
        scope.spawn(move || {
            for number in 0..MANY {
                let path = format!("/v1/domains/d{number}");
                ask(port, &token, "PUT", &path, None).expect("an answer").expect(200);
            }
        });
        let last = format!("d{}", MANY - 1);
        let mut since = 0;
        loop {
            let told = stream.next();
            let done = is_about(&told, &last);
            all.push(told);
            since += 1;
            if done {
                return;
            }
            if since == 7 {
                since = 0;
                let id = all.last().map(|it: &Told| it.id.clone());
                stream = Stream::open(&site, id.as_deref());
            }
        }
    });
    let numbers: Vec<_> = all.iter().map(Told::number).collect();
    let want: Vec<_> = (1..).map(|number| (1, number)).take(numbers.len()).collect();
    assert_eq!(numbers, want);
    assert!(all.iter().all(|told| told.name != "gap" && told.data["id"] == *told.id));
    for number in 0..MANY {
        let name = format!("d{number}");
        assert_eq!(all.iter().filter(|told| is_about(told, &name)).count(), 1, "{name}");
    }
    // The query does as the header does, which goes before it.
    let path = "/v1/events?after=1-3";
    let mut by_query = Stream::begin(request(&site, "GET", path, &[], ""));
    assert_eq!(by_query.next(), all[3]);
    let mut by_both = Stream::begin(request(&site, "GET", path, &["Last-Event-ID: 1-5"], ""));
    assert_eq!(by_both.next(), all[5]);
    for bad in ["x", "1", "1-", "-1"] {
        send(&site, "GET", &format!("/v1/events?after={bad}"), &[], "")
            .refused(400, "bad_parameter");
    }
}

#[test]
pub(super) fn a_new_leader_says_that_something_may_be_missing_and_tells_all_it_has() {
    let mut site = Site::up();
    set_domain(&site, "before");
    let mut stream = Stream::open(&site, Some("0-0"));
    let mut last = stream.next();
    while !is_about(&last, "before") {
        last = stream.next();
    }
    site.kill();
    site.start(&[]);
    set_domain(&site, "after");
    for asked in [last.id.as_str(), "0-0", "1-99999", "77-1"] {
        let mut stream = Stream::open(&site, Some(asked));
        let gap = stream.next();
        assert_eq!((gap.name.as_str(), gap.id.as_str()), ("gap", "2-0"), "after {asked}");
        let mut told = stream.next();
        assert_eq!(told.id, "2-1", "all that is kept follows");
        while !is_about(&told, "after") {
            let next = stream.next();
            assert!(next.name != "gap" && next.number() > told.number(), "{next:?}");
            told = next;
        }
        assert!(asked == "77-1" || told.number() > number(asked), "ids only grow");
    }
    let mut from_the_gap = Stream::open(&site, Some("2-0"));
    assert_eq!(from_the_gap.next().id, "2-1", "who has seen the gap needs no other");
}

#[test]
pub(super) fn a_slow_reader_holds_nobody_up() {
    const MANY: u32 = 300;
    let site = Site::up();
    // More than the buffers of a connection hold.
    let text = "x".repeat(9 * 1024);
    let mut lrp = site.lrp("idle", 0, "true");
    lrp["annotation"] = json!(text);
    let mut slow = Stream::open(&site, None);
    let mut quick = Stream::open(&site, None);
    site.ask("POST", "/v1/desired-lrps", Some(&lrp)).expect(201);
    let (done, last_seen) = channel();
    let reader = std::thread::spawn(move || {
        loop {
            let told = quick.next();
            if told.data.to_string().contains("the last") {
                let _heard = done.send(told.id);
                return;
            }
        }
    });
    let began = Instant::now();
    for number in 0..MANY {
        let end = if number + 1 == MANY { "the last" } else { "" };
        let update = json!({"annotation": format!("{number} {text} {end}")});
        site.ask("PATCH", "/v1/desired-lrps/idle", Some(&update)).expect(200);
    }
    let last = last_seen.recv_timeout(Duration::from_secs(30)).expect("the quick one has all");
    reader.join().expect("it ended");
    let took = began.elapsed();
    assert!(took < Duration::from_secs(30), "{took:?}");
    // What is kept is there for the slow one too, whole and in order.
    let mut before = slow.next();
    while before.id != last {
        let next = slow.next();
        assert_eq!(next.number().1, before.number().1 + 1, "{}", next.name);
        before = next;
    }
}
