use std::path::PathBuf;
use std::time::Duration;

use kapell_api::v1::TaskWork;
use kapell_core::board::{
    Action, Check, DesiredLrp, Domain, InstanceGuid, LrpKey, PortMapping, Variable,
};

use super::LogOf as Key;
use super::settings::CellSettings;
use super::tag::Tag;

/// What a container is made from, of whatever kind it is.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) key: Key,
    pub(super) instance_guid: InstanceGuid,
    domain: Domain,
    incarnation: Option<u64>,
    pub(super) memory_mb: u32,
    pub(super) disk_mb: u32,
    pub(super) cpu_millis: u32,
    max_pids: u32,
    log_rate: Option<u64>,
    pub(super) ports: Vec<u16>,
    pub(super) rootfs: Option<String>,
    result_file: String,
    env: Vec<Variable>,
    setup: Option<Action>,
    action: Action,
    monitor: Option<Action>,
    check: Option<Check>,
    readiness: Option<Check>,
    start_timeout_ms: u64,
    stop_grace: Duration,
}

fn log_rate(asked: u64, settings: &CellSettings) -> Option<u64> {
    if asked > 0 { Some(asked) } else { settings.log_rate }
}

impl Wanted {
    pub(super) fn of_lrp(
        desired: DesiredLrp,
        key: LrpKey,
        instance_guid: InstanceGuid,
        settings: &CellSettings,
    ) -> Self {
        let grace = desired.stop_grace_ms.map(Duration::from_millis);
        Self {
            key: Key::Lrp(key),
            instance_guid,
            domain: desired.domain,
            incarnation: Some(desired.incarnation),
            memory_mb: desired.memory_mb,
            disk_mb: desired.disk_mb,
            cpu_millis: desired.cpu_millis,
            max_pids: desired.max_pids,
            log_rate: log_rate(desired.log_rate, settings),
            ports: desired.ports,
            rootfs: desired.rootfs,
            result_file: String::new(),
            env: desired.env,
            setup: desired.setup,
            action: desired.action,
            monitor: desired.monitor,
            check: desired.check,
            readiness: desired.readiness,
            start_timeout_ms: desired.start_timeout_ms,
            stop_grace: grace.unwrap_or(settings.stop_grace),
        }
    }

    pub(super) fn of_task(work: TaskWork, settings: &CellSettings) -> Self {
        let TaskWork { definition, instance_guid } = work;
        Self {
            key: Key::Task(definition.task_guid),
            instance_guid,
            domain: definition.domain,
            incarnation: None,
            memory_mb: definition.memory_mb,
            disk_mb: definition.disk_mb,
            cpu_millis: definition.cpu_millis,
            max_pids: definition.max_pids,
            log_rate: log_rate(definition.log_rate, settings),
            ports: Vec::new(),
            rootfs: definition.rootfs,
            result_file: definition.result_file,
            env: definition.env,
            setup: None,
            action: definition.action,
            monitor: None,
            check: None,
            readiness: None,
            start_timeout_ms: 0,
            stop_grace: settings.stop_grace,
        }
    }

    /// With what a cell adds; a user of its own may follow.
    pub(super) fn tag(self, logs: PathBuf, address: String, ports: Vec<PortMapping>) -> Tag {
        Tag {
            key: self.key,
            domain: self.domain,
            instance_guid: self.instance_guid,
            incarnation: self.incarnation,
            memory_mb: self.memory_mb,
            disk_mb: self.disk_mb,
            cpu_millis: self.cpu_millis,
            max_pids: self.max_pids,
            log_rate: self.log_rate,
            rootfs: self.rootfs,
            address,
            ports,
            uid: None,
            stop_grace_ms: self.stop_grace.as_millis().try_into().unwrap_or(u64::MAX),
            result_file: self.result_file,
            logs,
            env: self.env,
            setup: self.setup,
            action: self.action,
            monitor: self.monitor,
            check: self.check,
            readiness: self.readiness,
            start_timeout_ms: self.start_timeout_ms,
        }
    }
}
