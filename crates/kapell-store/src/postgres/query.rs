//! Every statement that calls are made of. Each is one round trip and a transaction of its own.
//!
//! All run in READ COMMITTED. A statement judges its rows by a snapshot from its beginning; if a
//! row that it would write is being written by someone else it waits, and if that one committed
//! it judges the new row afresh. So of two writers to a row the second always answers to what the
//! first left. A row that does not qualify in the snapshot is an answer as of that moment, and
//! the snapshot has everything that anyone saw succeed before the statement was sent.
//!
//! Except for time: a row that has expired in the snapshot may be on its way to be renewed by
//! someone who came before it did, and whose commit takes a while. So nobody is told that
//! something has expired unless they looked with the row locked.

/// The statements that every session has prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Query {
    InsertFirst,
    InsertNext,
    Renew,
    Swap,
    Delete,
    Read,
    Settle,
    List,
    Lift,
    Raise,
    Fence,
    Plant,
    Commit,
    Scan,
}

impl Query {
    /// In the order of their numbers.
    pub(super) const ALL: [Self; 14] = [
        Self::InsertFirst,
        Self::InsertNext,
        Self::Renew,
        Self::Swap,
        Self::Delete,
        Self::Read,
        Self::Settle,
        Self::List,
        Self::Lift,
        Self::Raise,
        Self::Fence,
        Self::Plant,
        Self::Commit,
        Self::Scan,
    ];

    /// The call that it serves, for messages.
    pub(super) const fn call(self) -> &'static str {
        match self {
            Self::InsertFirst | Self::InsertNext => "insert_if_absent",
            Self::Renew | Self::Swap => "compare_and_swap",
            Self::Delete => "compare_and_delete",
            Self::Read | Self::Settle => "read",
            Self::List => "list",
            Self::Lift => "lift",
            Self::Raise => "raise",
            Self::Fence => "fence",
            Self::Plant | Self::Commit => "commit",
            Self::Scan => "scan",
        }
    }

    pub(super) fn sql(self, schema: &str) -> String {
        self.template().replace("SCHEMA", schema)
    }

    /// `SCHEMA` stands for the schema, which is the name of the channel too.
    const fn template(self) -> &'static str {
        match self {
            Self::InsertFirst => INSERT_FIRST,
            Self::InsertNext => INSERT_NEXT,
            Self::Renew => RENEW,
            Self::Swap => SWAP,
            Self::Delete => DELETE,
            Self::Read => READ,
            Self::Settle => SETTLE,
            Self::List => LIST,
            Self::Lift => LIFT,
            Self::Raise => RAISE,
            Self::Fence => FENCE,
            Self::Plant => PLANT,
            Self::Commit => COMMIT,
            Self::Scan => SCAN,
        }
    }
}

/// A key has a row from its first insert on, so there is only the row to make. Whoever comes
/// second waits for the first at the unique index, and does nothing if that one committed.
const INSERT_FIRST: &str = "
    WITH done AS (
        INSERT INTO SCHEMA.ttl (key, generation, value, expires_at)
        VALUES ($1, 1, $2, clock_timestamp() + $3::bigint * interval '1 millisecond')
        ON CONFLICT (key) DO NOTHING
        RETURNING key
    )
    SELECT pg_notify('SCHEMA', encode(key, 'hex')) FROM done";

/// The row is there and stays, so a writer that waited judges generation and expiry anew.
const INSERT_NEXT: &str = "
    WITH done AS (
        UPDATE SCHEMA.ttl
        SET generation = generation + 1,
            value = $2,
            expires_at = clock_timestamp() + $3::bigint * interval '1 millisecond'
        WHERE key = $1 AND generation = $4
            AND (value IS NULL OR expires_at <= clock_timestamp())
        RETURNING key
    )
    SELECT pg_notify('SCHEMA', encode(key, 'hex')) FROM done";

/// Locks what has the right value and judges its time then. The one that happens all the time: it
/// changes nothing that anyone waits for, so it tells nobody.
const RENEW: &str = "
    WITH held AS MATERIALIZED (
        SELECT expires_at FROM SCHEMA.ttl WHERE key = $1 AND value = $2 FOR NO KEY UPDATE
    )
    UPDATE SCHEMA.ttl
    SET expires_at = clock_timestamp() + $3::bigint * interval '1 millisecond'
    WHERE key = $1 AND EXISTS (
        SELECT FROM held WHERE expires_at IS NULL OR expires_at > clock_timestamp()
    )
    RETURNING true";

/// As [`RENEW`].
const SWAP: &str = "
    WITH held AS MATERIALIZED (
        SELECT expires_at FROM SCHEMA.ttl WHERE key = $1 AND value = $2 FOR NO KEY UPDATE
    ), done AS (
        UPDATE SCHEMA.ttl
        SET value = $4,
            expires_at = clock_timestamp() + $3::bigint * interval '1 millisecond'
        WHERE key = $1 AND EXISTS (
            SELECT FROM held WHERE expires_at IS NULL OR expires_at > clock_timestamp()
        )
        RETURNING key
    )
    SELECT pg_notify('SCHEMA', encode(key, 'hex')) FROM done";

