use std::sync::{Arc, Mutex};
use std::time::Duration;

use kapell_backend::executor::{Error, Executor as _, Exit, Job, Output, Started, Stream};
use kapell_core::board::{InstanceGuid, Task, TaskGuid};
use kapell_core::log;
use kapell_core::seams::Timestamp;
use kapell_core::workflow::OnCell;
use tokio::time::{Instant, timeout};

use super::super::{Cells, definition};
use super::board::{Board, State, cells, end, frame};

#[derive(Debug, Default)]
struct Collected(Mutex<(String, String, Vec<String>)>);

impl Collected {
    fn both(&self) -> (String, String) {
        let all = self.0.lock().unwrap();
        (all.0.clone(), all.1.clone())
    }

    fn remarks(&self) -> String {
        self.0.lock().unwrap().2.join("\n")
    }
}

impl Output for Collected {
    fn take(&self, stream: Stream, chunk: &[u8]) {
        let mut all = self.0.lock().unwrap();
        let text = String::from_utf8_lossy(chunk);
        match stream {
            Stream::Stdout => all.0.push_str(&text),
            Stream::Stderr => all.1.push_str(&text),
        }
    }

    fn remark(&self, text: &str) {
        self.0.lock().unwrap().2.push(text.to_owned());
    }
}

const GUID: &str = "step-1";

fn job() -> Job {
    Job { program: "sh".into(), args: vec!["-c".into(), "x".into()], ..Job::default() }
}

fn start(cells: &Cells) -> (Started, Arc<Collected>) {
    let output = Arc::new(Collected::default());
    let errand = cells.errand(TaskGuid::new(GUID), OnCell::default(), "a".to_owned());
    (errand.start(&job(), output.clone()).unwrap(), output)
}

/// Runs to the end, then removes what is left.
async fn run(cells: &Cells) -> (Result<Exit, Error>, Arc<Collected>) {
    let (started, output) = start(cells);
    let ended = timeout(Duration::from_secs(20), started.ended).await.expect("it ends");
    started.settle.expect("there is something to remove").await;
    (ended.map(|ended| ended.exit), output)
}

fn talkative() -> State {
    State {
        log: vec![
            frame(log::Stream::Out, 1, "one\n"),
            frame(log::Stream::Err, 1, "aside\n"),
            frame(log::Stream::Out, 1, "two\n"),
            frame(log::Stream::Note, 2, "3 bytes were dropped\n"),
            frame(log::Stream::Out, 3, "three"),
        ],
        end: Some((0, String::new())),
        ..State::default()
    }
}

#[track_caller]
fn all_came(output: &Collected) {
    assert_eq!(output.both(), ("one\ntwo\nthree".to_owned(), "aside\n".to_owned()));
    assert_eq!(output.remarks(), "3 bytes were dropped");
}

#[tokio::test]
async fn output_comes_whole_and_the_task_is_removed_afterwards() {
    for at_once in [false, true] {
        let board = Board::new(State { at_once, ..talkative() }).await;
        let cells = board.cells();
        let (started, output) = start(&cells);
        assert_eq!(started.ended.await.unwrap().exit, Exit::Code(0));
        all_came(&output);
        assert!(board.state().tasks.contains_key(GUID), "until its end is on record");
        started.settle.unwrap().await;
        assert!(board.state().tasks.is_empty());
    }
}

#[tokio::test]
async fn a_log_that_breaks_off_is_read_on() {
    let length = talkative().log.iter().map(|frame| frame.encode().len()).sum::<usize>();
    for cut in [0, 5, 17, 18, 40, length - 1] {
        let board = Board::new(State { breaks: vec![cut, length / 2], ..talkative() }).await;
        let (exit, output) = run(&board.cells()).await;
        assert_eq!(exit.unwrap(), Exit::Code(0));
        all_came(&output);
    }
}

#[tokio::test]
async fn lost_answers_make_no_second_task() {
    let board = Board::new(State { lost_answers: 3, ..talkative() }).await;
    let (exit, output) = run(&board.cells()).await;
    assert_eq!((exit.unwrap(), board.state().made), (Exit::Code(0), 1));
    all_came(&output);
}

