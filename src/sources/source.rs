//! Sources of a user's own.

/// Whether a split has more records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SplitProgress {
    /// It may have: read on.
    More,
    /// It has none.
    End,
}
