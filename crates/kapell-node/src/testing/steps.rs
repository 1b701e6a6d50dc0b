use std::sync::{Mutex, PoisonError};

use crate::conductor::{Step, Trace};

/// The steps that a conductor took.
#[derive(Debug, Default)]
pub struct Steps(Mutex<Vec<Step>>);

impl Steps {
    pub fn all(&self) -> Vec<Step> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn has(&self, step: Step) -> bool {
        self.all().contains(&step)
    }
}

impl Trace for Steps {
    fn step(&self, step: Step) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(step);
    }
}
