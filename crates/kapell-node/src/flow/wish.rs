//! How urgently a command elsewhere is to end.

use kapell_backend::executor::{Control, Ended, Exit};
use nix::sys::signal::Signal;
use tokio::sync::watch;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Told {
    Nothing,
    /// It has its grace.
    End,
    /// Nobody waits for it any more.
    Now,
}

#[derive(Debug)]
pub(super) struct Wish(watch::Sender<Told>);

impl Wish {
    pub(super) fn new() -> (Self, watch::Receiver<Told>) {
        let (told, ear) = watch::channel(Told::Nothing);
        (Self(told), ear)
    }
}

impl Control for Wish {
    fn signal(&self, hard: bool) {
        let told = if hard { Told::Now } else { Told::End };
        self.0.send_modify(|before| *before = (*before).max(told));
    }
}

/// Waits until it is told this, or something more urgent.
pub(super) async fn at_least(mut told: watch::Receiver<Told>, urgency: Told) {
    if told.wait_for(|told| *told >= urgency).await.is_err() {
        // Nobody is left who could tell.
        std::future::pending::<()>().await;
    }
}

/// The end of one that was told to.
pub(super) const fn stopped() -> Ended {
    Ended { exit: Exit::Signal(Signal::SIGTERM as i32), lingering: None }
}
