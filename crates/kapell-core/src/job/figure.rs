//! Figures that actions of runs set or count up.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::record::Job;
use crate::constraint::MetricKind;
use crate::seams::Timestamp;

/// What the runs of one job have made of a figure.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Figure {
    pub kind: MetricKind,
    pub value: f64,
    /// When it was set or counted up last.
    pub at: Timestamp,
}

impl PartialEq for Figure {
    fn eq(&self, other: &Self) -> bool {
        let all = |it: &Self| (it.kind, it.value.to_bits(), it.at);
        all(self) == all(other)
    }
}

impl Eq for Figure {}

impl Figure {
    /// What it is after an action; one of another kind begins anew.
    pub(super) fn after(self, before: Option<Self>) -> Self {
        let stands = before.filter(|it| it.kind == self.kind).map_or(0.0, |it| it.value);
        let value = match self.kind {
            MetricKind::Gauge => self.value,
            MetricKind::Counter => stands + self.value,
        };
        Self { value, ..self }
    }
}

/// The figures of all jobs together: what is counted is added up, what is set is as it was set last.
#[derive(Debug, Clone, Default)]
pub struct Figures(BTreeMap<String, Figure>);

impl Figures {
    pub fn add(&mut self, job: &Job) {
        use MetricKind::{Counter, Gauge};
        for (name, figure) in &job.figures {
            let Some(stands) = self.0.get_mut(name) else {
                self.0.insert(name.clone(), *figure);
                continue;
            };
            match (stands.kind, figure.kind) {
                (Counter, Counter) => {
                    stands.value += figure.value;
                    stands.at = stands.at.max(figure.at);
                }
                (Gauge, Gauge | Counter) | (Counter, Gauge) => {
                    if stands.at < figure.at {
                        *stands = *figure;
                    }
                }
            }
        }
    }

    pub fn values(self) -> BTreeMap<String, f64> {
        self.0.into_iter().map(|(name, figure)| (name, figure.value)).collect()
    }
}