/// As [`RENEW`].
const DELETE: &str = "
    WITH held AS MATERIALIZED (
        SELECT expires_at FROM SCHEMA.ttl WHERE key = $1 AND value = $2 FOR NO KEY UPDATE
    ), done AS (
        UPDATE SCHEMA.ttl
        SET value = NULL, expires_at = NULL
        WHERE key = $1 AND EXISTS (
            SELECT FROM held WHERE expires_at IS NULL OR expires_at > clock_timestamp()
        )
        RETURNING key
    )
    SELECT pg_notify('SCHEMA', encode(key, 'hex')) FROM done";

/// The clock is asked once, so what is there and for how long cannot contradict each other.
const READ: &str = "
    SELECT generation, value,
        (extract(epoch FROM expires_at - clock_timestamp()) * 1000000)::bigint
    FROM SCHEMA.ttl
    WHERE key = $1";

/// [`READ`] that waits for whoever is writing, for what seems to have expired. A lock is a write
/// to the server, which is why it is not taken for every read.
const SETTLE: &str = "
    SELECT generation, value,
        (extract(epoch FROM expires_at - clock_timestamp()) * 1000000)::bigint
    FROM SCHEMA.ttl
    WHERE key = $1
    FOR SHARE";

const LIST: &str = "
    SELECT generation, value,
        (extract(epoch FROM expires_at - clock_timestamp()) * 1000000)::bigint,
        key
    FROM SCHEMA.ttl
    ORDER BY key";

/// A conflict locks the row as it is now and judges that one, not the snapshot's. To zero there is
/// nothing to lift: no row is a generation of zero.
const LIFT: &str = "
    WITH done AS (
        INSERT INTO SCHEMA.ttl AS held (key, generation)
        SELECT $1::bytea, $2::bigint WHERE $2::bigint > 0
        ON CONFLICT (key) DO UPDATE SET generation = excluded.generation
            WHERE held.generation < excluded.generation
        RETURNING key
    )
    SELECT pg_notify('SCHEMA', encode(key, 'hex')) FROM done";

/// Rows are locked in the order of shards, so two of these wait for each other but never in a
/// circle; a commit locks only one fence. Fences that stay are written as they are: that is how
/// they are returned as they stand now, not as they stood in the snapshot.
const RAISE: &str = "
    INSERT INTO SCHEMA.fence AS held (seat, shard, epoch, seq)
    SELECT $1, number, $2, 0 FROM generate_series(0, $3::integer - 1) AS number ORDER BY number
    ON CONFLICT (seat, shard) DO UPDATE
        SET epoch = greatest(held.epoch, excluded.epoch),
            seq = CASE WHEN held.epoch < excluded.epoch THEN 0 ELSE held.seq END
    RETURNING shard, epoch, seq";

const FENCE: &str = "SELECT epoch, seq FROM SCHEMA.fence WHERE seat = $1 AND shard = $2";

/// The fence that is zero because there is none, made explicit so that a commit can move it.
const PLANT: &str = "
    INSERT INTO SCHEMA.fence (seat, shard, epoch, seq) VALUES ($1, $2, 0, 0)
    ON CONFLICT (seat, shard) DO NOTHING";

/// Moving the fence comes first and locks it; the rest happens only if it moved. It moves only if
/// it stood at the same place in the snapshot and stands there now, and since every commit moves
/// it, the snapshot by which records are replaced and deleted then is up to date.
///
/// What goes is looked up key by key: asked for all keys of a list at once, a planner that has no
/// statistics yet prefers to read the whole shard.
///
/// The fence that it tells is the snapshot's. If it did not move and was right there, someone
/// else moved it meanwhile: asked again, it tells where to.
const COMMIT: &str = "
    WITH moved AS (
        UPDATE SCHEMA.fence SET seq = seq + 1
        WHERE seat = $1 AND shard = $2 AND epoch = $3 AND seq = $4
        RETURNING seq
    ), put AS (
        INSERT INTO SCHEMA.record (seat, shard, key, value)
        SELECT $1, $2, change.key, change.value
        FROM unnest($5::bytea[], $6::bytea[]) AS change (key, value)
        WHERE EXISTS (SELECT FROM moved)
        ON CONFLICT (seat, shard, key) DO UPDATE SET value = excluded.value
    ), gone AS (
        DELETE FROM SCHEMA.record
        WHERE EXISTS (SELECT FROM moved) AND ctid = ANY (ARRAY(
            SELECT (SELECT ctid FROM SCHEMA.record WHERE seat = $1 AND shard = $2 AND key = change.key)
            FROM unnest($7::bytea[]) AS change (key)
        ))
    )
    SELECT EXISTS (SELECT FROM moved), epoch, seq
    FROM (VALUES (true)) AS always LEFT JOIN SCHEMA.fence ON seat = $1 AND shard = $2";

/// The lengths of values are known without reading them; only what is on the page is read.
const SCAN: &str = "
    SELECT key, value, found
    FROM (
        SELECT key, value,
            row_number() OVER (ORDER BY key) AS place,
            sum(length(key) + length(value)) OVER (ORDER BY key) AS bytes,
            count(*) OVER () AS found
        FROM (
            SELECT key, value FROM SCHEMA.record
            WHERE seat = $1 AND shard = $2 AND key >= $3
            ORDER BY key
            LIMIT $4::bigint + 1
        ) AS next
    ) AS page
    WHERE place <= $4::bigint AND (bytes <= $5::bigint OR place = 1)
    ORDER BY key";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_its_own_place() {
        for (place, query) in Query::ALL.into_iter().enumerate() {
            assert_eq!(query as usize, place, "{query:?}");
        }
    }
}
