use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use kapell_api::v1::{LrpWork, TaskWork};
use kapell_core::board::{
    CellId, Held, InstanceGuid, LrpKey, PortMapping, ReservationId, Resources, TaskGuid,
};
use kapell_core::planted::Flaw;
use kapell_core::rep::container::{Life, RunResult, State};
use kapell_core::seams::{Clock, Ids, Moment};

use super::LogOf as Key;
use super::entry::Entry;
use super::judge::Known;
use super::logs::Logs;
use super::ports::Ports;
use super::settings::CellSettings;
use super::slots::Slots;
use super::tag::Tag;
use super::wanted::Wanted;

/// What a cell has in containers, and what is left for more.
#[derive(Debug)]
pub(super) struct Executor {
    pub(super) cell_id: CellId,
    pub(super) settings: CellSettings,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
    logs: Logs,
    address: String,
    capacity: Resources,
    used: Resources,
    used_cpu_millis: u32,
    /// Of what kinds a rootfs may be.
    rootfs_schemes: Vec<String>,
    ports: Ports,
    users: Option<Slots>,
    entries: BTreeMap<InstanceGuid, Entry>,
    by_key: BTreeMap<Key, BTreeSet<InstanceGuid>>,
    /// When each reservation expires, the earliest first.
    reservations: VecDeque<(Moment, InstanceGuid)>,
}

/// How a container stands that an earlier agent has left.
#[derive(Debug)]
pub(super) enum Stand {
    Starting,
    Running,
    Completed(RunResult),
}

impl Executor {
    pub(super) fn new(
        (cell_id, settings): (CellId, CellSettings),
        (clock, ids): (Arc<dyn Clock>, Arc<dyn Ids>),
        logs: Logs,
        address: String,
        (capacity, rootfs_schemes): (Resources, Vec<String>),
    ) -> Self {
        Self {
            cell_id,
            ports: Ports::new(&settings.ports),
            users: settings.users.clone().map(Slots::new),
            settings,
            clock,
            ids,
            logs,
            address,
            capacity,
            used: Resources::default(),
            used_cpu_millis: 0,
            rootfs_schemes,
            entries: BTreeMap::new(),
            by_key: BTreeMap::new(),
            reservations: VecDeque::new(),
        }
    }

    pub(super) fn reserve_lrp(&mut self, work: LrpWork) -> Result<InstanceGuid, String> {
        let key = LrpKey { process_guid: work.desired.process_guid.clone(), index: work.index };
        let key_is_valid = key.process_guid.is_valid();
        let guid = InstanceGuid::drawn(self.ids.draw(), self.ids.draw());
        let wanted = Wanted::of_lrp(work.desired, key, guid, &self.settings);
        self.reserve(wanted, key_is_valid)
    }

    pub(super) fn reserve_task(&mut self, work: TaskWork) -> Result<InstanceGuid, String> {
        let key_is_valid = work.definition.task_guid.is_valid() && work.instance_guid.is_valid();
        self.reserve(Wanted::of_task(work, &self.settings), key_is_valid)
    }

    fn reserve(&mut self, wanted: Wanted, key_is_valid: bool) -> Result<InstanceGuid, String> {
        if !key_is_valid {
            return Err("its guid may only have letters, digits, `-` and `_`".to_owned());
        }
        if let Some(rootfs) = &wanted.rootfs {
            let scheme = rootfs.split_once(':').map_or("", |(scheme, _)| scheme);
            if !self.rootfs_schemes.iter().any(|known| known == scheme) {
                let known = self.rootfs_schemes.join(", ");
                let known = if known.is_empty() { "none" } else { &known };
                return Err(format!(
                    "this cell cannot run the rootfs `{rootfs}`: it knows {known}"
                ));
            }
        }
        if self.entries.contains_key(&wanted.instance_guid) || self.is_live(&wanted.key) {
            return Err("this cell has a container for it already".to_owned());
        }
        let lacking = self.lacking(wanted.memory_mb, wanted.disk_mb, wanted.cpu_millis);
        if !lacking.is_empty() {
            return Err(format!("insufficient resources: {}", lacking.join(", ")));
        }
        let guid = wanted.instance_guid.clone();
        let tag = self.tag(wanted)?;
        let known = Known::reserved(&tag.key);
        let mut entry = Entry::new(Arc::new(tag), Life::reserved(self.clock.now()));
        entry.known = Some(known);
        if matches!(entry.tag.key, Key::Task(_)) {
            entry.reservation = Some(ReservationId::drawn(self.ids.draw(), self.ids.draw()));
        }
        let expiry = self.clock.now().after(self.settings.reservation);
        self.reservations.push_back((expiry, guid.clone()));
        self.insert(entry);
        Ok(guid)
    }

