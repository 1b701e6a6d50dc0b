//! A real HTTP server that hooks and webhooks are sent to, and that is not always kind.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::bench::pause;

/// What a server does about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reply {
    Status(u16),
    /// With a header more.
    With(u16, String),
    /// After some time.
    Slow(Duration, u16),
    /// Takes the call and says nothing, for as long as the caller stays.
    Never,
}

/// One call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Heard {
    pub(super) path: String,
    head: String,
    pub(super) body: Vec<u8>,
}

impl Heard {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (given, value) = line.split_once(':')?;
            given.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }
}

type Calls = Arc<Mutex<Vec<Heard>>>;

pub(super) struct Receiver {
    port: u16,
    calls: Calls,
}

impl Receiver {
    /// Answers as `reply` says, told the path and how often it was called before.
    pub(super) fn start(reply: impl Fn(&str, usize) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        Self::on(listener, port, reply)
    }

    /// The same, on a port that was free a moment ago.
    pub(super) fn start_on(
        port: u16,
        reply: impl Fn(&str, usize) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self::on(TcpListener::bind(("127.0.0.1", port)).expect("the port"), port, reply)
    }

    fn on(
        listener: TcpListener,
        port: u16,
        reply: impl Fn(&str, usize) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let calls = Calls::default();
        let (heard, reply) = (Arc::clone(&calls), Arc::new(reply));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (heard, reply) = (Arc::clone(&heard), Arc::clone(&reply));
                std::thread::spawn(move || serve(stream, &heard, &*reply));
            }
        });
        Self { port, calls }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// What was called by this path, in order.
    pub(super) fn heard(&self, path: &str) -> Vec<Heard> {
        let calls = self.calls.lock().expect("nobody panics with it");
        calls.iter().filter(|call| call.path == path).cloned().collect()
    }
}

fn serve(mut stream: TcpStream, calls: &Calls, reply: &dyn Fn(&str, usize) -> Reply) {
    let Some(call) = read(&mut stream) else { return };
    let before = {
        let mut calls = calls.lock().expect("nobody panics with it");
        let before = calls.iter().filter(|known| known.path == call.path).count();
        calls.push(call.clone());
        before
    };
    let (status, header) = match reply(&call.path, before) {
        Reply::Status(status) => (status, String::new()),
        Reply::With(status, header) => (status, format!("{header}\r\n")),
        Reply::Slow(time, status) => {
            pause(time);
            (status, String::new())
        }
        Reply::Never => {
            // Until whoever called hangs up.
            drop(stream.read(&mut [0]));
            return;
        }
    };
    let answer =
        format!("HTTP/1.1 {status} X\r\n{header}Content-Length: 0\r\nConnection: close\r\n\r\n");
    drop(stream.write_all(answer.as_bytes()));
}

/// None if it broke off.
fn read(stream: &mut TcpStream) -> Option<Heard> {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        if let Some(end) = end {
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            let path = head.split(' ').nth(1)?.to_owned();
            let mut call = Heard { path, head, body: Vec::new() };
            let length = call.header("content-length").map_or(Some(0), |it| it.parse().ok())?;
            if bytes.len() >= end + 4 + length {
                call.body = bytes[end + 4..end + 4 + length].to_vec();
                return Some(call);
            }
        }
        match stream.read(&mut piece).ok()? {
            0 => return None,
            length => bytes.extend_from_slice(&piece[..length]),
        }
    }
}
