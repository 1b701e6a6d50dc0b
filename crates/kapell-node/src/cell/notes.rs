//! What has happened to containers, kept for an agent that comes after this one.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use kapell_core::board::InstanceGuid;
use kapell_core::recipe::{Event, Leaf};
use kapell_core::seams::Timestamp;
use serde::{Deserialize, Serialize};

/// One line. Whatever was not written to its end did not happen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Note {
    Began(Timestamp),
    /// A program is about to be started.
    Begins(Leaf),
    Happened {
        after_ms: u64,
        event: Event,
    },
    /// It was well for the first time.
    Healthy,
    /// It was not well any more, and is being stopped.
    Unhealthy(String),
}

/// All that is noted of a container.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct History {
    pub(super) began: Option<Timestamp>,
    pub(super) begun: BTreeSet<Leaf>,
    pub(super) events: Vec<(Duration, Event)>,
    pub(super) healthy: bool,
    pub(super) unhealthy: Option<String>,
}

impl History {
    fn add(&mut self, note: Note) {
        match note {
            Note::Began(at) => self.began = Some(at),
            Note::Begins(leaf) => drop(self.begun.insert(leaf)),
            Note::Happened { after_ms, event } => {
                self.events.push((Duration::from_millis(after_ms), event));
            }
            Note::Healthy => self.healthy = true,
            Note::Unhealthy(reason) => self.unhealthy = Some(reason),
        }
    }
}

/// A file a container, to which lines are added.
#[derive(Debug, Clone)]
pub(super) struct Notes {
    /// None: nothing is kept.
    dir: Option<PathBuf>,
}

impl Notes {
    pub(super) fn new(cell_dir: Option<&Path>) -> Self {
        Self { dir: cell_dir.map(|dir| dir.join("courses")) }
    }

    fn path(&self, guid: &InstanceGuid) -> Option<PathBuf> {
        self.dir.as_ref().map(|dir| dir.join(guid.as_str()))
    }

    pub(super) fn add(&self, guid: &InstanceGuid, note: &Note) -> io::Result<()> {
        let Some(path) = self.path(guid) else { return Ok(()) };
        let mut line = serde_json::to_vec(note)?;
        line.push(b'\n');
        let append = || OpenOptions::new().append(true).create(true).open(&path);
        let mut file = match append() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir_all(path.parent().unwrap_or(&path))?;
                append()?
            }
            opened => opened?,
        };
        let length = file.metadata()?.len();
        // Nothing may follow half a line.
        file.write_all(&line).inspect_err(|_| drop(file.set_len(length)))
    }

    /// What is noted of a container; none if nothing is. Half a line at the end is cut off.
    pub(super) fn of(&self, guid: &InstanceGuid) -> io::Result<Option<History>> {
        let Some(path) = self.path(guid) else { return Ok(None) };
        let bytes = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read?,
        };
        let mut history = History::default();
        let mut good = 0;
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let whole = line.strip_suffix(b"\n");
            let Some(note) = whole.and_then(|line| serde_json::from_slice(line).ok()) else {
                break;
            };
            history.add(note);
            good += line.len();
        }
        if good < bytes.len() {
            tracing::warn!(container = %guid, "the last note of a container is not whole and is cut off");
            File::options().write(true).open(&path)?.set_len(good as u64)?;
        }
        Ok(Some(history))
    }

    pub(super) fn remove(&self, guid: &InstanceGuid) {
        let removed = self.path(guid).map_or(Ok(()), fs::remove_file);
        match removed {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => tracing::warn!(container = %guid, %error, "cannot remove notes"),
        }
    }

    /// Removes those of containers that are not there.
    pub(super) fn keep_only(&self, there: &BTreeSet<InstanceGuid>) {
        let Some(entries) = self.dir.as_ref().and_then(|dir| fs::read_dir(dir).ok()) else {
            return;
        };
        for entry in entries.filter_map(Result::ok) {
            let name = entry.file_name().into_string().unwrap_or_default();
            let guid = InstanceGuid::new(name);
            if !there.contains(&guid) {
                self.remove(&guid);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use kapell_core::recipe::Outcome;

    use super::*;

    #[test]
    fn notes_come_back_and_a_torn_line_is_cut_off() {
        let dir = tempfile::tempdir().unwrap();
        let notes = Notes::new(Some(dir.path()));
        let guid = InstanceGuid::new("i");
        assert_eq!(notes.of(&guid).unwrap(), None);
        let ended = Event::Ended(Leaf(0), Outcome { failure: None, exit_code: Some(0) });
        let happened = Note::Happened { after_ms: 7, event: ended.clone() };
        for note in [Note::Began(Timestamp(5)), Note::Begins(Leaf(0)), happened, Note::Healthy] {
            notes.add(&guid, &note).unwrap();
        }
        let wanted = History {
            began: Some(Timestamp(5)),
            begun: BTreeSet::from([Leaf(0)]),
            events: vec![(Duration::from_millis(7), ended)],
            healthy: true,
            unhealthy: None,
        };
        assert_eq!(notes.of(&guid).unwrap().unwrap(), wanted);
        let path = dir.path().join("courses/i");
        let whole = fs::read(&path).unwrap();
        for torn in [&b"{\"beg"[..], b"{\"begins\":3}", b"\x00\x00\x00"] {
            fs::write(&path, [&whole[..], torn].concat()).unwrap();
            assert_eq!(notes.of(&guid).unwrap().unwrap(), wanted);
            assert_eq!(fs::read(&path).unwrap(), whole, "so that the next line stands alone");
        }
        notes.keep_only(&BTreeSet::from([guid.clone()]));
        assert!(path.exists());
        notes.keep_only(&BTreeSet::new());
        assert!(!path.exists());
        notes.remove(&guid);
    }
}
