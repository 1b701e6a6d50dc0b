//! Where a step runs: `executor: local`, `executor: cell`, or a type with what it asks for.

use super::reader::{Fields, Reader};
use super::{Executor, OnCell, OnKubernetes, Options};
use crate::board::{Domain, validate};
use crate::job::Length;
use crate::kubernetes::TWO_COMMANDS;
use crate::manifest::read_kubernetes;
use crate::run::START_TIMEOUT;
use crate::source::Problem;
use crate::yaml::{Node, Value};

pub(super) const EXECUTOR_KEYS: &[&str] = &["type", "config"];
pub(super) const CONFIG_KEYS: &[&str] =
    &["domain", "memory_mb", "disk_mb", "max_pids", "cpu_millis", "rootfs", "placement_tags"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    Local,
    Cell,
    Kubernetes,
}

const TYPES: [(&str, Type); 3] =
    [("local", Type::Local), ("cell", Type::Cell), ("kubernetes", Type::Kubernetes)];

pub(super) fn read(reader: &mut Reader, node: &Node<'_>) -> Option<Executor> {
    if node.scalar().is_some() {
        return Some(match reader.choice(node, "executor", &TYPES)? {
            Type::Local => Executor::Local,
            Type::Cell => Executor::Cell(OnCell::default()),
            Type::Kubernetes => {
                without_image(reader, node);
                return None;
            }
        });
    }
    let fields = reader.fields(node, "executor", EXECUTOR_KEYS)?;
    let Some(named) = fields.get("type") else {
        let problem = Problem::error(node.span, "executor has no `type`");
        reader.report(problem.help("write `executor: local`, `executor: cell` or `executor: {type: kubernetes, config: {image: …}}`"));
        return None;
    };
    match reader.choice(named, "executor", &TYPES)? {
        Type::Local => {
            if let Some(span) = fields.key_span("config") {
                let problem = Problem::error(span, "`config` of an executor that is `local`");
                reader
                    .report(problem.help("remove it, or write `type: cell` or `type: kubernetes`"));
            }
            Some(Executor::Local)
        }
        Type::Cell => {
            let config = fields.get("config");
            Some(Executor::Cell(
                config.map_or_else(OnCell::default, |config| read_config(reader, config)),
            ))
        }
        Type::Kubernetes => {
            let Some(config) = fields.get("config") else {
                without_image(reader, node);
                return None;
            };
            let (payload, start_timeout) = read_kubernetes(reader, config)?;
            let start_timeout = start_timeout.map_or(START_TIMEOUT, Length::get);
            Some(Executor::Kubernetes(Box::new(OnKubernetes { payload, start_timeout })))
        }
    }
}

fn without_image(reader: &mut Reader, node: &Node<'_>) {
    let problem = Problem::error(node.span, "a step on Kubernetes has no image");
    reader.report(problem.help("write `executor: {type: kubernetes, config: {image: …}}`"));
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

/// What means nothing where the step runs.
pub(super) fn check(reader: &mut Reader, fields: &Fields<'_, '_>, options: &Options) {
    match &options.executor {
        Some(Executor::Cell(_)) => check_dir(reader, fields, "a cell", "on the cell"),
        Some(Executor::Kubernetes(wanted)) => {
            check_dir(reader, fields, "Kubernetes", "in the container");
            check_streams(reader, fields, options);
            let command = ["command", "script"].into_iter().find_map(|key| fields.key_span(key));
            if let Some(span) = command.filter(|_| wanted.payload.has_command()) {
                reader.report(Problem::error(span, TWO_COMMANDS).help("keep one of the two"));
            }
        }
        Some(Executor::Local) | None => {}
    }
}

/// A directory that is relative to where kapell was started is nowhere else.
fn check_dir(reader: &mut Reader, fields: &Fields<'_, '_>, place: &str, there: &str) {
    let Some(node) = fields.get("dir") else { return };
    let Value::Scalar(dir) = &node.value else { return };
    if !dir.text.starts_with(['/', '$']) && !dir.text.trim().is_empty() {
        let problem = Problem::error(node.span, format!("`dir` of a step on {place} is relative"));
        reader.report(problem.help(format!(
            "write the whole path as it is {there}, or leave it out: it has a directory of its own"
        )));
    }
}

/// A cluster does not tell the two streams of a container apart.
fn check_streams(reader: &mut Reader, fields: &Fields<'_, '_>, options: &Options) {
    let console = options.console;
    for (key, is_wrong) in [
        ("output", options.output.stderr.is_some()),
        ("console", console.stderr && !console.stdout),
    ] {
        if let Some(node) = fields.get(key).filter(|_| is_wrong) {
            let what =
                format!("`{key}`: a cluster keeps all that a container writes as one stream");
            reader.report(Problem::error(node.span, what).help("write `stdout`: it has both"));
        }
    }
}
