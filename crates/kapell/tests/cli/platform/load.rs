//! Clients that write as fast as they are let, and remember what was acknowledged.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;

use serde_json::{Value, json};

use super::site::{Answer, ask};

/// What was acknowledged of one process; what nobody answered is not known and not in here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Written {
    Created,
    Patched,
    Deleted,
}

pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    count: Arc<AtomicUsize>,
    writers: Vec<JoinHandle<BTreeMap<String, Written>>>,
}

impl Load {
    /// So many writers that ask whichever of the hosts answers.
    pub(crate) fn start(writers: usize, ports: &[u16], token: &str) -> Self {
        let (stop, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let writers = (0..writers).map(|number| {
            let writer = Writer {
                name: format!("w{number}"),
                ports: ports.to_vec(),
                token: token.to_owned(),
                stop: Arc::clone(&stop),
                count: Arc::clone(&count),
            };
            std::thread::spawn(move || writer.write())
        });
        Self { writers: writers.collect(), stop, count }
    }

    /// How much was acknowledged so far.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Ends the writers and compares what they were told with what is there.
    #[track_caller]
    pub(crate) fn check(mut self, there: &Value) {
        self.stop.store(true, Ordering::Relaxed);
        let there: BTreeMap<&str, &Value> = there
            .as_array()
            .expect("a list")
            .iter()
            .map(|lrp| (lrp["process_guid"].as_str().expect("a guid"), lrp))
            .collect();
        let mut wrong = Vec::new();
        for (guid, written) in std::mem::take(&mut self.writers)
            .into_iter()
            .flat_map(|it| it.join().expect("a writer"))
        {
            let found = there.get(guid.as_str());
            let fine = match written {
                Written::Created => found.is_some(),
                Written::Patched => found.is_some_and(|lrp| lrp["annotation"] == "patched"),
                Written::Deleted => found.is_none(),
            };
            if !fine {
                wrong.push(format!("{guid} was {written:?}, there is {found:?}"));
            }
        }
        assert!(wrong.is_empty(), "{} lost: {wrong:#?}", wrong.len());
    }

    /// Ends the writers, so that nothing changes any more; what they did is checked later.
    pub(crate) fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        while self.writers.iter().any(|writer| !writer.is_finished()) {
            crate::bench::pause(std::time::Duration::from_millis(1));
        }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

struct Writer {
    name: String,
    ports: Vec<u16>,
    token: String,
    stop: Arc<AtomicBool>,
    count: Arc<AtomicUsize>,
}

impl Writer {
    fn write(&self) -> BTreeMap<String, Written> {
        let mut written = BTreeMap::new();
        for number in 0_u64.. {
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            let guid = format!("{}-{number}", self.name);
            let path = format!("/v1/desired-lrps/{guid}");
            let body = json!({
                "process_guid": guid,
                "domain": "load",
                "instances": 0,
                "action": {"run": {"path": "/bin/true"}},
            });
            if !self.acknowledged("POST", "/v1/desired-lrps", Some(&body)) {
                continue;
            }
            // What is asked for and not acknowledged may have been done or not.
            let last = match number % 3 {
                0 => Some(Written::Created),
                1 => {
                    let change = json!({"annotation": "patched"});
                    self.acknowledged("PATCH", &path, Some(&change)).then_some(Written::Patched)
                }
                _ => self.acknowledged("DELETE", &path, None).then_some(Written::Deleted),
            };
            written.extend(last.map(|last| (guid, last)));
        }
        written
    }

    fn acknowledged(&self, method: &str, path: &str, body: Option<&Value>) -> bool {
        let tried = self.ports.iter().find_map(|port| {
            let answer = ask(*port, &self.token, method, path, body);
            answer.filter(|answer| answer.status != 503)
        });
        let done = tried.as_ref().is_some_and(|Answer { status, .. }| *status < 300);
        if done {
            self.count.fetch_add(1, Ordering::Relaxed);
        } else {
            crate::bench::pause(std::time::Duration::from_millis(5));
        }
        done
    }
}
