//! Every statement that calls are made of. Each is one round trip.
//!
//! A condition that names the time looks at the clock of the node that was asked, as it was when the statement came there.
//! Paxos may apply it later, behind others. So an entry whose time is over may still be renewed by someone who came in
//! time: nobody is told that something has expired before it was settled, which is a change itself, behind which no
//! renewal can come any more.

use scylla::statement::prepared::PreparedStatement;

use super::link::Levels;

/// The statements that are prepared when a store is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Query {
    InsertFirst,
    InsertNext,
    Renew,
    Swap,
    Delete,
    Settle,
    Read,
    Peek,
    Keys,
    LiftFirst,
    LiftNext,
    Fence,
    Move,
    Mark,
    Thin,
    Put,
    Remove,
    Scan,
}

/// How sure the answer to a statement has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    /// A read behind everything that was ever answered to anyone.
    Serial,
    /// Changes, whose agreement is serial anyway, and reads of what was decided some time.
    Most,
}

impl Query {
    /// In the order of their numbers.
    pub(super) const ALL: [Self; 18] = [
        Self::InsertFirst,
        Self::InsertNext,
        Self::Renew,
        Self::Swap,
        Self::Delete,
        Self::Settle,
        Self::Read,
        Self::Peek,
        Self::Keys,
        Self::LiftFirst,
        Self::LiftNext,
        Self::Fence,
        Self::Move,
        Self::Mark,
        Self::Thin,
        Self::Put,
        Self::Remove,
        Self::Scan,
    ];

    pub(super) fn cql(self, keyspace: &str) -> String {
        self.template().replace("KEYSPACE", keyspace)
    }

    const fn level(self) -> Level {
        match self {
            Self::Read | Self::Fence | Self::Scan => Level::Serial,
            Self::InsertFirst
            | Self::InsertNext
            | Self::Renew
            | Self::Swap
            | Self::Delete
            | Self::Settle
            | Self::Peek
            | Self::Keys
            | Self::LiftFirst
            | Self::LiftNext
            | Self::Move
            | Self::Mark
            | Self::Thin
            | Self::Put
            | Self::Remove => Level::Most,
        }
    }

    pub(super) fn set(self, statement: &mut PreparedStatement, levels: Levels) {
        statement.set_consistency(match self.level() {
            Level::Serial => levels.read,
            Level::Most => levels.most,
        });
        statement.set_serial_consistency(Some(levels.serial));
        statement.set_is_idempotent(false);
    }

    const fn template(self) -> &'static str {
        match self {
            Self::InsertFirst => INSERT_FIRST,
            Self::InsertNext => INSERT_NEXT,
            Self::Renew => RENEW,
            Self::Swap => SWAP,
            Self::Delete => DELETE,
            Self::Settle => SETTLE,
            Self::Read => READ,
            Self::Peek => PEEK,
            Self::Keys => KEYS,
            Self::LiftFirst => LIFT_FIRST,
            Self::LiftNext => LIFT_NEXT,
            Self::Fence => FENCE,
            Self::Move => MOVE,
            Self::Mark => MARK,
            Self::Thin => THIN,
            Self::Put => PUT,
            Self::Remove => REMOVE,
            Self::Scan => SCAN,
        }
    }
}

/// A row is there from the first insert, or lift, on. It never goes, and none of its columns ever is null again.
const INSERT_FIRST: &str = "
    UPDATE KEYSPACE.entry
    SET generation = 1, value = ?, expires = currentTimestamp() + (duration) ?
    WHERE store = ? AND key = ?
    IF generation = null";

const INSERT_NEXT: &str = "
    UPDATE KEYSPACE.entry
    SET generation = ?, value = ?, expires = currentTimestamp() + (duration) ?
    WHERE store = ? AND key = ?
    IF generation = ? AND expires <= currentTimestamp()";

/// The one that happens all the time. The value is not written, so its time stays, and nobody who watches is woken.
const RENEW: &str = "
    UPDATE KEYSPACE.entry
    SET expires = currentTimestamp() + (duration) ?
    WHERE store = ? AND key = ?
    IF value = ? AND expires > currentTimestamp()";

