use kapell_core::seat::Seat;

use crate::keys::SYSVVM;
use crate::model::{Key, Shard};

const GENERATION: &str = "generation";
const BOARD: &str = "board";
const LAYOUT: &str = "layout";

/// What stands directly below a root.
pub(super) const RESERVED: [&str; 4] = [SYSVVM, GENERATION, BOARD, LAYOUT];

/// Where in etcd each thing is kept.
pub(super) struct Paths {
    pub(super) entries: Vec<u8>,
    pub(super) generations: Vec<u8>,
    pub(super) layout: Vec<u8>,
    board: Vec<u8>,
}

impl Paths {
    pub(super) fn below(root: &str) -> Self {
        Self {
            entries: format!("{root}/{SYSVVM}/").into_bytes(),
            generations: format!("{root}/{GENERATION}/").into_bytes(),
            layout: format!("{root}/{LAYOUT}").into_bytes(),
            board: format!("{root}/{BOARD}/").into_bytes(),
        }
    }

    pub(super) fn entry(&self, key: &Key) -> Vec<u8> {
        joined(&self.entries, key.as_bytes())
    }

    pub(super) fn generation(&self, key: &Key) -> Vec<u8> {
        joined(&self.generations, key.as_bytes())
    }

    pub(super) fn fence(&self, shard: Shard) -> Vec<u8> {
        self.shard(shard, b'f')
    }

    pub(super) fn fences(&self, seat: Seat) -> Vec<Vec<u8>> {
        Shard::all(seat).map(|shard| self.fence(shard)).collect()
    }

    pub(super) fn records(&self, shard: Shard) -> Vec<u8> {
        self.shard(shard, b'r')
    }

    fn shard(&self, shard: Shard, kind: u8) -> Vec<u8> {
        let mut path = self.board.clone();
        path.extend(shard.seat.0.to_be_bytes());
        path.extend(shard.number.to_be_bytes());
        path.push(kind);
        path
    }
}

pub(super) fn joined(prefix: &[u8], rest: &[u8]) -> Vec<u8> {
    [prefix, rest].concat()
}

/// The first path behind everything that begins with `prefix`.
pub(super) fn end_of(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return end;
        }
    }
    // Nothing is behind 0xff…ff; this is how etcd writes "to the very end".
    vec![0]
}

/// The first path behind `path`.
pub(super) fn behind(path: &[u8]) -> Vec<u8> {
    joined(path, &[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_is_the_specified_one() {
        let paths = Paths::below("r");
        let key = Key::new(*b"k\xff");
        assert_eq!(paths.entry(&key), b"r/sysvvm/k\xff");
        assert_eq!(paths.generation(&key), b"r/generation/k\xff");
        assert_eq!(paths.layout, b"r/layout");
        let shard = Shard { seat: Seat(258), number: 3 };
        assert_eq!(paths.fence(shard), b"r/board/\0\0\x01\x02\0\x03f");
        assert_eq!(paths.records(shard), b"r/board/\0\0\x01\x02\0\x03r");
    }

    #[test]
    fn a_range_ends_behind_all_that_begins_alike() {
        assert_eq!(end_of(b"ab"), b"ac");
        assert_eq!(end_of(b"a\xff\xff"), b"b");
        assert_eq!(end_of(b"\xff"), b"\0");
        assert_eq!(behind(b"a"), b"a\0");
    }
}
