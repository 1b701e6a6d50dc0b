use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use kapell_core::log::{Frame, Stream};
use kapell_core::run::RunId;
use kapell_core::seams::Timestamp;

use super::{Cleared, Janitor, KnownRuns};
use crate::scheduler::backend::Attempt;
use crate::scheduler::logs::RunLogs;

/// What there is; none: nobody can say.
#[derive(Debug, Default)]
struct Told(Mutex<Option<BTreeMap<RunId, bool>>>);

#[async_trait]
impl KnownRuns for Told {
    async fn known(&self, of: &[RunId]) -> Result<BTreeMap<RunId, bool>, String> {
        let known = self.0.lock().unwrap().clone().ok_or("nobody leads right now")?;
        Ok(known.into_iter().filter(|(run_id, _)| of.contains(run_id)).collect())
    }
}

fn attempt(id: &str, number: u32) -> Attempt {
    Attempt { run_id: RunId::parse(id).unwrap(), number }
}

fn wrote(logs: &RunLogs, id: &str, number: u32, length: usize) {
    let mut fetched = logs.fetch(&attempt(id, number)).unwrap();
    let bytes = vec![b'x'; length];
    fetched.take(&Frame { stream: Stream::Out, at: Timestamp(1), bytes }).unwrap();
    fetched.finish().unwrap();
}

/// Two hours from now, so that all that was written is old.
fn later() -> SystemTime {
    SystemTime::now() + Duration::from_secs(7_200)
}

fn janitor(dir: &Path, known: Option<&[(&str, bool)]>, most_bytes: u64) -> Janitor {
    let of = |known: &[(&str, bool)]| {
        known.iter().map(|(id, active)| (RunId::parse(id).unwrap(), *active)).collect()
    };
    let blobs = dir.join("blobs");
    let logs = RunLogs::below(&dir.join("here")).with_blobs(Some(&blobs), "cluster");
    Janitor { logs, known: Arc::new(Told(Mutex::new(known.map(of)))), most_bytes }
}

#[tokio::test]
async fn what_belongs_to_no_run_goes_once_it_is_an_hour_old() {
    let dir = tempfile::tempdir().unwrap();
    let janitor = janitor(dir.path(), Some(&[("j:1", false), ("k:1", true)]), u64::MAX);
    for id in ["j:1", "j:2-beef", "k:1", "gone:9"] {
        wrote(&janitor.logs, id, 0, 10);
    }
    assert_eq!(janitor.clear(SystemTime::now()).await, Ok(Cleared::default()), "all are young");
    let cleared = janitor.clear(later()).await.unwrap();
    assert_eq!(cleared, Cleared { forgotten: 2, ..Cleared::default() });
    let left: Vec<String> =
        janitor.logs.all().unwrap().iter().map(|it| it.run_id.to_string()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
    assert!(!dir.path().join("here/runs/gone").exists(), "a job without runs has no directory");
    assert!(janitor.logs.read(&attempt("j:1", 0)).is_some());
}

#[tokio::test]
async fn while_nobody_can_say_what_there_is_nothing_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    let janitor = janitor(dir.path(), None, 0);
    wrote(&janitor.logs, "j:1", 0, 10);
    assert_eq!(janitor.clear(later()).await, Err("nobody leads right now".to_owned()));
    assert!(janitor.logs.read(&attempt("j:1", 0)).is_some());
}

#[tokio::test]
async fn of_what_is_too_much_the_oldest_goes_but_nothing_of_runs_under_way() {
    let dir = tempfile::tempdir().unwrap();
    let known = [("a:1", false), ("a:2", true), ("a:3", false)];
    let janitor = janitor(dir.path(), Some(&known), 1_500);
    for id in ["a:1", "a:2", "a:3"] {
        wrote(&janitor.logs, id, 0, 1_000);
    }
    let cleared = janitor.clear(later()).await.unwrap();
    assert_eq!(cleared, Cleared { surplus: 2, ..Cleared::default() });
    assert!(janitor.logs.read(&attempt("a:2", 0)).is_some(), "it is under way");
}

#[tokio::test]
async fn a_log_is_copied_to_where_it_outlives_the_host_and_is_read_from_there() {
    let dir = tempfile::tempdir().unwrap();
    let janitor = janitor(dir.path(), Some(&[("j:1", false)]), u64::MAX);
    let of = attempt("j:1", 2);
    wrote(&janitor.logs, "j:1", 2, 10);
    janitor.logs.keep(&of).unwrap();
    janitor.logs.keep(&of).unwrap();
    janitor.logs.keep(&attempt("j:1", 7)).unwrap();
    let here = janitor.logs.read(&of).unwrap();
    assert!(here.dir.starts_with(dir.path().join("here")), "{here:?}");
    let cleared = janitor.clear(later()).await.unwrap();
    assert_eq!(cleared, Cleared { doubles: 1, ..Cleared::default() }, "it lies there too");
    let there = janitor.logs.read(&of).unwrap();
    assert!(there.dir.starts_with(dir.path().join("blobs/cluster/runs")), "{there:?}");
    assert_eq!(fs::read(there.parts[0].join("00000001.log")).unwrap().len(), here_length());
}

fn here_length() -> usize {
    Frame { stream: Stream::Out, at: Timestamp(1), bytes: vec![b'x'; 10] }.encode().len()
}

#[tokio::test]
async fn what_lies_in_the_shared_place_goes_with_its_run_too() {
    let dir = tempfile::tempdir().unwrap();
    let janitor = janitor(dir.path(), Some(&[]), u64::MAX);
    wrote(&janitor.logs, "j:1", 0, 10);
    janitor.logs.keep(&attempt("j:1", 0)).unwrap();
    let cleared = janitor.clear(later()).await.unwrap();
    assert_eq!(cleared, Cleared { forgotten: 2, ..Cleared::default() });
    assert!(janitor.logs.read(&attempt("j:1", 0)).is_none());
}
