//! Where secrets come from that messages are signed and addressed with.

use std::collections::BTreeSet;
use std::fmt;

use async_trait::async_trait;
use kapell_core::board::secrets::Due;
use kapell_core::board::{Domain, SecretName};
use kapell_core::causes::chain;
use kapell_core::secret::Secret;

use crate::access::{Secrets, SecretsError};

/// Gives out secrets of a domain, for messages of jobs of that domain.
#[async_trait]
pub trait Keys: fmt::Debug + Send + Sync {
    /// The value, or why there is none; `Ok(Err)` is an answer that asking again will not change.
    async fn key(
        &self,
        domain: &Domain,
        name: &SecretName,
    ) -> Result<Result<Secret, String>, String>;
}

#[async_trait]
impl Keys for Secrets {
    async fn key(
        &self,
        domain: &Domain,
        name: &SecretName,
    ) -> Result<Result<Secret, String>, String> {
        let due = Due { domain: domain.clone(), names: BTreeSet::from([name.clone()]) };
        match self.open(&due).await {
            Ok(mut found) => Ok(found
                .pop()
                .map(|(_, secret)| secret)
                .ok_or_else(|| format!("no secret \"{name}\""))),
            Err(error @ SecretsError::Store(_)) => Err(chain(&error)),
            Err(
                error @ (SecretsError::Faults(_)
                | SecretsError::NoSuchSecret { .. }
                | SecretsError::NotSet { .. }
                | SecretsError::Sealed { .. }
                | SecretsError::Unsealable
                | SecretsError::Contended),
            ) => Ok(Err(chain(&error))),
        }
    }
}
