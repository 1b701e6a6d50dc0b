//! A shard, its records, and what cells and clients ask of it.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::board::request::Report;
use crate::board::*;
use crate::seams::Timestamp;

pub(super) const NOW: Timestamp = Timestamp(1_000_000_000);

#[derive(Debug, Clone)]
pub(super) struct World {
    pub(super) records: Records,
    pub(super) now: Timestamp,
    pub(super) settings: Settings,
    /// How many records the last request wrote.
    pub(super) written: usize,
}

impl World {
    pub(super) fn new() -> Self {
        Self { records: Records::default(), now: NOW, settings: Settings::default(), written: 0 }
    }

    /// With `web` desired in so many instances, and nothing there yet.
    pub(super) fn desiring(instances: u32) -> Self {
        let mut world = Self::new();
        let lrp = DesiredLrp { instances, ..web() };
        world.records.put(Record::Desired(Box::new(lrp)));
        world
    }

    /// With `web` scaled down to so many instances, and those that were given up not yet gone.
    pub(super) fn giving_up_all_but(instances: u32) -> Self {
        let mut world = Self::new();
        let lrp = DesiredLrp { instances, retiring: true, ..web() };
        world.records.put(Record::Desired(Box::new(lrp)));
        world
    }

    pub(super) fn with(mut self, lrp: ActualLrp) -> Self {
        assert!(lrp.is_consistent(), "{lrp:?}");
        self.records.put(Record::Actual(Box::new(lrp)));
        self
    }

    pub(super) fn with_task(mut self, task: Task) -> Self {
        self.records.put(Record::Task(Box::new(task)));
        self
    }

    pub(super) fn pass(&mut self, time: Duration) {
        self.now = self.now.after(time);
    }

    pub(super) fn ask(&mut self, request: &Request) -> Result<Verdict, Refusal> {
        let before = self.records.clone();
        let group = BTreeMap::new();
        let mut draft = Draft::new(&self.records, &group);
        let decided = decide(&mut draft, request, self.now, &self.settings);
        let changes = draft.into_changes();
        assert!(decided.is_ok() || changes.is_empty(), "a refusal changes nothing: {changes:?}");
        assert!(changes.len() <= request::MOST_RECORDS, "{} records", changes.len());
        self.written = changes.len();
        for (key, to) in changes {
            self.records.apply(&key, to);
        }
        for lrp in self.records.instances.values().chain(self.records.evacuating.values()) {
            assert!(lrp.is_consistent(), "{lrp:?}");
        }
        super::steps::all_are_legal(&before, &self.records);
        decided
    }

    pub(super) fn effects(&mut self, request: &Request) -> Vec<Effect> {
        self.ask(request).unwrap().effects
    }

    /// What a report leads to.
    pub(super) fn report(&mut self, cell: &str, report: Report) -> Result<Verdict, Refusal> {
        self.ask(&Request::Report { cell_id: cell.into(), report })
    }

    pub(super) fn instance(&self, index: u32) -> Option<&ActualLrp> {
        self.records.instances.get(&key(index))
    }

    pub(super) fn twin(&self, index: u32) -> Option<&ActualLrp> {
        self.records.evacuating.get(&key(index))
    }

    pub(super) fn task(&self) -> Option<&Task> {
        self.records.tasks.get(&TaskGuid::from("t"))
    }
}

pub(super) fn web() -> DesiredLrp {
    serde_json::from_str(
        r#"{"process_guid":"web","domain":"d","instances":3,"memory_mb":64,"action":{"run":{"path":"serve"}}}"#,
    )
    .unwrap()
}

pub(super) fn key(index: u32) -> LrpKey {
    LrpKey { process_guid: "web".into(), index }
}

pub(super) fn net() -> NetInfo {
    NetInfo {
        address: "10.0.0.1".to_owned(),
        ports: vec![PortMapping { container_port: 8080, host_port: 61000 }],
    }
}

/// An instance at index 0, in its state since `NOW`.
/// Instance 0, which is `x`, is to leave its cell.
pub(super) fn evacuate() -> Report {
    Report::Evacuate {
        key: key(0),
        instance_guid: "x".into(),
        domain: "d".into(),
        incarnation: None,
        net: net(),
    }
}

pub(super) fn unclaimed() -> ActualLrp {
    ActualLrp::unclaimed(&key(0), "d".into(), NOW)
}

pub(super) fn claimed(cell: &str, guid: &str) -> ActualLrp {
    ActualLrp {
        state: ActualState::Claimed,
        instance_guid: Some(guid.into()),
        cell_id: Some(cell.into()),
        ..unclaimed()
    }
}

pub(super) fn running(cell: &str, guid: &str) -> ActualLrp {
    ActualLrp {
        state: ActualState::Running,
        net: Some(net()),
        ready: Some(true),
        ..claimed(cell, guid)
    }
}

pub(super) fn crashed(crash_count: u32) -> ActualLrp {
    ActualLrp { state: ActualState::Crashed, crash_count, ..unclaimed() }
}

pub(super) fn twin(cell: &str, guid: &str) -> ActualLrp {
    ActualLrp {
        evacuating: true,
        expires_at: Some(NOW.after(Duration::from_secs(600))),
        ..running(cell, guid)
    }
}

pub(super) fn start(index: u32) -> Effect {
    Effect::Start { key: key(index) }
}

pub(super) fn stop(index: u32, cell: &str, guid: &str) -> Effect {
    let instance = InstanceKey { instance_guid: guid.into(), cell_id: cell.into() };
    Effect::Stop { key: key(index), instance }
}

pub(super) fn definition() -> TaskDefinition {
    serde_json::from_str(r#"{"task_guid":"t","domain":"d","action":{"run":{"path":"true"}}}"#)
        .unwrap()
}

pub(super) fn task(state: TaskState, cell: Option<&str>) -> Task {
    let over = matches!(state, TaskState::Completed | TaskState::Resolving);
    Task {
        state,
        cell_id: cell.map(CellId::from),
        first_completed_at: over.then_some(NOW),
        ..Task::pending(definition(), "i".into(), NOW)
    }
}

pub(super) fn calling_back(task: Task) -> Task {
    let completion_callback_url = "http://localhost/done".to_owned();
    Task { definition: TaskDefinition { completion_callback_url, ..task.definition }, ..task }
}

pub(super) const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}
