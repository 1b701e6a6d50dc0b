//! The lines of a run's journal, and what a finished or broken-off journal tells.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::flow::{Kind, Past, PastStep, Placed, State};
use crate::seams::{RunId, Timestamp};
use crate::workflow::Bound;

/// The format that is written. Readers take this one and the one before.
pub const VERSION: u32 = 1;

/// One line of a journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Record {
    Run(Header),
    Node(NodeRecord),
    End(EndRecord),
}

/// The first line: what is run, from which file, with what.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    pub v: u32,
    pub id: RunId,
    pub file: String,
    pub workflow: String,
    pub started: Timestamp,
    pub pid: u32,
    pub steps: usize,
    pub params: Bound,
    /// Tells whether the file has changed since.
    pub digest: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumes: Option<RunId>,
    /// How many lines about kept steps follow. With fewer the run never began: a resume of it
    /// would repeat steps that an earlier run had done.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub kept: u32,
}

/// One event of one step.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct NodeRecord {
    pub v: u32,
    pub ts: i64,
    pub event: String,
    pub node: String,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempt: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Output variables that the step set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<(String, String)>,
    /// Its standard output, where some text refers to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdout: Option<String>,
    /// What is about to run its command elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Placed>,
}

/// The last line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EndRecord {
    pub v: u32,
    pub ts: i64,
    pub verdict: String,
    pub duration_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for this signature")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The event of a step that was taken over from the run that this one resumes.
pub const KEPT: &str = "node_kept";

/// The event of a step whose command is about to be given to a cell or a cluster.
pub const PLACED: &str = "node_placed";

/// Why a journal cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("line {line} of the journal is damaged: {problem}")]
    Damaged { line: usize, problem: String },
    #[error("the journal was written by a newer kapell (format {found}, this one reads {VERSION})")]
    Newer { found: u32 },
    #[error("the journal is empty")]
    Empty,
}

/// What a journal tells: the header, how every step stands, and how the run ended if it did.
#[derive(Debug, Clone)]
pub struct Story {
    pub header: Header,
    pub nodes: BTreeMap<String, NodeStory>,
    /// Step names in the order of their first event.
    pub order: Vec<String>,
    pub end: Option<EndRecord>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct NodeStory {
    pub state: State,
    pub last: NodeRecord,
    /// What ran its command when the journal ends.
    pub task: Option<Placed>,
}

#[derive(Deserialize)]
struct Version {
    v: u32,
}

impl Story {
    /// Reads a journal. A last line that was cut off while it was written never happened.
    pub fn read(text: &str) -> Result<Self, Error> {
        let mut story: Option<Self> = None;
        let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
        for (at, line) in whole.lines().enumerate() {
            match serde_json::from_str::<Record>(line) {
                Ok(Record::Run(header)) if header.v > VERSION => {
                    return Err(Error::Newer { found: header.v });
                }
                Ok(Record::Run(header)) => {
                    story.get_or_insert(Self {
                        header,
                        nodes: BTreeMap::new(),
                        order: Vec::new(),
                        end: None,
                    });
                }
                Ok(Record::Node(record)) => {
                    if let Some(story) = &mut story {
                        story.take(record);
                    }
                }
                Ok(Record::End(end)) => {
                    if let Some(story) = &mut story {
                        story.end = Some(end);
                    }
                }
                Err(error) => return Err(unreadable(at + 1, line, &error)),
            }
        }
        story.ok_or(Error::Empty)
    }

    fn take(&mut self, record: NodeRecord) {
        if record.event == PLACED {
            let task = record.task.clone();
            match self.nodes.get_mut(&record.node) {
                Some(node) => node.task = task,
                None => self.put(State::Running, record, task),
            }
            return;
        }
        let state = match (record.event.as_str(), Kind::from_name(&record.event)) {
            (KEPT, _) => State::Kept,
            (_, Some(Kind::NodeCompleted)) => State::Succeeded,
            (_, Some(Kind::NodeFailed)) => State::Failed,
            (_, Some(Kind::NodeFailedContinue)) => State::FailedContinue,
            (_, Some(Kind::NodeSkipped)) => State::Skipped,
            (_, Some(Kind::NodeCancelled)) => State::Cancelled,
            (_, Some(Kind::NodeRetrying)) => State::Retrying,
            (_, Some(Kind::NodeStarted)) => State::Running,
            (
                _,
                Some(Kind::WorkflowStarted | Kind::WorkflowCompleted | Kind::WorkflowFailed) | None,
            ) => return,
        };
        // One that goes on where the run before left it was placed before it is told as started.
        let before = self.nodes.get_mut(&record.node).filter(|node| node.state == State::Running);
        let task = before.filter(|_| state == State::Running).and_then(|node| node.task.take());
        self.put(state, record, task);
    }

