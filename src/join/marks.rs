//! Marks on rows.

/// Marks on rows by their number: a bit each.
#[derive(Debug, Default)]
pub(super) struct Marks(Vec<u64>);

impl Marks {
    /// Marks a row.
    pub(super) fn set(&mut self, row: u64) {
        let (word, bit) = place(row);
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= bit;
    }

    /// Whether a row is marked.
    pub(super) fn has(&self, row: u64) -> bool {
        let (word, bit) = place(row);
        self.0.get(word).is_some_and(|word| word & bit != 0)
    }
}

fn place(row: u64) -> (usize, u64) {
    (usize::try_from(row / 64).unwrap_or(usize::MAX), 1 << (row % 64))
}
