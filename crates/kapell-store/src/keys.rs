//! The one registry of key prefixes.

use kapell_core::seat::Seat;

use crate::model::Key;

/// The keyspace of entries with a time to live.
pub const SYSVVM: &str = "sysvvm";

/// Who holds a seat: this prefix, then the seat, both big-endian.
const LEADER: u32 = 1;

/// A restore that has begun and not ended: nobody leads on half of a store.
const UNFINISHED: u32 = 2;

/// The entry that stands while a store is being filled.
pub fn unfinished() -> Key {
    Key::new(UNFINISHED.to_be_bytes())
}

/// The entry that says who holds a seat.
pub fn leader(seat: Seat) -> Key {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&LEADER.to_be_bytes());
    bytes[4..].copy_from_slice(&seat.0.to_be_bytes());
    Key::new(bytes)
}

/// Which seat an entry is about, if it is about one.
pub fn seat_of(key: &Key) -> Option<Seat> {
    let (prefix, seat) = key.as_bytes().split_at_checked(4)?;
    let is_leader = prefix == LEADER.to_be_bytes();
    is_leader.then_some(Seat(u32::from_be_bytes(seat.try_into().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_is_the_specified_one() {
        let key = leader(Seat(258));
        assert_eq!(key.as_bytes(), [0, 0, 0, 1, 0, 0, 1, 2]);
        assert_eq!(seat_of(&key), Some(Seat(258)));
        assert_eq!(seat_of(&Key::new(*b"\0\0\0\x02\0\0\0\x01")), None);
        assert_eq!(seat_of(&Key::new(*b"\0\0\0\x01\0")), None);
    }
}
