//! The place of a backend that this host does not have.

use arcstr::ArcStr;
use async_trait::async_trait;
use kapell_core::run::{Evidence, StopKind};

use super::backend::{Attempt, Backend, Work};

/// Takes nothing, and says why.
#[derive(Debug)]
pub(super) struct Absent {
    pub(super) name: &'static str,
    pub(super) why: &'static str,
}

#[async_trait]
impl Backend for Absent {
    fn name(&self) -> &'static str {
        self.name
    }

    fn place(&self) -> ArcStr {
        ArcStr::new()
    }

    async fn launch(&self, _work: &Work) -> Result<(), String> {
        Err(self.why.to_owned())
    }

    async fn find(&self, _attempt: &Attempt, _place: &str) -> Evidence {
        Evidence::Unknown { why: self.why.to_owned() }
    }

    async fn stop(&self, _attempt: &Attempt, _place: &str, _kind: StopKind) -> Result<(), String> {
        Ok(())
    }

    async fn release(&self, _attempt: &Attempt) {}

    async fn known(&self) -> Result<Vec<Attempt>, String> {
        Ok(Vec::new())
    }
}
