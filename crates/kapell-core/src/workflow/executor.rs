//! Where a step runs: `executor: local`, `executor: cell`, or the latter with what it asks for.

use super::reader::{Fields, Reader};
use super::{Executor, OnCell, Options};
use crate::board::{Domain, validate};
use crate::source::Problem;
use crate::yaml::{Node, Value};

pub(super) const EXECUTOR_KEYS: &[&str] = &["type", "config"];
pub(super) const CONFIG_KEYS: &[&str] =
    &["domain", "memory_mb", "disk_mb", "max_pids", "cpu_millis", "rootfs", "placement_tags"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    Local,
    Cell,
}

const TYPES: [(&str, Type); 2] = [("local", Type::Local), ("cell", Type::Cell)];

pub(super) fn read(reader: &mut Reader, node: &Node<'_>) -> Option<Executor> {
    if node.scalar().is_some() {
        return Some(match reader.choice(node, "executor", &TYPES)? {
            Type::Local => Executor::Local,
            Type::Cell => Executor::Cell(OnCell::default()),
        });
    }
    let fields = reader.fields(node, "executor", EXECUTOR_KEYS)?;
    let Some(named) = fields.get("type") else {
        let problem = Problem::error(node.span, "executor has no `type`");
        reader.report(problem.help("write `executor: local` or `executor: cell`"));
        return None;
    };
    match reader.choice(named, "executor", &TYPES)? {
        Type::Local => {
            if let Some(span) = fields.key_span("config") {
                let problem = Problem::error(span, "`config` of an executor that is `local`");
                reader.report(problem.help("remove it, or write `type: cell`"));
            }
            Some(Executor::Local)
        }
        Type::Cell => {
            let config = fields.get("config");
            Some(Executor::Cell(
                config.map_or_else(OnCell::default, |config| read_config(reader, config)),
            ))
        }
    }
}

fn read_config(reader: &mut Reader, node: &Node<'_>) -> OnCell {
    let mut wanted = OnCell::default();
    let Some(fields) = reader.fields(node, "config", CONFIG_KEYS) else { return wanted };
    if let Some(node) = fields.get("domain")
        && let Some(text) = reader.full_text(node, "domain")
    {
        wanted.domain = Domain::new(text);
        report_all(reader, node, validate::domain(&wanted.domain));
    }
    wanted.memory_mb = amount(reader, &fields, "memory_mb");
    wanted.disk_mb = amount(reader, &fields, "disk_mb");
    wanted.max_pids = amount(reader, &fields, "max_pids");
    wanted.cpu_millis = amount(reader, &fields, "cpu_millis");
    if let Some(node) = fields.get("rootfs")
        && let Some(text) = reader.full_text(node, "rootfs")
    {
        wanted.rootfs = Some(text.to_owned());
        report_all(reader, node, validate::rootfs(text));
    }
    if let Some(node) = fields.get("placement_tags") {
        let tags = Reader::items(node).iter();
        wanted.placement_tags = tags
            .filter_map(|tag| reader.full_text(tag, "placement_tags"))
            .map(str::to_owned)
            .collect();
    }
    wanted
}

fn amount(reader: &mut Reader, fields: &Fields<'_, '_>, key: &str) -> u32 {
    let number = fields.get(key).and_then(|node| reader.whole(node, key, 0..=i64::from(u32::MAX)));
    number.and_then(|number| u32::try_from(number).ok()).unwrap_or_default()
}

fn report_all(reader: &mut Reader, node: &Node<'_>, problems: Vec<String>) {
    for problem in problems {
        reader.report(Problem::error(node.span, problem).help("a cell would refuse it"));
    }
}

/// A directory that is relative to where kapell was started is nowhere on a cell.
pub(super) fn check_dir(reader: &mut Reader, fields: &Fields<'_, '_>, options: &Options) {
    let (Some(Executor::Cell(_)), Some(node)) = (&options.executor, fields.get("dir")) else {
        return;
    };
    let Value::Scalar(dir) = &node.value else { return };
    if !dir.text.starts_with(['/', '$']) && !dir.text.trim().is_empty() {
        let problem = Problem::error(node.span, "`dir` of a step on a cell is relative");
        reader.report(problem.help(
            "write the whole path as it is on the cell, or leave it out: a task has a directory of its own",
        ));
    }
}
