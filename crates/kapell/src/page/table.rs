//! Tables that scroll by themselves where they are too wide.

use super::{Html, html};

/// A column; one that is `Extra` is left out on a phone.
#[derive(Debug, Clone, Copy)]
pub(super) enum Column {
    Always(&'static str),
    Extra(&'static str),
}

/// Begins a section with a table.
pub(super) fn section(out: &mut Html, id: &'static str, title: &'static str, columns: &[Column]) {
    html!(out; "<section><h2 id=\"" (id) "\">" (title) "</h2>\n");
    html!(out; "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-labelledby=\"" (id) "\"><table class=\"" (id) "\"><thead><tr>");
    for column in columns {
        match column {
            Column::Always(name) => html!(out; "<th scope=\"col\">" (name) "</th>"),
            Column::Extra(name) => html!(out; "<th scope=\"col\" class=\"extra\">" (name) "</th>"),
        }
    }
    html!(out; "</tr></thead><tbody>\n");
}

/// A section that has nothing to show.
pub(super) fn empty(out: &mut Html, title: &'static str, text: &Html) {
    html!(out; "<section><h2>" (title) "</h2><p class=\"quiet\">" {text} "</p></section>\n");
}

pub(super) fn end(out: &mut Html, more: usize, command: &str) {
    html!(out; "</tbody></table></div>");
    if more > 0 {
        html!(out; "<p class=\"quiet\">and " (more) " more: <code>" (command) "</code></p>");
    }
    html!(out; "</section>\n");
}
