//! Jobs in files and requests: every way to write one, made into the one that is kept.

mod keys;
mod parts;

use serde_json::{Map, Value as Json, json};

use super::plain::plain;
use super::shape::{Builder, Keys};
use crate::job::definition::{CatchUpPolicy, JobDefinition, Overlap};
use crate::job::faults::{Fault, constraint_faults, schedule_faults};
use crate::job::length::Length;
use crate::job::lift::lift;
use crate::job::validate::{self, LARGEST_MULTIPLIER};
use crate::kubernetes::{self, KubernetesPayload};
use crate::source::{Problem, Span};
use crate::workflow::reader::{Fields, Reader};
use crate::yaml::{Node, Value};
pub(crate) use keys::ON_KUBERNETES;
use keys::{Form, form};

/// A job and where its id stands.
pub(super) fn read(reader: &mut Reader, node: &Node<'_>) -> Option<(Box<JobDefinition>, Span)> {
    let mut builder = Builder::new(reader);
    let job = builder.job(node)?;
    Some((Box::new(job), builder.span("job_id", node)))
}

/// What a step asks of a cluster: what stands below `kubernetes` of a job, and how long it may take to start.
pub(crate) fn read_kubernetes(
    reader: &mut Reader,
    node: &Node<'_>,
) -> Option<(KubernetesPayload, Option<Length>)> {
    let mut builder = Builder::new(reader);
    let mut object = builder.part(node, "config", ON_KUBERNETES, &[], "kubernetes")?;
    let start_timeout = object.remove("start_timeout");
    let payload: KubernetesPayload = builder.finish(node, Json::Object(object))?;
    builder.place(node, kubernetes::faults(&payload));
    Some((payload, start_timeout.and_then(|it| serde_json::from_value(it).ok())))
}

