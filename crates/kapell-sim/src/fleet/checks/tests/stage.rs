use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kapell_core::board::{
    Action, ActualLrp, ActualState, CellId, DesiredLrp, Domain, Freshness, InstanceGuid, LrpKey,
    NetInfo, ProcessGuid, Record, RecordKey, Resources, Run, Settings, Task, TaskDefinition,
    TaskGuid, TaskState,
};
use kapell_core::planted::Planted;
use kapell_core::seams::Timestamp;
use kapell_core::seat::{Epoch, Seat};
use kapell_node::scheduler::backend::Attempt;
use kapell_store::model::{Fence, Key, Op, Shard};

use crate::fleet::checks::Check;
use crate::fleet::fact::{Fact, Process, Unit};
use crate::fleet::ledger::Ledger;
use crate::fleet::plan::{Fault, Plan};
use crate::fleet::view::{Machine, View};

/// A world made by hand, and a rule that watches it.
pub(super) struct Stage<C> {
    pub(super) rule: C,
    pub(super) plan: Plan,
    pub(super) now: Duration,
    pub(super) machines: BTreeMap<CellId, Machine>,
    pub(super) calm_since: Option<Duration>,
    pub(super) settings: Settings,
    /// The host that leads.
    pub(super) host: usize,
    ledger: Ledger,
    running: BTreeMap<InstanceGuid, Process>,
    pub(super) works: BTreeSet<(usize, Attempt)>,
    seq: u64,
}

pub(super) type Outcome = Result<(), String>;

impl<C: Check + Default> Stage<C> {
    /// Two machines, one host, nothing goes wrong.
    pub(super) fn new() -> Self {
        let machine = Machine {
            capacity: Resources { memory_mb: 300, disk_mb: 300, containers: 3 },
            zone: "z".to_owned(),
            is_up: true,
            has_agent: true,
            evacuating: false,
        };
        Self {
            rule: C::default(),
            plan: plan(),
            now: Duration::ZERO,
            machines: ["a", "b"].map(|id| (CellId::new(id), machine.clone())).into(),
            calm_since: None,
            settings: Settings::default(),
            host: 0,
            ledger: Ledger::default(),
            running: BTreeMap::new(),
            works: BTreeSet::new(),
            seq: 0,
        }
    }

    pub(super) fn with(fault: Fault) -> Self {
        let mut stage = Self::new();
        stage.plan.faults.push(fault);
        stage
    }

    pub(super) fn after(&mut self, seconds: u64) -> &mut Self {
        self.now += Duration::from_secs(seconds);
        self
    }

    pub(super) fn wall(&self) -> Timestamp {
        Timestamp(0).after(self.now)
    }

    pub(super) fn machine(&mut self, id: &str) -> &mut Machine {
        self.machines.get_mut(&CellId::new(id)).expect("there is such a machine")
    }

