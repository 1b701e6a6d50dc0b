//! Who may do what: roles, domains, and the one table that says it.
//!
//! Nothing here knows how somebody proved who they are. That is done at the listener, by a token or a certificate.

mod kind;
mod rule;
mod token;
mod who;

#[cfg(test)]
mod tests;

use std::time::Duration;

pub use kind::Kind;
pub use rule::{About, Grant, Refusal, allows, grant};
pub use token::{Claims, Ended, How, Invalid, Issued, Purpose, TokenId};
pub use who::{Domains, Role, RoleKind, Who};

/// How long a certificate counts unless a setting says otherwise.
pub const CERTIFICATE_LIFE: Duration = Duration::from_secs(30 * 86_400);
