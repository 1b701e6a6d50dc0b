//! Every table of rules as a page for people, rendered from the rules themselves.
//!
//! The pages lie in `docs/tables`. A test compares them; `cargo xtask tables` writes them anew.

mod access;
mod board;
mod machines;
mod placement;
mod rep;
mod timers;

#[cfg(test)]
mod tests;

pub use timers::{Bound, Timer, bounds, timers};

/// One page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Of its file, without the ending.
    pub name: &'static str,
    pub title: &'static str,
    /// The whole file, in Markdown.
    pub text: String,
}

/// All pages, the index last.
pub fn pages() -> Vec<Page> {
    let mut pages = vec![
        rep::lrp(),
        rep::evacuation_running(),
        rep::evacuation_not_running(),
        rep::task(),
        machines::containers(),
        machines::instances(),
        machines::tasks(),
        machines::runs(),
        board::convergence(),
        board::crashes(),
        placement::errors(),
        access::roles(),
        timers::page(),
    ];
    pages.push(index(&pages));
    pages
}

fn index(pages: &[Page]) -> Page {
    let mut text = "What every part of the platform does in every case.\n\n".to_owned();
    for page in pages {
        text.push_str(&format!("- [{}]({}.md)\n", page.title, page.name));
    }
    page("README", "Tables", &text)
}

fn page(name: &'static str, title: &'static str, text: &str) -> Page {
    let text = format!(
        "# {title}\n\nMade from the code by `cargo xtask tables`; do not edit.\n\n{}\n",
        text.trim_end()
    );
    Page { name, title, text }
}

/// A table with one row a line.
fn table<const N: usize>(
    columns: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let mut text = line(&columns.map(str::to_owned));
    text.push_str(&format!("|{}\n", "---|".repeat(N)));
    for row in rows {
        text.push_str(&line(&row.map(|cell| cell.replace('|', "\\|"))));
    }
    text.push('\n');
    text
}
