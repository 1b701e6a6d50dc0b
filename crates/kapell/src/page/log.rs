//! The live log of an instance, of a task or of a run.

use super::{Html, LogOf, html};

/// A page of its own.
pub(super) fn render(of: &LogOf) -> Html {
    let (source, back, name) = place(of);
    let mut out = Html::default();
    html!(out;
        "<nav class=\"path\" aria-label=\"Path\"><a href=\"/\">Overview</a> / <a href=\"" (back) "\">" (name) "</a></nav>\n"
        "<h1>" (of.title()) "</h1>\n"
    );
    lines(&mut out, of, &source, &name);
    out
}

/// Below what else is known.
pub(super) fn panel(of: &LogOf) -> Html {
    let (source, back, name) = place(of);
    let mut out = Html::default();
    html!(out; "<section class=\"panel\"><h2>Log <a href=\"" (back) "/log\">alone</a></h2>\n");
    lines(&mut out, of, &source, &name);
    html!(out; "</section>\n");
    out
}

/// Where it comes from, what it is of, and the name of that.
fn place(of: &LogOf) -> (String, String, String) {
    match of {
        LogOf::Lrp(key) => (
            format!("/v1/logs/lrp/{}/{}", key.process_guid, key.index),
            format!("/lrp/{}", key.process_guid),
            key.process_guid.to_string(),
        ),
        LogOf::Run(id) => (format!("/v1/runs/{id}/logs"), format!("/run/{id}"), id.to_string()),
        LogOf::Task(guid) => {
            (format!("/v1/logs/task/{guid}"), format!("/task/{guid}"), guid.to_string())
        }
    }
}

fn lines(out: &mut Html, of: &LogOf, source: &str, name: &str) {
    html!(out;
        "<p class=\"tools\"><label><input type=\"checkbox\" id=\"autoscroll\" checked> Scroll along</label> "
        "<a href=\"" (source) "\" download=\"" (name) ".log\">Download</a> "
        "<span class=\"legend\"><span class=\"stdout\">stdout</span> <span class=\"stderr\">stderr</span> <span class=\"note\">kapell</span></span></p>\n"
        "<div id=\"log\" class=\"log\" role=\"log\" aria-live=\"off\" aria-label=\"" (of.title()) "\" tabindex=\"0\" data-source=\"" (source) "\"></div>\n"
        "<noscript><p><a href=\"" (source) "\">Read the log as text</a></p></noscript>\n"
    );
}
