use std::fmt;

use serde_json::{Value, json};

/// What a figure must be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Goal {
    AtMost(f64),
    AtLeast(f64),
    Below(f64),
}

impl Goal {
    fn holds(self, value: f64) -> bool {
        match self {
            Self::AtMost(limit) => value <= limit,
            Self::AtLeast(limit) => value >= limit,
            Self::Below(limit) => value < limit,
        }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(limit) => write!(out, "<= {limit:.2}"),
            Self::AtLeast(limit) => write!(out, ">= {limit:.2}"),
            Self::Below(limit) => write!(out, "< {limit:.2}"),
        }
    }
}

/// One figure.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    pub(crate) name: String,
    /// One for each round, from low to high; none if it could not be measured here.
    samples: Vec<f64>,
    unit: &'static str,
    /// None for a figure that only helps to read the others.
    goal: Option<Goal>,
}

impl Row {
    pub(crate) fn new(name: String, samples: impl IntoIterator<Item = f64>) -> Self {
        let mut samples: Vec<f64> = samples.into_iter().collect();
        samples.sort_by(f64::total_cmp);
        Self { name, samples, unit: "ratio", goal: None }
    }

    pub(crate) fn unit(self, unit: &'static str) -> Self {
        Self { unit, ..self }
    }

    pub(crate) fn goal(self, goal: Goal) -> Self {
        Self { goal: Some(goal), ..self }
    }

    /// The median.
    pub(crate) fn value(&self) -> Option<f64> {
        let middle = self.samples.len() / 2;
        let upper = *self.samples.get(middle)?;
        let is_odd = self.samples.len() % 2 == 1;
        let lower = if is_odd { upper } else { self.samples[middle - 1] };
        Some(f64::midpoint(lower, upper))
    }

    /// The lowest and the highest, if there was more than one.
    fn range(&self) -> Option<(f64, f64)> {
        let [low, .., high] = self.samples[..] else { return None };
        Some((low, high))
    }

    pub(crate) const fn has_goal(&self) -> bool {
        self.goal.is_some()
    }

    /// None if there is nothing to judge.
    fn holds(&self) -> Option<bool> {
        Some(self.goal?.holds(self.value()?))
    }

    /// What to say about a goal that does not hold.
    pub(crate) fn missed(&self) -> Option<String> {
        let (goal, value) = (self.goal?, self.value()?);
        let text = || format!("{}: {value:.3} {}, goal {goal}", self.name, self.unit);
        (!goal.holds(value)).then(text)
    }

    fn cells(&self, judged: bool) -> [String; 6] {
        let dash = || "–".to_owned();
        let holds = match self.holds().filter(|_| judged) {
            Some(true) => "yes",
            Some(false) => "**no**",
            None => "–",
        };
        [
            self.name.clone(),
            self.value().map_or_else(|| "skipped".to_owned(), |value| format!("{value:.3}")),
            self.range().map_or_else(dash, |(low, high)| format!("{low:.3}–{high:.3}")),
            self.unit.to_owned(),
            self.goal.map_or_else(dash, |goal| goal.to_string()),
            holds.to_owned(),
        ]
    }
}

pub(crate) fn to_json(rows: &[Row], judged: bool) -> Value {
    let rounded = |value: f64| (value * 1000.0).round() / 1000.0;
    let row = |row: &Row| {
        json!({
            "name": row.name,
            "value": row.value().map(rounded),
            "unit": row.unit,
            "goal": row.goal.map(|goal| goal.to_string()),
            "holds": row.holds().filter(|_| judged),
            "low": row.range().map(|(low, _)| rounded(low)),
            "high": row.range().map(|(_, high)| rounded(high)),
        })
    };
    rows.iter().map(row).collect()
}

/// A table whose columns line up in the source as well.
pub(crate) fn to_markdown<'a>(rows: impl Iterator<Item = &'a Row>, judged: bool) -> String {
    let mut table = vec![["figure", "value", "range", "unit", "goal", "holds"].map(str::to_owned)];
    table.extend(rows.map(|row| row.cells(judged)));
    let width = |column: usize| table.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..6).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for (index, row) in table.iter().enumerate() {
        push_line(&mut text, row, &widths);
        if index == 0 {
            let dashes: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
            push_line(&mut text, &dashes, &widths);
        }
    }
    text
}

fn push_line(text: &mut String, cells: &[String], widths: &[usize]) {
    for (cell, width) in cells.iter().zip(widths) {
        text.push_str("| ");
        text.push_str(cell);
        text.extend(std::iter::repeat_n(' ', width - cell.chars().count() + 1));
    }
    text.push_str("|\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> [Row; 3] {
        [
            Row::new("a".to_owned(), [1.3, 1.0, 1.1]).goal(Goal::AtMost(1.1)),
            Row::new("b".to_owned(), [1.0]).unit("s").goal(Goal::Below(1.0)),
            Row::new("make".to_owned(), []).goal(Goal::Below(1.0)),
        ]
    }

    #[test]
    fn the_value_is_the_median() {
        let value = |samples: &[f64]| Row::new(String::new(), samples.iter().copied()).value();
        assert_eq!(value(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(value(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(value(&[]), None);
    }

    #[test]
    fn a_goal_holds_or_not_or_is_not_judged() {
        assert_eq!(rows().map(|row| row.holds()), [Some(true), Some(false), None]);
        assert_eq!(rows()[1].missed().as_deref(), Some("b: 1.000 s, goal < 1.00"));
        assert_eq!((rows()[0].missed(), rows()[2].missed()), (None, None));
        let json = to_json(&rows(), true);
        assert_eq!(json[0]["holds"], true);
        assert_eq!(json[2]["value"], Value::Null);
        assert_eq!(json[2]["goal"], "< 1.00");
        assert_eq!(to_json(&rows(), false)[0]["holds"], Value::Null);
    }

    #[test]
    fn the_table_lines_up() {
        let want = "\
| figure | value   | range       | unit  | goal    | holds  |
| ------ | ------- | ----------- | ----- | ------- | ------ |
| a      | 1.100   | 1.000–1.300 | ratio | <= 1.10 | yes    |
| b      | 1.000   | –           | s     | < 1.00  | **no** |
| make   | skipped | –           | ratio | < 1.00  | –      |
";
        assert_eq!(to_markdown(rows().iter(), true), want);
    }
}
