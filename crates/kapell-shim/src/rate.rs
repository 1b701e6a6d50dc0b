//! How fast a log may grow.

/// A bucket that fills with so many bytes a second, up to those of one second.
pub(crate) struct Rate {
    per_second: u64,
    /// In thousandths of a byte.
    filled: u64,
    at_ms: u64,
    /// Something was dropped: nothing is kept until a part of the bucket is full again, so that what was
    /// dropped is told a few times a second and not before every line.
    is_over: bool,
}

impl Rate {
    pub(crate) fn new(per_second: u64, now_ms: u64) -> Self {
        let per_second = per_second.min(u64::MAX / 2000);
        Self { per_second, filled: per_second * 1000, at_ms: now_ms, is_over: false }
    }

    /// How much of it may be kept: whole lines, if it is not all.
    pub(crate) fn take(&mut self, text: &[u8], now_ms: u64) -> usize {
        let passed = now_ms.saturating_sub(self.at_ms).min(1000);
        self.filled = (self.filled + passed * self.per_second).min(self.per_second * 1000);
        self.at_ms = now_ms;
        if self.is_over && self.filled < self.per_second * 250 {
            return 0;
        }
        let room = usize::try_from(self.filled / 1000).unwrap_or(usize::MAX);
        self.is_over = text.len() > room;
        let kept = if self.is_over {
            let line = text[..room].iter().rposition(|byte| *byte == b'\n');
            line.map_or(room, |at| at + 1)
        } else {
            text.len()
        };
        self.filled -= kept as u64 * 1000;
        kept
    }
}