    fn lacking(&self, memory_mb: u32, disk_mb: u32, cpu_millis: u32) -> Vec<&'static str> {
        let left = self.available();
        let mut lacking = Vec::new();
        if left.containers == 0 {
            lacking.push("containers");
        }
        let cpu = self.settings.cpu_millis;
        if cpu.is_some_and(|all| all.saturating_sub(self.used_cpu_millis) < cpu_millis) {
            lacking.push("cpu");
        }
        if left.disk_mb < disk_mb {
            lacking.push("disk");
        }
        if left.memory_mb < memory_mb {
            lacking.push("memory");
        }
        lacking
    }

    /// Takes ports and a user for a container.
    fn tag(&mut self, wanted: Wanted) -> Result<Tag, String> {
        let ports = self.take_ports(&wanted.ports)?;
        let logs = self.logs.of(&wanted.key, self.clock.wall(), &wanted.instance_guid);
        let mut tag = wanted.tag(logs, self.address.clone(), ports);
        let wants_own = tag.plain().is_none_or(|run| run.user.is_none());
        if let Some(users) = self.users.as_mut().filter(|_| wants_own) {
            tag.uid = users.take(|_| true);
            if tag.uid.is_none() {
                self.give_back_ports(&tag.ports);
                return Err("insufficient resources: users".to_owned());
            }
        }
        Ok(tag)
    }

    fn take_ports(&mut self, wanted: &[u16]) -> Result<Vec<PortMapping>, String> {
        let mut taken = Vec::new();
        for &container_port in wanted {
            let Some(host_port) = self.ports.take() else {
                self.give_back_ports(&taken);
                return Err("insufficient resources: ports".to_owned());
            };
            taken.push(PortMapping { container_port, host_port });
        }
        Ok(taken)
    }

    fn give_back_ports(&mut self, ports: &[PortMapping]) {
        for port in ports {
            self.ports.give_back(port.host_port);
        }
    }

    /// A port for a container that is none of these.
    pub(super) fn lend_port(&mut self) -> Option<u16> {
        self.ports.take()
    }

    pub(super) fn take_back_port(&mut self, port: Option<u16>) {
        if let Some(port) = port {
            self.ports.give_back(port);
        }
    }

    /// Takes in a container that an earlier agent has left.
    pub(super) fn adopt(&mut self, tag: Arc<Tag>, stand: Stand) {
        for port in &tag.ports {
            self.ports.hold(port.host_port);
        }
        if let (Some(uid), Some(users)) = (tag.uid, &mut self.users) {
            users.hold(uid);
        }
        let now = self.clock.now();
        let life = match stand {
            Stand::Starting => starting(now),
            Stand::Running => Life::found(None, now),
            Stand::Completed(result) => Life::found(Some(result), now),
        };
        let used = self.used;
        let mut entry = Entry::new(tag, life);
        // The board knows this of one that has nothing to say about it.
        entry.ready = entry.tag.readiness.is_none().then_some(true);
        entry.ready_told = entry.ready;
        self.insert(entry);
        if self.settings.planted.has(Flaw::CapacityForgotten) {
            self.used = used;
        }
    }

    fn insert(&mut self, entry: Entry) {
        let used = entry.tag.resources();
        self.used.memory_mb = self.used.memory_mb.saturating_add(used.memory_mb);
        self.used.disk_mb = self.used.disk_mb.saturating_add(used.disk_mb);
        self.used.containers = self.used.containers.saturating_add(used.containers);
        self.used_cpu_millis = self.used_cpu_millis.saturating_add(entry.tag.cpu_millis);
        let guid = entry.tag.instance_guid.clone();
        self.by_key.entry(entry.tag.key.clone()).or_default().insert(guid.clone());
        self.entries.insert(guid, entry);
    }

    /// Forgets a container and gives back all it had.
    pub(super) fn remove(&mut self, guid: &InstanceGuid) -> Option<Entry> {
        let entry = self.entries.remove(guid)?;
        let used = entry.tag.resources();
        self.used.memory_mb = self.used.memory_mb.saturating_sub(used.memory_mb);
        self.used.disk_mb = self.used.disk_mb.saturating_sub(used.disk_mb);
        self.used.containers = self.used.containers.saturating_sub(used.containers);
        self.used_cpu_millis = self.used_cpu_millis.saturating_sub(entry.tag.cpu_millis);
        self.give_back_ports(&entry.tag.ports);
        if let (Some(uid), Some(users)) = (entry.tag.uid, &mut self.users) {
            users.give_back(uid);
        }
        if let Some(guids) = self.by_key.get_mut(&entry.tag.key) {
            guids.remove(guid);
            if guids.is_empty() {
                self.by_key.remove(&entry.tag.key);
            }
        }
        Some(entry)
    }

    pub(super) fn get(&self, guid: &InstanceGuid) -> Option<&Entry> {
        self.entries.get(guid)
    }

    pub(super) fn get_mut(&mut self, guid: &InstanceGuid) -> Option<&mut Entry> {
        self.entries.get_mut(guid)
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = (&InstanceGuid, &Entry)> {
        self.entries.iter()
    }

    pub(super) fn guids(&self) -> BTreeSet<InstanceGuid> {
        self.entries.keys().cloned().collect()
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.by_key.keys()
    }

    pub(super) fn guids_of(&self, key: &Key) -> BTreeSet<InstanceGuid> {
        self.by_key.get(key).cloned().unwrap_or_default()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The container of this key that has not ended.
    pub(super) fn live(&self, key: &Key) -> Option<InstanceGuid> {
        let mut guids = self.by_key.get(key).into_iter().flatten();
        let is_live = |guid: &&InstanceGuid| {
            self.entries.get(*guid).is_some_and(|it| it.life.state() != State::Completed)
        };
        guids.find(is_live).cloned()
    }

    /// Whether a container of this key is there that has not ended.
    pub(super) fn is_live(&self, key: &Key) -> bool {
        self.live(key).is_some()
    }

    pub(super) const fn capacity(&self) -> Resources {
        self.capacity
    }

    pub(super) const fn available(&self) -> Resources {
        let (all, used) = (self.capacity, self.used);
        Resources {
            memory_mb: all.memory_mb.saturating_sub(used.memory_mb),
            disk_mb: all.disk_mb.saturating_sub(used.disk_mb),
            containers: all.containers.saturating_sub(used.containers),
        }
    }

    /// How long it may take until everything that is told to stop has stopped.
    pub(super) fn longest_grace(&self) -> Duration {
        let longest = self.entries.values().map(|entry| entry.tag.stop_grace_ms).max();
        Duration::from_millis(longest.unwrap_or(0))
    }

    /// Containers that have not ended.
    pub(super) fn held(&self) -> (Vec<Held<LrpKey>>, Vec<Held<TaskGuid>>, u32) {
        let (mut lrps, mut tasks, mut starting) = (Vec::new(), Vec::new(), 0);
        for (guid, entry) in &self.entries {
            let state = entry.life.state();
            if state == State::Completed {
                continue;
            }
            starting += u32::from(state.is_starting());
            match &entry.tag.key {
                Key::Lrp(key) => lrps.push(held(key.clone(), guid, &entry.tag)),
                Key::Task(task) => tasks.push(held(task.clone(), guid, &entry.tag)),
            }
        }
        (lrps, tasks, starting)
    }

    /// Reservations that nothing came of in time. While a report is under way, one does not expire.
    pub(super) fn expired(&mut self) -> Vec<InstanceGuid> {
        let now = self.clock.now();
        let mut expired = Vec::new();
        let mut busy = Vec::new();
        while let Some((at, guid)) = self.reservations.pop_front() {
            let entry = self.entries.get(&guid);
            let Some(entry) = entry.filter(|entry| entry.life.state() == State::Reserved) else {
                continue;
            };
            if at > now {
                self.reservations.push_front((at, guid));
                break;
            }
            if entry.busy.is_some() { busy.push(guid) } else { expired.push(guid) }
        }
        let again = now.after(self.settings.first_retry);
        for guid in busy.into_iter().rev() {
            self.reservations.push_front((again, guid));
        }
        expired
    }

    /// When to look for expired reservations.
    pub(super) fn next_expiry(&self) -> Option<Moment> {
        self.reservations.front().map(|(at, _)| *at)
    }
}

/// One that is there and does not run yet.
fn starting(at: Moment) -> Life {
    let mut life = Life::reserved(at);
    for step in [State::Initializing, State::Created] {
        if let Err(error) = life.advance(step, at) {
            tracing::error!(%error, "a container cannot start");
        }
    }
    life
}

fn held<K>(key: K, guid: &InstanceGuid, tag: &Tag) -> Held<K> {
    Held { key, instance_guid: guid.clone(), memory_mb: tag.memory_mb, disk_mb: tag.disk_mb }
}
