//! The one registry of key prefixes.

use kapell_core::seat::Seat;

use crate::model::Key;

/// The keyspace of entries with a time to live.
pub const SYSVVM: &str = "sysvvm";

/// Who holds a seat: this prefix, then the seat, both big-endian.
const LEADER: u32 = 1;

/// A restore that has begun and not ended: nobody leads on half of a store.
const UNFINISHED: u32 = 2;

/// Which cluster's key the hosts of this store must have.
const CLUSTER: u32 = 3;

/// Tokens that were made: this prefix, then the id.
const TOKEN: u32 = 4;

/// Tokens that count no more: this prefix, then the id. Its generation tells so for ever.
const TOKEN_END: u32 = 5;

/// Secrets, sealed: this prefix, then the domain, a slash and the name.
const SECRET: u32 = 6;

/// The entry of a secret. A domain has no slash.
pub fn secret(domain: &str, name: &str) -> Key {
    named(SECRET, &format!("{domain}/{name}"))
}

/// The domain and the name of the secret that an entry made by [`secret`] is about.
pub fn secret_of(key: &Key) -> Option<(&str, &str)> {
    name_of(SECRET, key)?.split_once('/')
}

/// The entry that says which cluster's key belongs to a store.
pub fn cluster() -> Key {
    Key::new(CLUSTER.to_be_bytes())
}

/// The entry of a token that was made.
pub fn token(id: &str) -> Key {
    named(TOKEN, id)
}

/// The entry that ends a token.
pub fn token_end(id: &str) -> Key {
    named(TOKEN_END, id)
}

/// The id of the token that an entry made by [`token`] is about.
pub fn token_of(key: &Key) -> Option<&str> {
    name_of(TOKEN, key)
}

/// The id of the token that an entry made by [`token_end`] is about.
pub fn token_end_of(key: &Key) -> Option<&str> {
    name_of(TOKEN_END, key)
}

fn named(prefix: u32, name: &str) -> Key {
    Key::new([&prefix.to_be_bytes(), name.as_bytes()].concat())
}

fn name_of(prefix: u32, key: &Key) -> Option<&str> {
    str::from_utf8(key.as_bytes().strip_prefix(&prefix.to_be_bytes())?).ok()
}

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

    #[test]
    fn entries_of_tokens_are_told_apart() {
        let (made, ended) = (token("ab"), token_end("ab"));
        assert_eq!(made.as_bytes(), [0, 0, 0, 4, b'a', b'b']);
        assert_eq!((token_of(&made), token_end_of(&made)), (Some("ab"), None));
        assert_eq!((token_of(&ended), token_end_of(&ended)), (None, Some("ab")));
        assert_eq!((seat_of(&made), seat_of(&cluster())), (None, None));
    }

    #[test]
    fn entries_of_secrets_have_a_domain_and_a_name() {
        let key = secret("a b", "c");
        assert_eq!(key.as_bytes(), [0, 0, 0, 6, b'a', b' ', b'b', b'/', b'c']);
        assert_eq!(secret_of(&key), Some(("a b", "c")));
        assert_eq!((secret_of(&token("a/b")), token_of(&key)), (None, None));
    }
}
