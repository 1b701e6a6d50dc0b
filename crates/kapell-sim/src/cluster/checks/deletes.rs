use kapell_core::seat::{Epoch, Seat};

use super::Violation;

/// A record that was held is deleted only once its services are down, and never after a loss.
pub(in crate::cluster) fn resigned(
    seat: Seat,
    epoch: Epoch,
    staged: bool,
    lost: bool,
) -> Result<(), Violation> {
    let why = match (staged, lost) {
        (true, _) => "while its services are up",
        (false, true) => "although it was lost",
        (false, false) => return Ok(()),
    };
    let how = format!("the record of seat {seat}, epoch {epoch}, is being deleted {why}");
    Err(Violation::new("deleted last", how))
}
