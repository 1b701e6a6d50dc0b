//! `/task/{task_guid}`

use kapell_core::board::{Task, TaskGuid};
use kapell_core::seams::Timestamp;

use super::parts::{action, age, code_fact, fact, megabytes, names, reasons, spoken, task_state};
use super::{Html, html};
use crate::http::{Desk, Subject, explain};

pub(super) fn render(desk: &dyn Desk, guid: &TaskGuid, now: Timestamp) -> Option<Html> {
    let mut found: Option<Task> = None;
    desk.look(guid.as_str(), &mut |records| found = records.tasks.get(guid).cloned());
    let task = found?;
    let mut out = Html::default();
    html!(out;
        "<nav class=\"path\" aria-label=\"Path\"><a href=\"/\">Overview</a></nav><h1>Task " (guid) "</h1>\n<p class=\"tools\"><span>"
        {task_state(task.state, task.failed)} " for " {age(task.since, now)} "</span> <a href=\"/task/" (guid) "/log\">Log</a></p>\n"
    );
    if let Some(why) = explain(desk, &Subject::Task(guid.clone()), now) {
        html!(out; "<section><h2>Why</h2><p>" {spoken(&why.summary)} "</p><ul>");
        reasons(&mut out, &why);
        html!(out; "</ul></section>\n");
    }
    if !task.result.is_empty() {
        html!(out; "<section><h2>Result</h2><pre tabindex=\"0\">" (task.result) "</pre></section>\n");
    }
    facts(&mut out, &task, now);
    Some(out)
}

fn facts(out: &mut Html, task: &Task, now: Timestamp) {
    let definition = &task.definition;
    html!(out; "<section><h2>Facts</h2><dl class=\"facts\">\n");
    code_fact(out, "Runs", &action(&definition.action));
    fact(out, "Domain", definition.domain.as_str());
    let cell = task.cell_id.as_ref().map(ToString::to_string).unwrap_or_default();
    fact(out, "Cell", &cell);
    fact(out, "Exit code", &task.exit_code.map(|code| code.to_string()).unwrap_or_default());
    fact(out, "Memory", &megabytes(definition.memory_mb));
    fact(out, "Disk", &megabytes(definition.disk_mb));
    fact(out, "Environment", &names(&definition.env));
    fact(out, "Callback", &definition.completion_callback_url);
    fact(out, "Annotation", &definition.annotation);
    html!(out; "<div><dt>Created</dt><dd>" {age(task.created_at, now)} " ago</dd></div>\n</dl></section>\n");
}
