//! Tables that fit the terminal: the least important columns shrink, then go.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::logger::Style;
use crate::logger::style::{Colour, clean};

/// Between two columns.
const GAP: usize = 2;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    pub(crate) title: &'static str,
    /// The lowest shrinks and goes first.
    pub(crate) importance: u8,
    /// It shrinks to this, and then goes rather than shrink more.
    pub(crate) least: usize,
}

pub(crate) const fn column(title: &'static str, importance: u8, least: usize) -> Column {
    Column { title, importance, least }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) text: String,
    pub(crate) colour: Option<Colour>,
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self { text: text.into(), colour: None }
    }
}

pub(crate) fn coloured(text: impl Into<String>, colour: Colour) -> Cell {
    Cell { text: text.into(), colour: Some(colour) }
}

#[derive(Debug, Clone)]
pub(crate) struct Table {
    pub(crate) columns: &'static [Column],
    pub(crate) rows: Vec<Vec<Cell>>,
    /// What is said instead of a table without rows.
    pub(crate) nothing: &'static str,
}

impl Table {
    /// `width`: of the terminal; without one, everything is shown.
    pub(crate) fn render(&self, width: Option<usize>, style: Style) -> String {
        if self.rows.is_empty() {
            return format!("{}\n", self.nothing);
        }
        let natural: Vec<usize> = (0..self.columns.len()).map(|at| self.natural(at)).collect();
        let widths = fit(self.columns, &natural, width);
        let last = widths.iter().rposition(Option::is_some).unwrap_or(0);
        let mut out = String::new();
        let titles: Vec<Cell> =
            self.columns.iter().map(|column| coloured(column.title, Colour::Bold)).collect();
        for row in std::iter::once(&titles).chain(&self.rows) {
            for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let Some(width) = *width else { continue };
                let text = cut(&clean(&cell.text), width);
                let room = width.saturating_sub(text.width()) + GAP;
                let painted = cell.colour.map_or_else(|| text.clone(), |it| style.paint(it, &text));
                out.push_str(&painted);
                if at != last {
                    out.push_str(&" ".repeat(room));
                }
            }
            out.truncate(out.trim_end_matches(' ').len());
            out.push('\n');
        }
        out
    }

    fn natural(&self, at: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(at));
        let widest = cells.map(|cell| clean(&cell.text).width()).max().unwrap_or(0);
        widest.max(self.columns[at].title.width())
    }
}

/// How wide each column is; those without a width are not shown.
fn fit(columns: &[Column], natural: &[usize], width: Option<usize>) -> Vec<Option<usize>> {
    let mut widths: Vec<Option<usize>> = natural.iter().copied().map(Some).collect();
    let Some(room) = width else { return widths };
    let mut order: Vec<usize> = (0..columns.len()).collect();
    order.sort_by_key(|&at| columns[at].importance);
    for gone in 0..columns.len() {
        widths.copy_from_slice(&natural.iter().copied().map(Some).collect::<Vec<_>>());
        for &at in &order[..gone] {
            widths[at] = None;
        }
        for &at in &order[gone..] {
            let excess = total(&widths).saturating_sub(room);
            let least = columns[at].least.max(columns[at].title.width()).min(natural[at]);
            widths[at] = Some(natural[at].saturating_sub(excess).max(least));
        }
        if total(&widths) <= room {
            return widths;
        }
    }
    // Even the most important alone is too wide.
    if let Some(&at) = order.last() {
        widths[at] = Some(room.max(1));
    }
    widths
}

fn total(widths: &[Option<usize>]) -> usize {
    let shown: Vec<usize> = widths.iter().flatten().copied().collect();
    shown.iter().sum::<usize>() + GAP * shown.len().saturating_sub(1)
}

/// A text that is no wider than `width`, with `…` for what is missing.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > width {
            break;
        }
        out.push(c);
    }
    out.push('…');
    out
}
