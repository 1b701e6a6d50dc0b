//! Logs have the levels and the fields of the specification.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex};

use kapell_core::constraint::Verdict;
use kapell_core::run::{ActionsDone, Checked, Counts, Happened, Noted, RunState};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use super::fakes::Course;
use super::stage::{Stage, job, secs};
use crate::board::tests::theatre::pass;

type Fields = BTreeMap<&'static str, String>;

/// Keeps what the scheduler says.
#[derive(Debug, Clone, Default)]
struct Listener {
    heard: Arc<Mutex<Vec<(Level, Fields)>>>,
}

struct Reader<'a>(&'a mut Fields);

impl Visit for Reader<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("kapell_node::scheduler")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::new();
        event.record(&mut Reader(&mut fields));
        self.heard.lock().unwrap().push((*event.metadata().level(), fields));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

fn noted() -> (Vec<Noted>, Vec<Noted>) {
    let text = String::new;
    let found = vec![
        Noted::Constraint { name: text(), met: false, message: text() },
        Noted::ConstraintError { name: text(), message: text() },
    ];
    let done = vec![
        Noted::Action { name: text(), ok: true, message: text() },
        Noted::Action { name: text(), ok: false, message: text() },
    ];
    (found, done)
}

#[tokio::test(start_paused = true)]
async fn every_log_has_its_level_and_says_of_which_run_it_is() {
    let listener = Listener::default();
    // With one alone, whoever comes first to a line of the log in another thread, without any, switches it off for all.
    let _second = tracing::Dispatch::new(listener.clone());
    let _listening = tracing::subscriber::set_default(listener.clone());
    let stage = Stage::new();
    stage.checker.set(|script| {
        script.wants.before = true;
        (script.check, script.act) = (Course::Busy(1_000), Course::Busy(1_000));
    });
    let lead = stage.open().await;
    lead.apply(job("once", "")).await;
    let run_id = lead.trigger("once", 1, stage.wall()).await;
    lead.until_under_way(&run_id, RunState::ConditionRunning).await;
    let (found, done) = noted();
    let (message, counts, attempt) = (String::new(), Counts::default(), 0);
    let checked = Checked {
        verdict: Verdict::Fail,
        message: message.clone(),
        acts: true,
        counts,
        notes: found,
    };
    lead.scheduler.tell(run_id.clone(), Happened::Checked { attempt, checked }).await;
    lead.until_under_way(&run_id, RunState::ActionRunning).await;
    pass(secs(11)).await;
    let done = ActionsDone { verdict: Verdict::Fail, message, counts, notes: done };
    lead.scheduler.tell(run_id.clone(), Happened::ActionsDone { attempt, done }).await;
    lead.until(&run_id, RunState::Failed, secs(5)).await;
    let heard = listener.heard.lock().unwrap().clone();
    let of_run = heard.iter().filter(|(_, fields)| fields.contains_key("run_id"));
    let mut said = BTreeSet::new();
    for (level, fields) in of_run {
        for field in ["run_id", "job_id", "scheduled_at", "state", "attempt"] {
            assert!(fields.contains_key(field), "{field} is missing: {level} {fields:?}");
        }
        said.insert((level.to_string(), fields["message"].clone()));
    }
    for (level, message) in [
        ("INFO", "a run has changed"),
        ("WARN", "a constraint is violated"),
        ("ERROR", "a constraint could not be checked"),
        ("INFO", "an action was taken"),
        ("ERROR", "an action failed"),
        ("ERROR", "a run has failed"),
        ("DEBUG", "a heartbeat"),
    ] {
        assert!(
            said.contains(&(level.to_owned(), message.to_owned())),
            "{level} {message}: {said:?}"
        );
    }
}
