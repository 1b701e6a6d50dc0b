//! Many processes with their instances, as they lie on a board.

use std::sync::Arc;

use anyhow::ensure;
use futures_util::future::try_join_all;
use kapell_core::board::request::Report;
use kapell_core::board::{
    Action, ActualLrp, ActualState, CellId, CellPresence, DesiredLrp, Domain, InstanceGuid, LrpKey,
    NetInfo, PortMapping, ProcessGuid, Record, Request, Resources, Run, shard_of,
};
use kapell_core::seams::Timestamp;
use kapell_core::seat::{Epoch, Seat};
use kapell_store::Store;
use kapell_store::model::{Commit, Key, Op, Raise, SHARDS, Shard};

const MEMORY: [u32; 5] = [128, 256, 512, 1024, 2048];

/// `apps` processes with `each` instances, one after the other on `cells` cells.
#[derive(Debug, Clone, Copy)]
pub struct Population {
    pub apps: u32,
    pub each: u32,
    pub cells: u32,
    /// The instances wait to be claimed, but nobody wants them: the board leaves them to whoever claims them.
    pub spare: bool,
}

pub fn domain() -> Domain {
    Domain::new("bench")
}

pub fn cell_id(number: u32) -> CellId {
    CellId::new(format!("cell-{number:04}"))
}

pub fn zone(cell: u32) -> String {
    format!("z{}", cell % 2 + 1)
}

pub fn memory_mb(app: u32) -> u32 {
    MEMORY[app as usize % MEMORY.len()]
}

/// What is in a process's guid besides its number is as long as such guids are.
pub fn guid(app: u32) -> ProcessGuid {
    let spread = app.wrapping_mul(0x9e37_79b9);
    ProcessGuid::new(format!("{spread:08x}-7ee4-4a1c-9d1f-{app:012x}"))
}

impl Population {
    pub const fn instances(self) -> u32 {
        self.apps * self.each
    }

    /// Where the instances are, one after the other.
    pub fn keys(self) -> impl Iterator<Item = LrpKey> {
        (0..self.instances()).map(move |number| self.key(number))
    }

    pub fn key(self, number: u32) -> LrpKey {
        LrpKey { process_guid: self.guid(number / self.each), index: number % self.each }
    }

    fn guid(self, app: u32) -> ProcessGuid {
        // Spare ones may lie beside others.
        guid(if self.spare { app + (1 << 24) } else { app })
    }

    /// The cell of an instance, by number.
    pub const fn cell(self, number: u32) -> u32 {
        number % self.cells
    }

    fn desired(self, app: u32) -> DesiredLrp {
        let run = Run {
            path: "/app/bin/start".to_owned(),
            args: vec!["--port".to_owned(), "8080".to_owned()],
            env: Vec::new(),
            dir: None,
            user: None,
        };
        DesiredLrp {
            instances: if self.spare { 0 } else { self.each },
            memory_mb: memory_mb(app),
            disk_mb: 1024,
            ports: vec![8080],
            version: 1,
            created_at: Some(Timestamp(1_700_000_000_000)),
            ..DesiredLrp::new(self.guid(app), domain(), Action::Run(run))
        }
    }

    fn actual(self, number: u32) -> ActualLrp {
        let key = self.key(number);
        let lrp = ActualLrp::unclaimed(&key, domain(), Timestamp(1_700_000_000_000));
        if self.spare {
            return lrp;
        }
        ActualLrp {
            state: ActualState::Running,
            instance_guid: Some(instance_guid(&key)),
            cell_id: Some(cell_id(self.cell(number))),
            net: Some(net(number)),
            ready: Some(true),
            version: 3,
            ..lrp
        }
    }

    pub fn records(self) -> impl Iterator<Item = Record> {
        let desired = (0..self.apps).map(move |app| Record::Desired(Box::new(self.desired(app))));
        let actual =
            (0..self.instances()).map(move |number| Record::Actual(Box::new(self.actual(number))));
        desired.chain(actual)
    }

    /// Writes all of it, as a leader before would have.
    pub async fn fill(self, store: &Arc<dyn Store>) -> anyhow::Result<()> {
        let limits = store.limits();
        let Raise::Done(fences) = store.raise(Seat::FIRST, Epoch(1)).await? else {
            anyhow::bail!("somebody leads")
        };
        let mut ops: Vec<Vec<Op>> = (0..SHARDS).map(|_| Vec::new()).collect();
        for record in self.records() {
            let key = record.key();
            let shard = usize::from(shard_of(key.partition(), SHARDS));
            ops[shard].push(Op::Put(Key::new(key.encode()), record.encode()));
        }
        let at_once = limits.commit_ops.min(limits.commit_bytes / 1024);
        let write = async |(shard, mut fence), ops: Vec<Op>| {
            for ops in ops.chunks(at_once) {
                ensure!(store.commit(shard, fence, ops).await? == Commit::Done, "it is alone");
                fence = fence.next();
            }
            Ok(())
        };
        let shards = Shard::all(Seat::FIRST).zip(fences).zip(ops);
        try_join_all(shards.map(|(place, ops)| write(place, ops))).await.map(drop)
    }

    /// What the cell of an instance reports of it.
    pub fn pair(self, number: u32) -> [Request; 2] {
        let cell_id = cell_id(self.cell(number));
        [self.claim(number), self.running(number)]
            .map(|report| Request::Report { cell_id: cell_id.clone(), report })
    }

    pub fn claim(self, number: u32) -> Report {
        let key = self.key(number);
        let instance_guid = instance_guid(&key);
        Report::Claim { key, instance_guid, incarnation: None }
    }

    pub fn running(self, number: u32) -> Report {
        let key = self.key(number);
        let instance_guid = instance_guid(&key);
        Report::Running {
            key,
            instance_guid,
            incarnation: None,
            domain: domain(),
            net: net(number),
            ready: true,
        }
    }
}

fn instance_guid(key: &LrpKey) -> InstanceGuid {
    let hash = key.process_guid.as_str().bytes().fold(u64::from(key.index), |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    InstanceGuid::drawn(hash, hash.rotate_left(17))
}

fn net(number: u32) -> NetInfo {
    let [_, a, b, c] = number.to_be_bytes();
    let port = PortMapping { container_port: 8080, host_port: 61_001 };
    NetInfo { address: format!("10.{a}.{b}.{c}"), ports: vec![port] }
}

pub fn presence(cell: u32) -> CellPresence {
    let cell_id = cell_id(cell);
    CellPresence {
        home: format!("home of {cell_id}"),
        cell_id,
        // Nobody is asked to do anything.
        url: "http://127.0.0.1:9".to_owned(),
        zone: zone(cell),
        capacity: capacity(),
        rootfs_schemes: Vec::new(),
        placement_tags: Vec::new(),
        optional_placement_tags: Vec::new(),
        evacuating: false,
        version: String::new(),
    }
}

/// Twice what 200 instances on each cell want.
pub fn capacity() -> Resources {
    Resources { memory_mb: 400 * 794, disk_mb: 400 * 1024, containers: 512 }
}
