//! How often what took how long.

/// Parts of each doubling: what is read from it is wrong by at most an eighth.
const PARTS: u64 = 8;

/// Counts of lengths in milliseconds, in buckets that grow with what they hold. It costs what it has seen: a job has
/// few different lengths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Histogram {
    buckets: Vec<(u16, u32)>,
    count: u64,
    most: u64,
}

fn bucket(millis: u64) -> u16 {
    if millis < PARTS {
        return u16::try_from(millis).unwrap_or(0);
    }
    let doubling = u64::from(millis.ilog2() - PARTS.ilog2());
    let part = (millis >> doubling) - PARTS;
    u16::try_from(PARTS * (doubling + 1) + part).unwrap_or(u16::MAX)
}

/// The largest that is in the bucket.
fn end(bucket: u16) -> u64 {
    let bucket = u64::from(bucket);
    if bucket < PARTS {
        return bucket;
    }
    let (doubling, part) = (bucket / PARTS - 1, bucket % PARTS);
    let next = u128::from(PARTS + part + 1) << doubling;
    u64::try_from(next - 1).unwrap_or(u64::MAX)
}

impl Histogram {
    pub(super) fn add(&mut self, millis: u64) {
        let bucket = bucket(millis);
        match self.buckets.binary_search_by_key(&bucket, |(at, _)| *at) {
            Ok(at) => self.buckets[at].1 = self.buckets[at].1.saturating_add(1),
            Err(at) => self.buckets.insert(at, (bucket, 1)),
        }
        self.count += 1;
        self.most = self.most.max(millis);
    }

    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    /// What so many thousandths of all are not above.
    pub(super) fn permille(&self, permille: u64) -> u64 {
        let wanted = self.count.saturating_mul(permille).div_ceil(1_000).max(1);
        let mut seen = 0;
        for (bucket, count) in &self.buckets {
            seen += u64::from(*count);
            if seen >= wanted {
                return end(*bucket).min(self.most);
            }
        }
        self.most
    }
}
