//! Who is let in: the key of a cluster, the tokens that it signs, and what the leader keeps of them.

mod authority;
mod key;
mod ledger;
mod seal;
mod secrets;
mod service;

#[cfg(test)]
mod tests;

pub use authority::{Authority, AuthorityError, Certified, request};
pub use key::{BadKey, ClusterKey};
pub use ledger::{Ledger, LedgerError, Listed, Wanted};
pub use secrets::{ListedSecret, Secrets, SecretsError};
pub use service::{AccessService, AccessSlot, Disagreement, agree};
