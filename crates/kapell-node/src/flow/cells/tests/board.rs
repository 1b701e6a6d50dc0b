//! A board over real HTTP that does with tasks what a test tells it to.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use kapell_api::client::{Client, Options};
use kapell_core::board::{InstanceGuid, Task, TaskDefinition, TaskState};
use kapell_core::log::{Frame, Stream};
use kapell_core::seams::Timestamp;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::super::Cells;

/// What the board is, and what it does next.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) tasks: BTreeMap<String, Task>,
    /// How often a task was made.
    pub(super) made: usize,
    /// Requests whose effect happens, and whose answer is lost.
    pub(super) lost_answers: usize,
    /// Requests that are refused because nobody leads.
    pub(super) refusals: usize,
    /// What every task has written.
    pub(super) log: Vec<Frame>,
    /// After how many bytes a log breaks off, the next ones first.
    pub(super) breaks: Vec<usize>,
    /// How a task ends once its log was followed, or when it is made if `at_once`.
    pub(super) end: Option<(i32, String)>,
    pub(super) at_once: bool,
    /// Every request: its method and its path.
    pub(super) seen: Vec<String>,
}

pub(super) struct Board {
    pub(super) url: String,
    state: Arc<Mutex<State>>,
    _serving: JoinSet<()>,
}

impl Board {
    pub(super) async fn new(state: State) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(Mutex::new(state));
        let mut serving = JoinSet::new();
        let shared = Arc::clone(&state);
        serving.spawn(async move {
            let mut visits = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                visits.spawn(serve(stream, Arc::clone(&shared)));
            }
        });
        Self { url, state, _serving: serving }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub(super) fn cells(&self) -> Cells {
        cells(&self.url)
    }
}

pub(super) fn cells(url: &str) -> Cells {
    let options = Options { patience: Duration::from_millis(10), ..Options::default() };
    Cells::new(Client::new(url, options).unwrap(), Duration::from_secs(2))
}

pub(super) fn frame(stream: Stream, at: i64, text: &str) -> Frame {
    Frame { stream, at: Timestamp(at), bytes: text.as_bytes().to_vec() }
}

/// One request over one connection.
async fn serve(mut stream: TcpStream, state: Arc<Mutex<State>>) {
    let Some((line, body)) = read(&mut stream).await else { return };
    let answer = respond(&mut state.lock().unwrap(), &line, &body);
    if let Some(answer) = answer {
        let _gone = stream.write_all(&answer).await;
    }
}

async fn read(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let text = String::from_utf8_lossy(&bytes[..head]).to_lowercase();
    let length = text.lines().find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.map_or(0, |length| length.trim().parse().unwrap());
    while bytes.len() < head + length {
        stream.read_buf(&mut bytes).await.ok()?;
    }
    let line = String::from_utf8_lossy(&bytes[..head]).lines().next()?.to_owned();
    let line = line.trim_end_matches(" HTTP/1.1").to_owned();
    Some((line, bytes[head..].to_vec()))
}

/// None: the connection is closed without a word.
fn respond(state: &mut State, line: &str, body: &[u8]) -> Option<Vec<u8>> {
    state.seen.push(line.to_owned());
    if state.refusals > 0 {
        state.refusals -= 1;
        return Some(problem(503, "no_leader"));
    }
    let (method, path) = line.split_once(' ')?;
    let path = path.trim_start_matches("/v1/");
    let answer = match (method, path.split(['/', '?']).collect::<Vec<_>>().as_slice()) {
        ("POST", ["tasks"]) => make(state, serde_json::from_slice(body).unwrap()),
        ("POST", ["tasks", guid, "cancel"]) => match state.tasks.get_mut(*guid) {
            Some(task) => {
                (task.state, task.failed) = (TaskState::Completed, true);
                whole(204, "")
            }
            None => problem(404, "not_found"),
        },
        ("GET", ["tasks", guid]) => match state.tasks.get(*guid) {
            Some(task) => whole(200, &serde_json::to_string(task).unwrap()),
            None => problem(404, "not_found"),
        },
        ("DELETE", ["tasks", guid]) => match state.tasks.remove(*guid) {
            Some(_) => whole(204, ""),
            None => problem(404, "not_found"),
        },
        ("GET", ["logs", "task", guid, ..]) => log(state, guid),
        _ => problem(405, "not_allowed"),
    };
    if state.lost_answers > 0 {
        state.lost_answers -= 1;
        return None;
    }
    Some(answer)
}

fn make(state: &mut State, definition: TaskDefinition) -> Vec<u8> {
    let guid = definition.task_guid.to_string();
    if let Some(stands) = state.tasks.get(&guid) {
        return if stands.definition == definition {
            whole(200, &serde_json::to_string(stands).unwrap())
        } else {
            problem(409, "exists")
        };
    }
    state.made += 1;
    let mut task = Task::pending(definition, InstanceGuid::new("i"), Timestamp(0));
    task.state = TaskState::Running;
    task.cell_id = Some("cell".to_owned().into());
    if state.at_once {
        end(&mut task, state.end.as_ref());
    }
    let text = serde_json::to_string(&task).unwrap();
    state.tasks.insert(guid, task);
    whole(201, &text)
}

pub(super) fn end(task: &mut Task, how: Option<&(i32, String)>) {
    let Some((code, reason)) = how else { return };
    task.state = TaskState::Completed;
    task.first_completed_at = Some(Timestamp(1));
    task.exit_code = Some(*code);
    task.failed = *code != 0;
    task.failure_reason.clone_from(reason);
}

fn log(state: &mut State, guid: &str) -> Vec<u8> {
    let bytes: Vec<u8> = state.log.iter().flat_map(Frame::encode).collect();
    let head = |length| {
        format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n")
    };
    if let Some(cut) = state.breaks.pop() {
        return [head(bytes.len()).as_bytes(), &bytes[..cut]].concat();
    }
    if let Some(task) = state.tasks.get_mut(guid) {
        end(task, state.end.as_ref());
    }
    [head(bytes.len()).as_bytes(), &bytes].concat()
}

fn problem(status: u16, code: &str) -> Vec<u8> {
    let body = json!({"code": code, "message": code, "details": {}});
    whole(status, &body.to_string())
}

fn whole(status: u16, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
        .into_bytes()
}