    fn watch(&mut self, look: impl FnOnce(&mut C, &View<'_>) -> Outcome) -> Outcome {
        let wall = self.wall();
        let view = View {
            plan: &self.plan,
            settings: &self.settings,
            now: self.now,
            wall,
            records: self.ledger.records(),
            running: &self.running,
            machines: &self.machines,
            calm_since: self.calm_since,
            works: &self.works,
            leader: Some(self.host),
        };
        look(&mut self.rule, &view)
    }

    pub(super) fn tell(&mut self, fact: &Fact) -> Outcome {
        self.watch(|rule, view| rule.saw(fact, view))
    }

    pub(super) fn end(&mut self) -> Outcome {
        self.watch(Check::at_end)
    }

    pub(super) fn begin(&mut self, process: &Process) -> Outcome {
        self.running.insert(process.container.clone(), process.clone());
        self.tell(&Fact::Began(process.clone()))
    }

    pub(super) fn over(&mut self, process: &Process) -> Outcome {
        self.running.remove(&process.container);
        self.tell(&Fact::Over(process.clone()))
    }

    pub(super) fn put(&mut self, records: impl IntoIterator<Item = Record>) -> Outcome {
        let put = |record: Record| Op::Put(Key::new(record.key().encode()), record.encode());
        let ops: Vec<Op> = records.into_iter().map(put).collect();
        self.commit(&ops)
    }

    pub(super) fn delete(&mut self, key: &RecordKey) -> Outcome {
        self.commit(&[Op::Delete(Key::new(key.encode()))])
    }

    fn commit(&mut self, ops: &[Op]) -> Outcome {
        self.seq += 1;
        let at = Fence { epoch: Epoch(1), seq: self.seq };
        let shard = Shard { seat: Seat::FIRST, number: 0 };
        let changes = self.ledger.commit(ops);
        self.tell(&Fact::Committed { host: self.host, shard, at, changes })
    }

    pub(super) fn corrupt(&mut self, key: &RecordKey) -> Outcome {
        let key = self.ledger.corrupt(&Key::new(key.encode())).expect("it stands there");
        self.tell(&Fact::Corrupted { key })
    }

    /// The store loses a record, and nobody is told.
    pub(super) fn forget(&mut self, key: &RecordKey) {
        self.ledger.corrupt(&Key::new(key.encode())).expect("it stands there");
    }

    pub(super) fn stop(&mut self, process: &Process) -> Outcome {
        let Unit::Lrp(key) = process.unit.clone() else { panic!("only instances are stopped") };
        let (cell, container) = (process.cell.clone(), process.container.clone());
        let wall = self.wall();
        self.tell(&Fact::StopSent { host: self.host, cell, key, container, wall })
    }
}

fn plan() -> Plan {
    Plan {
        seed: 0,
        hosts: 1,
        cells: 2,
        faults: Vec::new(),
        lost: 0,
        duplicated: 0,
        late: 0,
        crashing_apps: false,
        scaling: false,
        evacuations: false,
        stale_domains: false,
        apps: true,
        jobs: false,
        modest: false,
        far_clocks: false,
        busy_for: Duration::from_secs(60),
        planted: Planted::default(),
        crash_at: None,
    }
}

pub(super) fn domain() -> Domain {
    Domain::new("d")
}

fn action() -> Action {
    Action::Run(Run { path: "/program".to_owned(), ..Run::default() })
}

pub(super) fn guid() -> ProcessGuid {
    ProcessGuid::new("p")
}

pub(super) fn key(index: u32) -> LrpKey {
    LrpKey { process_guid: guid(), index }
}

/// So many instances of the one process that there is.
pub(super) fn desired(instances: u32) -> DesiredLrp {
    DesiredLrp {
        instances,
        memory_mb: 100,
        version: 1,
        created_at: Some(Timestamp(1)),
        ..DesiredLrp::new(guid(), domain(), action())
    }
}

pub(super) fn desire(instances: u32) -> Record {
    Record::Desired(Box::new(desired(instances)))
}

pub(super) fn unclaimed(index: u32) -> ActualLrp {
    ActualLrp::unclaimed(&key(index), domain(), Timestamp(0))
}

/// The record of an instance that runs as `container`.
pub(super) fn running(index: u32, container: &str, cell: &str) -> ActualLrp {
    ActualLrp {
        state: ActualState::Running,
        instance_guid: Some(InstanceGuid::new(container)),
        cell_id: Some(CellId::new(cell)),
        net: Some(NetInfo { address: "h".to_owned(), ports: Vec::new() }),
        ready: Some(true),
        ..unclaimed(index)
    }
}

pub(super) fn actual(lrp: ActualLrp) -> Record {
    Record::Actual(Box::new(lrp))
}

pub(super) fn fresh_until(seconds: Option<u64>) -> Record {
    let expires_at = seconds.map(|it| Timestamp(0).after(Duration::from_secs(it)));
    Record::Domain(Freshness { domain: domain(), expires_at, since: None })
}

pub(super) fn process(index: u32, container: &str, cell: &str) -> Process {
    Process {
        cell: CellId::new(cell),
        unit: Unit::Lrp(key(index)),
        container: InstanceGuid::new(container),
        memory_mb: 100,
        disk_mb: 0,
    }
}

pub(super) fn task_guid() -> TaskGuid {
    TaskGuid::new("t")
}

pub(super) fn task_process(container: &str, cell: &str) -> Process {
    Process { unit: Unit::Task(task_guid()), ..process(0, container, cell) }
}

/// The one task that there is, created as `container`.
pub(super) fn task(container: &str, state: TaskState, version: u64) -> Task {
    let definition = TaskDefinition {
        task_guid: task_guid(),
        domain: domain(),
        rootfs: None,
        memory_mb: 0,
        disk_mb: 0,
        max_pids: 0,
        cpu_millis: 0,
        log_rate: 0,
        placement_tags: Vec::new(),
        env: Vec::new(),
        action: action(),
        result_file: String::new(),
        completion_callback_url: "http://receiver".to_owned(),
        annotation: String::new(),
    };
    let complete = match state {
        TaskState::Pending | TaskState::Running => None,
        TaskState::Completed | TaskState::Resolving => Some(Timestamp(0)),
    };
    Task {
        state,
        version,
        first_completed_at: complete,
        failed: complete.is_some(),
        cell_id: (state != TaskState::Pending).then(|| CellId::new("a")),
        ..Task::pending(definition, InstanceGuid::new(container), Timestamp(0))
    }
}

pub(super) fn task_record(container: &str, state: TaskState, version: u64) -> Record {
    Record::Task(Box::new(task(container, state, version)))
}

/// Whether a rule was broken, and says this of it.
#[track_caller]
pub(super) fn broken(outcome: Outcome, by: &str) {
    let how = outcome.expect_err("the rule is broken");
    assert!(how.contains(by), "another reason: {how}");
}
