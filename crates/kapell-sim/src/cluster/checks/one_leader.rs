use kapell_core::seat::Seat;

use super::Violation;

/// At any one time at most one host may act for a seat. A host that is paused counts: it might
/// wake at any time, and asks its clock then.
pub(in crate::cluster) fn one_leader(
    acting: impl Iterator<Item = (usize, Seat)>,
) -> Result<(), Violation> {
    let mut acting: Vec<_> = acting.map(|(host, seat)| (seat, host)).collect();
    acting.sort_unstable();
    match acting.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => Err(Violation::new(
            "one leader",
            format!("hosts {} and {} both may act for seat {}", pair[0].1, pair[1].1, pair[0].0),
        )),
        None => Ok(()),
    }
}