#[tokio::test]
async fn a_board_without_a_leader_is_waited_for_and_that_is_told() {
    let board = Board::new(State { refusals: 12, ..talkative() }).await;
    let cells = Cells::new(board.cells().shared.client.clone(), Duration::from_secs(30));
    let (exit, output) = run(&cells).await;
    assert_eq!((exit.unwrap(), board.state().made), (Exit::Code(0), 1));
    let remarks = output.remarks();
    assert!(remarks.contains("waiting for at most 30.0s (host_patience)"), "{remarks}");
    assert!(remarks.contains("a host answers again"), "{remarks}");
}

#[tokio::test]
async fn a_task_that_is_there_already_is_gone_on_with() {
    let definition =
        definition::of(&job(), TaskGuid::new(GUID), &OnCell::default(), "a".to_owned()).unwrap();
    let mut task = Task::pending(definition, InstanceGuid::new("i"), Timestamp(0));
    task.cell_id = Some("cell".to_owned().into());
    end(&mut task, Some(&(3, "Exited with status 3: three".to_owned())));
    let board = Board::new(talkative()).await;
    board.state().tasks.insert(GUID.to_owned(), task.clone());
    board.state().end = None;
    let (exit, output) = run(&board.cells()).await;
    assert_eq!((exit.unwrap(), board.state().made), (Exit::Code(3), 0));
    all_came(&output);
    // One that does something else is replaced.
    let board = Board::new(talkative()).await;
    task.definition.memory_mb = 7;
    board.state().tasks.insert(GUID.to_owned(), task);
    let (exit, output) = run(&board.cells()).await;
    assert_eq!((exit.unwrap(), board.state().made), (Exit::Code(0), 1));
    assert!(output.remarks().contains("did something else"), "{}", output.remarks());
}

#[tokio::test]
async fn ends_are_told_as_those_of_local_commands() {
    let reason = |reason: &str| Err(reason.to_owned());
    let cases = [
        (3, "Exited with status 3: last words", Ok(Exit::Code(3))),
        (137, "Exited with status 137", Ok(Exit::Code(137))),
        (137, "Killed by signal 9 (SIGKILL)", Ok(Exit::Signal(9))),
        (137, "out of memory: limit 8 MB", reason("out of memory: limit 8 MB")),
        (1, "insufficient resources: memory", reason("insufficient resources: memory")),
    ];
    for (code, why, want) in cases {
        let state = State { end: Some((code, why.to_owned())), at_once: true, ..State::default() };
        let board = Board::new(state).await;
        let (exit, _) = run(&board.cells()).await;
        assert_eq!(exit.map_err(|error| error.to_string()), want, "{why}");
    }
}

#[tokio::test]
async fn a_cancellation_is_asked_for_until_it_is_heard() {
    let board = Board::new(State { end: None, ..talkative() }).await;
    let (started, _) = start(&board.cells());
    let mut ended = started.ended;
    let seen = async {
        while !board.state().seen.iter().any(|line| line.starts_with("GET /v1/logs")) {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        biased;
        _ = &mut ended => panic!("it runs for ever"),
        () = seen => {}
    }
    board.state().refusals = 2;
    started.control.signal(false);
    assert_eq!(ended.await.unwrap().exit, Exit::Signal(15));
    let cancels = board.state().seen.iter().filter(|line| line.ends_with("/cancel")).count();
    assert!(cancels >= 1);
    started.settle.unwrap().await;
    assert!(board.state().tasks.is_empty());
}

#[tokio::test]
async fn one_that_is_told_to_end_before_it_was_sent_ends_at_once() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (started, _) = start(&cells(&format!("http://{free}")));
    started.control.signal(false);
    let began = Instant::now();
    assert_eq!(started.ended.await.unwrap().exit, Exit::Signal(15));
    assert!(began.elapsed() < Duration::from_secs(2), "nothing was sent, so nothing is left");
}

#[tokio::test]
async fn hosts_that_stay_away_are_given_up() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (started, _) = start(&cells(&format!("http://{free}")));
    let error = started.ended.await.unwrap_err().to_string();
    assert!(
        error.starts_with(&format!("no host answered for 2.0s: no host answers at http://{free}")),
        "{error}"
    );
}
