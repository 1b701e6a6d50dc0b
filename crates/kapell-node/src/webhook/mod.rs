//! Messages to places outside: queued, signed, sent again if need be, and listed.

mod handler;
mod keys;
mod ledger;
mod outbound;
mod sign;
mod worker;

#[cfg(test)]
pub(crate) mod tests;

pub use handler::{Full, Handler, Hold, Message, Settled, Ticket};
pub use keys::Keys;
pub use ledger::{Delivery, DeliveryState, LEDGER_KEPT};
pub use outbound::{HttpOutbound, Outbound, Sent};
pub use sign::{BadKey, Signer};
pub use worker::Worker;
