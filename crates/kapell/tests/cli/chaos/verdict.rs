//! Whether all is as it should be.

use std::collections::BTreeMap;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;

use super::{CELLS, CELLS_WITH_ROOTS, Chaos};
use crate::bench::try_eventually;
use crate::platform::fleet::{guids_of_processes, starts};

/// After the last fault, by when all is as desired: a crash that came late waits for its turn.
const PATIENCE: Duration = Duration::from_secs(60);

impl Chaos {
    pub(super) fn all_is_as_desired(&mut self) {
        self.eventually("all is as desired", Self::wrong);
        self.remains.note(&self.fleet);
        // Who sees nothing now would see nothing in the end.
        self.keep_records();
        let seen = self.remains.left();
        let signs = ["claim", "table", "wire", "mount", "group", "oci/containers", "kapell-shim"];
        for sign in signs.iter().filter(|_| self.root.is_some()) {
            assert!(seen.iter().any(|it| it.contains(sign)), "no {sign} among {seen:#?}");
        }
        let traces = self.fleet.traces();
        for number in 0..self.tasks {
            let name = format!("task-{number}");
            assert!(starts(&traces, &name) <= 1, "{name} ran twice");
        }
    }

    /// Wants nothing any more, and ends the cells when they have nothing to do.
    pub(super) fn drain(&mut self) {
        for guid in std::mem::take(&mut self.desired).into_keys() {
            self.fleet.ask("DELETE", &format!("/v1/desired-lrps/{guid}"), None).expect(204);
        }
        self.eventually("no work is left", |chaos| {
            for task in chaos.list("/v1/tasks") {
                let guid = task["task_guid"].as_str().expect("a guid");
                // Whether it was there to be deleted shows the next time.
                chaos.fleet.ask("DELETE", &format!("/v1/tasks/{guid}"), None);
            }
            let (lrps, tasks) = (chaos.list("/v1/actual-lrps?all=true"), chaos.list("/v1/tasks"));
            let shims: Vec<_> = (0..CELLS).flat_map(|cell| chaos.fleet.shims(cell)).collect();
            let work = chaos.fleet.work();
            // What a cell is still deleting when it ends, it leaves to the next agent.
            let dirs = chaos.remains.containers();
            let records = lrps.is_empty() && tasks.is_empty();
            if records && shims.is_empty() && work.is_empty() && dirs.is_empty() {
                return String::new();
            }
            format!("instances {lrps:?}\ntasks {tasks:?}\nshims {shims:?}\nwork {work:?}\n{dirs:?}")
        });
        self.remains.note(&self.fleet);
        for cell in &mut self.fleet.cells {
            let running = cell.running.take().expect("it runs");
            running.signal(Signal::SIGTERM);
            running.finish().expect(0);
        }
    }

    pub(super) fn nothing_is_left(&mut self) {
        let (realms, groups) = self.remains.has_seen();
        assert!(self.root.is_none() || realms >= CELLS_WITH_ROOTS, "only {realms} networks seen");
        self.diary.note(&format!("{realms} networks and {groups} groups were there"));
        self.eventually("nothing is left", |chaos| {
            let mut left = chaos.remains.left();
            left.extend(chaos.list("/v1/cells").iter().map(|cell| format!("record {cell}")));
            left.join("\n")
        });
    }

    /// Waits until nothing is wrong any more.
    fn eventually(&mut self, what: &str, wrong: impl Fn(&Self) -> String) {
        let mut last = String::new();
        let fine = try_eventually(PATIENCE, || {
            last = wrong(self);
            last.is_empty().then_some(())
        });
        if fine.is_none() {
            self.keep_records();
        }
        assert!(fine.is_some(), "not within {PATIENCE:?}: {what}\n{last}");
        self.diary.note(what);
    }

    fn keep_records(&self) {
        for list in ["actual-lrps?all=true", "desired-lrps", "tasks", "cells"] {
            let answer = self.fleet.try_ask("GET", &format!("/v1/{list}"), None);
            let text = answer.map_or("nobody answers".to_owned(), |answer| answer.body);
            self.diary.keep(list.split('?').next().unwrap_or(list), &text);
        }
        self.diary.keep("left", &self.remains.left().join("\n"));
    }

    fn list(&self, path: &str) -> Vec<Value> {
        self.fleet.get(path).as_array().expect("a list").clone()
    }

    /// What is not as it should be.
    fn wrong(&self) -> String {
        let lrps = self.list("/v1/actual-lrps?all=true");
        let mut wrong = String::new();
        let mut running: BTreeMap<&str, usize> = BTreeMap::new();
        for lrp in lrps.iter().filter(|lrp| lrp["state"] == "RUNNING") {
            *running.entry(lrp["process_guid"].as_str().unwrap_or_default()).or_default() += 1;
        }
        // Of each: what is not gone yet and what is not there yet may be as many in all.
        let wanted = self.desired.iter().filter(|(_, count)| **count > 0);
        let wanted: BTreeMap<&str, usize> =
            wanted.map(|(guid, count)| (guid.as_str(), *count)).collect();
        if running != wanted || lrps.len() != wanted.values().sum::<usize>() {
            wrong +=
                &format!("desired {wanted:?}, running {running:?}, {} are known\n", lrps.len());
        }
        let of = |lrp: &Value| lrp["instance_guid"].as_str().unwrap_or_default().to_owned();
        let mut known: Vec<String> = lrps.iter().map(of).collect();
        known.sort();
        let busy = |task: &&Value| matches!(task["state"].as_str(), Some("PENDING" | "RUNNING"));
        let busy = self.list("/v1/tasks").iter().filter(busy).count();
        if busy > 0 {
            wrong += &format!("{busy} tasks are not complete\n");
        }
        let mut found = guids_of_processes(&self.fleet.work());
        found.dedup();
        if found != known {
            wrong += &format!("records of {known:?}\nprocesses of {found:?}\n");
        }
        let cells = self.list("/v1/cells").len();
        if cells != CELLS {
            wrong += &format!("{cells} cells are there\n");
        }
        wrong
    }
}
