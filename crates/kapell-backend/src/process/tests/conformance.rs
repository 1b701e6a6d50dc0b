//! What every driver must do, done by this one.

use std::sync::Arc;

use crate::process::ProcessContainers;
use crate::process::tests::lab::own_user;
use crate::testing::{Rig, conformance};

#[expect(clippy::unnecessary_wraps, reason = "other drivers cannot run everywhere")]
fn rig(_test: &str) -> Option<Rig> {
    Some(Rig::new(None, own_user, |dir| Arc::new(ProcessContainers::open(dir).unwrap())))
}

conformance!(rig);
