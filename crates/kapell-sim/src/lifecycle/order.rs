use std::sync::{Mutex, PoisonError};

use kapell_node::conductor::{Step, Trace};
use tokio_util::sync::CancellationToken;

/// The steps a conductor took. Anything may happen between any two of them.
#[derive(Debug, Default)]
pub(super) struct Steps {
    taken: Mutex<Vec<Step>>,
    pub(super) launched: CancellationToken,
}

impl Steps {
    pub(super) fn taken(&self) -> Vec<Step> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Trace for Steps {
    fn step(&self, step: Step) {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).push(step);
        if step == Step::Launched {
            self.launched.cancel();
        }
        shuttle::thread::yield_now();
    }
}

/// Each of these pairs, where both were taken, in this order.
const BEFORE: &[(Step, Step)] = &[
    (Step::Launched, Step::ShutdownerStarted),
    (Step::Launched, Step::Acquired),
    (Step::Acquired, Step::MonitorStarted),
    (Step::MonitorStarted, Step::FencesRaised),
    (Step::MonitorStarted, Step::MonitorStopped),
    (Step::FencesRaised, Step::ServicesStarted),
    (Step::LeadershipLost, Step::KillerArmed),
    (Step::KillerArmed, Step::MonitorStopped),
    (Step::ShutdownAsked, Step::ServicesStopping),
    (Step::ShutdownerStarted, Step::ServicesStopping),
    (Step::ServicesStopping, Step::ServicesStopped),
    (Step::ServicesStarted, Step::ServicesStopped),
    (Step::ServicesStopped, Step::MonitorStopping),
    (Step::MonitorStopping, Step::ElectionsCleaned),
    (Step::MonitorStopped, Step::ElectionsCleaned),
    (Step::ElectionsCleaned, Step::ShutDown),
];

/// What is wrong with the order of these steps, if anything is.
pub(super) fn fault(steps: &[Step]) -> Option<String> {
    let first = |step: Step| steps.iter().position(|each| *each == step);
    for (earlier, later) in BEFORE {
        if let (Some(a), Some(b)) = (first(*earlier), first(*later))
            && a > b
        {
            return Some(format!("{later:?} came before {earlier:?}"));
        }
    }
    for (at, step) in steps.iter().enumerate() {
        if *step != Step::ShutdownAsked && steps[..at].contains(step) {
            return Some(format!("{step:?} came twice"));
        }
    }
    let end = first(Step::ShutDown)?;
    let later = steps[end + 1..].iter().find(|step| **step != Step::ShutdownAsked);
    let ended = |a: Step, b: Step| first(a).is_none() || first(b).is_some();
    match later {
        Some(step) => Some(format!("{step:?} came after the end")),
        None if !ended(Step::MonitorStarted, Step::MonitorStopped) => {
            Some("the monitor never stopped".to_owned())
        }
        None => None,
    }
}
