//! Figures that actions of runs set or count up.

use serde::{Deserialize, Serialize};

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
