//! Messages to places outside: queued, signed, sent again if need be, and listed.

mod handler;
mod keys;
mod ledger;
mod outbound;
mod outbox;
mod sign;
mod worker;

#[cfg(test)]
pub(crate) mod tests;

pub use handler::{Full, Handler, Hold, Message, Parts, Settled, Ticket, webhook_id};
pub use keys::Keys;
pub use ledger::{Delivery, DeliveryState, LEDGER_KEPT};
pub use outbound::{HttpOutbound, Outbound, Sent};
pub use outbox::Outbox;
pub use sign::{BadKey, Signer};
pub use worker::Worker;