impl Builder<'_> {
    fn job(&mut self, node: &Node<'_>) -> Option<JobDefinition> {
        let fields = self.reader.fields_spelt(node, "the job", keys::JOB, keys::OF_A_JOB)?;
        self.need(&fields, "the job", &["job_id"]);
        let work = self.work(node, &fields);
        let mut object = self.forms(&fields, "");
        let faults = lift(&mut object);
        self.place(node, faults);
        // What is wrong already stands for itself no more, so that the rest can be judged too.
        object.entry("job_id").or_insert_with(|| "missing".into());
        if work.is_none_or(|work| !object.contains_key(work)) {
            object.retain(|key, _| !keys::WORK.contains(&key.as_str()));
            object.insert("command".to_owned(), json!({"command": "missing"}));
        }
        let job: JobDefinition = self.finish(node, Json::Object(object))?;
        self.place(node, validate::fields(&job));
        for fault in schedule_faults(&job).into_iter().chain(constraint_faults(&job)) {
            self.place_fault(node, fault);
        }
        Some(job)
    }

    /// The one key that says what a run does.
    fn work(&mut self, node: &Node<'_>, fields: &Fields<'_, '_>) -> Option<&'static str> {
        let mut there = keys::WORK.iter().copied().filter(|key| fields.get(key).is_some());
        let (first, second) = (there.next(), there.next());
        let Some(first) = first else {
            let problem = Problem::error(node.span, "the job does nothing");
            self.reader
                .report(problem.help("add one of `command`, `task`, `workflow` and `kubernetes`"));
            return None;
        };
        let Some(second) = second else { return Some(first) };
        let span = fields.key_span(second).unwrap_or(node.span);
        let problem = Problem::error(span, format!("the job has both `{first}` and `{second}`"));
        self.reader.report(problem.help("leave all but one of them out"));
        None
    }

    /// Reports a fault under the very letters that are meant, where the text stands as it was written.
    fn place_fault(&mut self, node: &Node<'_>, fault: Fault) {
        let span = self.span(&fault.field, node);
        let narrower = fault.within.and_then(|(text, within)| narrow(span, &text, within));
        let message = format!("{}: {}", fault.field, fault.wrong);
        let problem = Problem::error(narrower.unwrap_or(span), message);
        self.reader.report(match fault.right {
            Some(right) => problem.help(right),
            None => problem,
        });
    }

    /// All fields that are there, each in the form that is kept.
    fn forms(&mut self, fields: &Fields<'_, '_>, path: &str) -> Map<String, Json> {
        let mut object = Map::new();
        for key in fields.keys() {
            let Some(value) = fields.get(key) else { continue };
            let path = if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
            self.spans.insert(path.clone(), value.span);
            if let Some(value) = self.formed(value, key, &path) {
                object.insert(key.to_owned(), value);
            }
        }
        object
    }

    /// A mapping that is a part of a job. Of one with a fault in it nothing more can be said.
    fn part(
        &mut self,
        node: &Node<'_>,
        what: &str,
        keys: Keys,
        needed: Keys,
        path: &str,
    ) -> Option<Map<String, Json>> {
        let told = self.told();
        let fields = self.reader.fields_spelt(node, what, keys, keys::OF_A_PART)?;
        self.need(&fields, what, needed);
        let part = self.forms(&fields, path);
        (self.told() == told).then_some(part)
    }

    fn formed(&mut self, node: &Node<'_>, key: &str, path: &str) -> Option<Json> {
        let what = format!("`{key}`");
        match form(key, path) {
            Form::Text => self.reader.text(node, &what).map(Json::from),
            Form::Texts => {
                Some(self.each(node, path, |this, item, _| {
                    this.reader.text(item, &what).map(Json::from)
                }))
            }
            Form::List => self.list(node, &what, path, |this, item, _| {
                this.reader.text(item, &what).map(Json::from)
            }),
            Form::Whole { least, most } => {
                let range = i64::from(least)..=i64::from(most);
                self.reader.whole(node, &what, range).map(Json::from)
            }
            Form::Length => {
                let length = self.reader.duration(node, &what)?;
                Some(Length::new(length).to_string().into())
            }
            Form::Truth => self.reader.truth(node, &what).map(Json::from),
            Form::Multiplier => {
                self.reader.number(node, &what, 1.0, LARGEST_MULTIPLIER).map(Json::from)
            }
            Form::Overlap => {
                let names = Overlap::ALL.map(|it| (it.name(), it.name()));
                self.reader.choice(node, &what, &names).map(Json::from)
            }
            Form::Policy => self.policy(node, &what),
            Form::RetryOn => Some(self.each(node, path, |this, item, _| {
                this.reader.choice(item, &what, &[("launch", "launch")]).map(Json::from)
            })),
            Form::Env => self.env(node, path),
            Form::Group => self.group(node, path),
            Form::CatchUp => self.catch_up(node, &what, path),
            Form::Calendars => Some(self.each(node, path, |this, item, path| {
                this.part(item, "a calendar", keys::CALENDAR, &[], path).map(Json::Object)
            })),
            Form::Words => self.words(node, path),
            Form::Command => self.command(node, path),
            Form::Task => self.task(node, path),
            Form::Workflow => self.workflow(node, path),
            Form::Kubernetes => {
                self.part(node, &what, keys::KUBERNETES, &[], path).map(Json::Object)
            }
            Form::PodSpec => self.pod_spec(node, path),
            Form::Free => {
                self.free(node, path);
                Some(plain(node))
            }
            Form::Constraints => self.constraints(node, path),
            Form::Actions => self.actions_by_name(node, path),
            Form::Retry => self.retry(node, path),
            Form::Parameters => self.parameters(node, path),
            Form::History => self.part(node, &what, keys::HISTORY, &[], path).map(Json::Object),
            Form::Ignored => None,
        }
    }

    fn policy(&mut self, node: &Node<'_>, what: &str) -> Option<Json> {
        let names = CatchUpPolicy::ALL.map(|it| (it.name(), it.name()));
        self.reader.choice(node, what, &names).map(Json::from)
    }

    /// A list, or one item that stands for a list of one.
    fn each(
        &mut self,
        node: &Node<'_>,
        path: &str,
        mut each: impl FnMut(&mut Self, &Node<'_>, &str) -> Option<Json>,
    ) -> Json {
        let mut list = Vec::new();
        for item in Reader::items(node) {
            let path = format!("{path}[{}]", list.len());
            self.spans.insert(path.clone(), item.span);
            list.extend(each(self, item, &path));
        }
        Json::Array(list)
    }

    /// What others judge: as YAML means it, with the place of everything in it.
    fn free(&mut self, node: &Node<'_>, path: &str) {
        match &node.value {
            Value::Scalar(_) => {}
            Value::List(items) => {
                for (at, item) in items.iter().enumerate() {
                    let path = format!("{path}[{at}]");
                    self.spans.insert(path.clone(), item.span);
                    self.free(item, &path);
                }
            }
            Value::Map(entries) => {
                for (key, value) in entries {
                    let Some(name) = key.scalar().map(|it| &*it.text) else { continue };
                    let path = format!("{path}.{name}");
                    if self.spans.insert(path.clone(), value.span).is_some() {
                        let message = format!("key `{name}` stands twice");
                        let problem = Problem::error(key.span, message);
                        self.reader.report(problem.help("remove one of the two"));
                    }
                    self.free(value, &path);
                }
            }
        }
    }
}

/// The part of a text's place that some of its bytes have; none where it was not written on one line as it is.
fn narrow(span: Span, text: &str, within: std::ops::Range<usize>) -> Option<Span> {
    let small = |count: usize| u32::try_from(count).ok();
    let letters = small(text.chars().count())?;
    let before = match span.length.checked_sub(letters)? {
        0 => 0,
        // Quotes.
        2 => 1,
        _ => return None,
    };
    let start = small(text.get(..within.start)?.chars().count())?;
    let length = small(text.get(within)?.chars().count())?;
    Some(Span::new(span.line, span.column + before + start, length))
}

#[cfg(test)]
mod tests;