    fn put(&mut self, state: State, record: NodeRecord, task: Option<Placed>) {
        if !self.nodes.contains_key(&record.node) {
            self.order.push(record.node.clone());
        }
        self.nodes.insert(record.node.clone(), NodeStory { state, last: record, task });
    }

    /// What a later run needs to know of this one.
    pub fn past(self) -> Past {
        let step = |story: NodeStory| PastStep {
            state: story.state,
            outputs: story.last.outputs,
            stdout: story.last.stdout,
            task: story.task,
        };
        Past {
            run: self.header.id.to_string(),
            steps: self.nodes.into_iter().map(|(name, story)| (name, step(story))).collect(),
        }
    }
}

fn unreadable(line: usize, text: &str, error: &serde_json::Error) -> Error {
    match serde_json::from_str::<Version>(text) {
        Ok(Version { v }) if v > VERSION => Error::Newer { found: v },
        Ok(_) | Err(_) => Error::Damaged { line, problem: error.to_string() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::TaskGuid;
    use crate::kubernetes::JobPlace;

    fn line(record: &Record) -> String {
        serde_json::to_string(record).unwrap() + "\n"
    }

    fn header() -> Record {
        Record::Run(Header {
            v: VERSION,
            id: RunId::parse("r1").unwrap(),
            file: "flow.yaml".into(),
            workflow: "flow".into(),
            started: Timestamp(0),
            pid: 1,
            steps: 2,
            params: Bound::default(),
            digest: "d".into(),
            resumes: None,
            kept: 0,
        })
    }

    fn node(name: &str, event: &str) -> Record {
        Record::Node(NodeRecord {
            v: VERSION,
            node: name.into(),
            event: event.into(),
            ..NodeRecord::default()
        })
    }

    #[test]
    fn the_last_event_of_a_step_counts() {
        let text = [
            header(),
            node("a", "node_started"),
            node("a", "node_completed"),
            node("b", "node_started"),
        ]
        .iter()
        .map(line)
        .collect::<String>();
        let story = Story::read(&text).unwrap();
        assert_eq!(story.nodes["a"].state, State::Succeeded);
        assert_eq!(story.nodes["b"].state, State::Running);
        assert!(story.end.is_none());
    }

    #[test]
    fn a_task_is_known_until_its_step_has_ended() {
        let placed = Record::Node(NodeRecord {
            v: VERSION,
            node: "a".into(),
            event: PLACED.into(),
            task: Some(Placed::Task(TaskGuid::new("a-1"))),
            ..NodeRecord::default()
        });
        let started = line(&node("a", "node_started"));
        let goes_on = line(&header()) + &line(&placed);
        let mut text = line(&header()) + &started + &line(&placed);
        for text in [text.clone(), goes_on.clone(), goes_on + &started] {
            let story = Story::read(&text).unwrap();
            assert_eq!((story.nodes["a"].state, story.order.len()), (State::Running, 1));
            assert_eq!(
                story.past().steps["a"].task,
                Some(Placed::Task(TaskGuid::new("a-1"))),
                "{text}"
            );
        }
        for event in ["node_retrying", "node_completed", "node_cancelled"] {
            text += &line(&node("a", event));
            assert_eq!(Story::read(&text).unwrap().past().steps["a"].task, None, "{event}");
        }
    }

    #[test]
    fn what_ran_elsewhere_is_known_again_whatever_it_was() {
        let task = Placed::Task(TaskGuid::new("a-1"));
        assert_eq!(serde_json::to_string(&task).unwrap(), "\"a-1\"", "as it always was");
        let place = JobPlace {
            cluster: "main".into(),
            namespace: "jobs".into(),
            name: "a-2".into(),
            run: "r0".into(),
        };
        for placed in [task, Placed::Job(place)] {
            let text = serde_json::to_string(&placed).unwrap();
            assert_eq!(serde_json::from_str::<Placed>(&text).unwrap(), placed);
        }
    }

    #[test]
    fn a_torn_last_line_never_happened() {
        let whole = line(&header()) + &line(&node("a", "node_started"));
        let torn = line(&node("a", "node_completed"));
        for cut in 0..torn.len() {
            let story = Story::read(&format!("{whole}{}", &torn[..cut])).unwrap();
            assert_eq!(story.nodes["a"].state, State::Running, "cut at {cut}");
        }
    }

    #[test]
    fn damage_in_the_middle_is_reported_with_its_line() {
        let text = line(&header()) + "garbage\n" + &line(&node("a", "node_started"));
        assert!(matches!(Story::read(&text), Err(Error::Damaged { line: 2, .. })));
    }

    #[test]
    fn a_newer_format_is_named() {
        let text = line(&header()).replace("\"v\":1", "\"v\":9");
        assert_eq!(Story::read(&text).unwrap_err(), Error::Newer { found: 9 });
    }
}
