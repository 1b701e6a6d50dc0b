use std::fmt;

/// The steps of a conductor's life, in the order in which a quiet one goes through them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    Launched,
    ShutdownerStarted,
    Acquired,
    MonitorStarted,
    FencesRaised,
    ServicesStarted,
    LeadershipLost,
    KillerArmed,
    ProblemRaised,
    ShutdownAsked,
    ServicesStopping,
    ServicesStopped,
    MonitorStopping,
    MonitorStopped,
    ElectionsCleaned,
    ShutDown,
}

/// Sees every step a conductor takes, before the next one.
pub trait Trace: fmt::Debug + Send + Sync {
    fn step(&self, step: Step);
}

/// Writes the steps to the log.
#[derive(Debug, Clone, Copy, Default)]
pub struct LogTrace;

impl Trace for LogTrace {
    fn step(&self, step: Step) {
        tracing::debug!(?step, "conductor");
    }
}
