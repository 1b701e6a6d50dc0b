use std::collections::BTreeMap;

use kapell_core::seat::{Epoch, Seat};

use super::Violation;

/// Epochs of a seat strictly grow, in the store and in the order in which hosts are told.
#[derive(Debug, Default)]
pub(in crate::cluster) struct Epochs {
    inserted: BTreeMap<Seat, Epoch>,
    acquired: BTreeMap<Seat, Epoch>,
    acquisitions: u64,
}

impl Epochs {
    pub(in crate::cluster) fn inserted(
        &mut self,
        seat: Seat,
        epoch: Epoch,
    ) -> Result<(), Violation> {
        grow(&mut self.inserted, seat, epoch, "inserted")
    }

    pub(in crate::cluster) fn acquired(
        &mut self,
        seat: Seat,
        epoch: Epoch,
    ) -> Result<(), Violation> {
        self.acquisitions += 1;
        grow(&mut self.acquired, seat, epoch, "acquired")
    }

    pub(in crate::cluster) const fn acquisitions(&self) -> u64 {
        self.acquisitions
    }
}

fn grow(
    last: &mut BTreeMap<Seat, Epoch>,
    seat: Seat,
    epoch: Epoch,
    verb: &str,
) -> Result<(), Violation> {
    match last.insert(seat, epoch) {
        Some(before) if epoch <= before => Err(Violation::new(
            "epochs grow",
            format!("epoch {epoch} of seat {seat} was {verb} after {before}"),
        )),
        Some(_) | None => Ok(()),
    }
}
