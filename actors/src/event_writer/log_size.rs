//! When a log has outgrown its last snapshot.

/// A log is compacted when what follows its last snapshot is this many times as large.
const GROWTH_MAX: u64 = 4;

/// A log below this is never compacted: rewriting it would cost more than reading it.
const WORTHWHILE_BYTES: u64 = 8 << 20;

/// How large a log is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogSize {
    /// Bytes of the last snapshot; 0 without one.
    pub snapshot_bytes: u64,
    /// Bytes after it.
    pub later_bytes: u64,
    /// Whether a snapshot was asked for.
    asked: bool,
}

impl LogSize {
    /// A log with a snapshot of `snapshot_bytes`, 0 for none, and `later_bytes` after it.
    pub(crate) const fn new(snapshot_bytes: u64, later_bytes: u64) -> Self {
        Self { snapshot_bytes, later_bytes, asked: false }
    }

    /// Notes a batch of `bytes`; says, once per snapshot, whether the log is now too large.
    pub(super) fn note(&mut self, bytes: u64, is_snapshot: bool) -> bool {
        if is_snapshot {
            *self = Self::new(bytes, 0);
            return false;
        }
        self.later_bytes = self.later_bytes.saturating_add(bytes);
        let limit = WORTHWHILE_BYTES.max(self.snapshot_bytes.saturating_mul(GROWTH_MAX));
        let outgrown = self.later_bytes > limit && !self.asked;
        self.asked |= outgrown;
        outgrown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1 << 20;

    #[test]
    fn rule_3_8_a_log_asks_once_per_snapshot_and_in_proportion_to_it() {
        let mut size = LogSize::default();
        let asked: Vec<bool> = (0..10).map(|_| size.note(MB, false)).collect();
        assert_eq!(asked.iter().position(|asked| *asked), Some(8));
        assert_eq!(asked.iter().filter(|asked| **asked).count(), 1);

        assert!(!size.note(3 * MB, true));
        let asked: Vec<bool> = (0..20).map(|_| size.note(MB, false)).collect();
        assert_eq!(asked.iter().position(|asked| *asked), Some(12));
    }
}
