use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kapell_core::seams::{Clock, Moment};

use crate::elections::Killer;

/// A killer that kills nobody and remembers what it was told.
#[derive(Debug)]
pub struct KillerLog {
    clock: Arc<dyn Clock>,
    told: Mutex<Told>,
}

#[derive(Debug, Default)]
struct Told {
    at: Option<Moment>,
    fired: Vec<(Moment, String)>,
}

impl KillerLog {
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, told: Mutex::default() }
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When the process would end, as things are.
    pub fn at(&self) -> Option<Moment> {
        self.told().at
    }

    /// When and why it was fired, each time.
    pub fn fired(&self) -> Vec<(Moment, String)> {
        self.told().fired.clone()
    }
}

impl Killer for KillerLog {
    fn set(&self, at: Option<Moment>) {
        self.told().at = at;
    }

    fn fire(&self, why: &str) {
        let now = self.clock.now();
        self.told().fired.push((now, why.to_owned()));
    }
}