const SWAP: &str = "
    UPDATE KEYSPACE.entry
    SET value = ?, expires = currentTimestamp() + (duration) ?
    WHERE store = ? AND key = ?
    IF value = ? AND expires > currentTimestamp()";

/// What is gone has expired at zero. Nothing is deleted, so there are no tombstones.
const DELETE: &str = "
    UPDATE KEYSPACE.entry
    SET value = 0x, expires = 0
    WHERE store = ? AND key = ?
    IF value = ? AND expires > currentTimestamp()";

/// Makes final that an entry has expired, unless it was changed since it was looked at.
const SETTLE: &str = "
    UPDATE KEYSPACE.entry
    SET expires = 0
    WHERE store = ? AND key = ?
    IF value = ? AND expires = ?";

/// The clock that is told is of the node that counts.
const READ: &str = "
    SELECT generation, value, expires, currentTimestamp() FROM KEYSPACE.entry WHERE store = ? AND key = ?";

/// Changes whenever something happens that is to be told.
const PEEK: &str = "
    SELECT generation, WRITETIME(value) FROM KEYSPACE.entry WHERE store = ? AND key = ?";

/// Of all stores of the keyspace: only partitions as a whole can be asked for.
const KEYS: &str = "SELECT store, key, generation, expires FROM KEYSPACE.entry";

const LIFT_FIRST: &str = "
    UPDATE KEYSPACE.entry
    SET generation = ?, value = 0x, expires = 0
    WHERE store = ? AND key = ?
    IF generation = null";

const LIFT_NEXT: &str = "
    UPDATE KEYSPACE.entry
    SET generation = ?
    WHERE store = ? AND key = ?
    IF generation = ?";

const FENCE: &str = "
    SELECT DISTINCT epoch, seq, marks FROM KEYSPACE.record WHERE store = ? AND seat = ? AND shard = ?";

/// The fence is one for the whole partition. Before it is first raised it is null.
const MOVE: &str = "
    UPDATE KEYSPACE.record
    SET epoch = ?, seq = ?
    WHERE store = ? AND seat = ? AND shard = ?
    IF epoch = ? AND seq = ?";

/// [`MOVE`] that leaves a mark for those who scan, among those that are there.
const MARK: &str = "
    UPDATE KEYSPACE.record
    SET epoch = ?, seq = ?, marks = marks + ?
    WHERE store = ? AND seat = ? AND shard = ?
    IF epoch = ? AND seq = ?";

/// [`MOVE`] that leaves these marks and no others.
const THIN: &str = "
    UPDATE KEYSPACE.record
    SET epoch = ?, seq = ?, marks = ?
    WHERE store = ? AND seat = ? AND shard = ?
    IF epoch = ? AND seq = ?";

/// Only ever in a batch with [`MOVE`], whose condition it shares.
const PUT: &str = "
    UPDATE KEYSPACE.record SET value = ? WHERE store = ? AND seat = ? AND shard = ? AND key = ?";

/// As [`PUT`].
const REMOVE: &str = "
    DELETE FROM KEYSPACE.record WHERE store = ? AND seat = ? AND shard = ? AND key = ?";

const SCAN: &str = "
    SELECT key, value FROM KEYSPACE.record
    WHERE store = ? AND seat = ? AND shard = ? AND key > ? AND key <= ?
    LIMIT ?";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_its_own_place() {
        for (place, query) in Query::ALL.into_iter().enumerate() {
            assert_eq!(query as usize, place, "{query:?}");
        }
    }

    /// A write without a condition has another idea of time than one with; a put or a removal shares its batch's.
    #[test]
    fn nothing_is_written_without_a_condition() {
        for query in Query::ALL {
            let cql = query.cql("k");
            let (writes, conditional) =
                (!cql.trim().starts_with("SELECT"), cql.contains("\n    IF "));
            let shares = matches!(query, Query::Put | Query::Remove);
            assert_eq!(writes, conditional || shares, "{cql}");
            assert!(!cql.contains("USING") && !cql.contains("INSERT"), "{cql}");
        }
    }
}
