use kapell_core::seat::Seat;

use super::Violation;

/// The services of a seat are up on at most one host, also while they are being stopped. A host
/// that is paused or whose time to be killed has come does not count: nothing runs there.
pub(in crate::cluster) fn one_stage(
    staged: impl Iterator<Item = (usize, Seat)>,
) -> Result<(), Violation> {
    let mut staged: Vec<_> = staged.map(|(host, seat)| (seat, host)).collect();
    staged.sort_unstable();
    match staged.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => Err(Violation::new(
            "one stage",
            format!("services of seat {} are up on {} and {}", pair[0].0, pair[0].1, pair[1].1),
        )),
        None => Ok(()),
    }
}
