//! `/task/{task_guid}`

use kapell_core::board::{Task, TaskGuid};
use kapell_core::seams::Timestamp;

use super::parts::{action, age, fact, names, task_state};
use super::{Html, html};
use crate::http::{Desk, Subject, explain};

pub(super) fn render(desk: &dyn Desk, guid: &TaskGuid, now: Timestamp) -> Option<Html> {
    let mut found: Option<Task> = None;
    desk.look(guid.as_str(), &mut |records| found = records.tasks.get(guid).cloned());
    let task = found?;
    let mut out = Html::default();
    html!(out;
        "<nav class=\"path\" aria-label=\"Path\"><a href=\"/\">Overview</a></nav><h1>Task " (guid) "</h1>\n<p>"
        {task_state(task.state, task.failed)} " for " {age(task.since, now)} "</p>\n"
    );
    if let Some(why) = explain(desk, &Subject::Task(guid.clone()), now) {
        html!(out; "<section aria-labelledby=\"why\"><h2 id=\"why\">Why</h2><p>" (why.summary) "</p><ul>");
        for fact in &why.facts {
            html!(out; "<li>" (fact) "</li>");
        }
        html!(out; "</ul></section>\n");
    }
    let definition = &task.definition;
    html!(out; "<section aria-labelledby=\"facts\"><h2 id=\"facts\">Facts</h2><dl class=\"facts\">\n");
    fact(&mut out, "Domain", definition.domain.as_str());
    fact(&mut out, "Runs", &action(&definition.action));
    let cell = task.cell_id.as_ref().map(ToString::to_string).unwrap_or_default();
    fact(&mut out, "Cell", &cell);
    fact(&mut out, "Exit code", &task.exit_code.map(|code| code.to_string()).unwrap_or_default());
    fact(&mut out, "Failure", &task.failure_reason);
    fact(&mut out, "Memory", &format!("{} MB", definition.memory_mb));
    fact(&mut out, "Disk", &format!("{} MB", definition.disk_mb));
    fact(&mut out, "Environment", &names(&definition.env));
    fact(&mut out, "Callback", &definition.completion_callback_url);
    fact(&mut out, "Annotation", &definition.annotation);
    html!(out; "<div><dt>Created</dt><dd>" {age(task.created_at, now)} " ago</dd></div>\n</dl>\n");
    html!(out; "<p><a href=\"/task/" (guid) "/log\">Log</a></p></section>\n");
    if !task.result.is_empty() {
        html!(out; "<section aria-labelledby=\"result\"><h2 id=\"result\">Result</h2><pre tabindex=\"0\">" (task.result) "</pre></section>\n");
    }
    Some(out)
}
