//! Whoever asked to be told that a task is complete is told.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};

use super::Site;
use super::api::{post, send};
use crate::bench::LIMIT;

/// A server that answers with these statuses, one call each, and then with the last.
struct Listener {
    url: String,
    calls: Receiver<(String, Value)>,
}

impl Listener {
    fn answering(statuses: &'static [u16]) -> Self {
        let socket = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/told?by=kapell", socket.local_addr().expect("an address"));
        let (told, calls) = channel();
        std::thread::spawn(move || {
            for (count, stream) in socket.incoming().enumerate() {
                let mut stream = stream.expect("a connection");
                let call = read(&mut stream);
                let status = statuses[count.min(statuses.len() - 1)];
                let answer = format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n");
                // Told first: whoever sees the task gone finds the call here.
                if told.send(call).is_err() || stream.write_all(answer.as_bytes()).is_err() {
                    return;
                }
            }
        });
        Self { url, calls }
    }

    #[track_caller]
    fn next(&self) -> (String, Value) {
        self.calls.recv_timeout(LIMIT).expect("a call")
    }
}

fn read(stream: &mut TcpStream) -> (String, Value) {
    let mut heard = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let length = stream.read(&mut piece).expect("a request");
        heard.extend_from_slice(&piece[..length]);
        let text = String::from_utf8_lossy(&heard).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n")
            && let Ok(json) = serde_json::from_str(body)
        {
            return (head.to_owned(), json);
        }
        assert!(length > 0, "the call broke off: {text}");
    }
}

fn task(guid: &str, script: &str, url: &str) -> Value {
    json!({
        "task_guid": guid, "domain": "test", "annotation": "for you", "result_file": "result",
        "action": {"run": {"path": "sh", "args": ["-c", script]}},
        "completion_callback_url": url,
    })
}

#[track_caller]
fn gone(site: &Site, guid: &str) {
    let path = format!("/v1/tasks/{guid}");
    site.until(&format!("{guid} to be gone"), || {
        (send(site, "GET", &path, &[], "").status == 404).then_some(())
    });
}

#[test]
pub(super) fn a_callback_is_called_once_with_the_task_which_then_is_gone() {
    let site = Site::up();
    let listener = Listener::answering(&[200]);
    post(&site, "/v1/tasks", &task("good", "echo 42 > result", &listener.url));
    let (head, told) = listener.next();
    assert!(head.starts_with("POST /told?by=kapell HTTP/1.1"), "{head}");
    assert!(head.to_lowercase().contains("content-type: application/json"), "{head}");
    assert_eq!((&told["task_guid"], &told["failed"]), (&json!("good"), &json!(false)), "{told}");
    assert_eq!((&told["result"], &told["annotation"]), (&json!("42\n"), &json!("for you")));
    gone(&site, "good");
    post(&site, "/v1/tasks", &task("bad", "echo no >&2; exit 3", &listener.url));
    let (_, told) = listener.next();
    assert_eq!((&told["task_guid"], &told["failed"]), (&json!("bad"), &json!(true)));
    assert_eq!(told["failure_reason"], "Exited with status 3: no");
    gone(&site, "bad");
    assert!(listener.calls.try_recv().is_err(), "it was called again");
}

#[test]
pub(super) fn a_callback_that_was_not_there_is_called_again() {
    let site = Site::up();
    let listener = Listener::answering(&[503, 504, 200]);
    post(&site, "/v1/tasks", &task("t", "true", &listener.url));
    let first = listener.next();
    assert_eq!(send(&site, "GET", "/v1/tasks/t", &[], "").json()["state"], "RESOLVING");
    assert_eq!((&first, &first), (&listener.next(), &listener.next()));
    gone(&site, "t");
    // Any other answer is one.
    let rude = Listener::answering(&[500]);
    post(&site, "/v1/tasks", &task("u", "true", &rude.url));
    rude.next();
    gone(&site, "u");
    assert!(rude.calls.try_recv().is_err() && listener.calls.try_recv().is_err());
}

/// Where clouds tell machines their secrets.
#[test]
pub(super) fn nobody_has_us_call_link_local_addresses() {
    let mut site = Site::up();
    for (guid, url) in [
        ("metadata", "http://169.254.169.254/latest"),
        ("mapped", "http://[::ffff:169.254.169.254]/"),
    ] {
        assert_eq!(post(&site, "/v1/tasks", &task(guid, "echo 1 > result", url)).status, 201);
    }
    let running = site.running.as_mut().expect("it runs");
    running.until_told("must not be called", 2);
    for guid in ["metadata", "mapped"] {
        let stays = site.get(&format!("/v1/tasks/{guid}"));
        assert_eq!((&stays["state"], &stays["failed"]), (&json!("RESOLVING"), &json!(false)));
    }
}
