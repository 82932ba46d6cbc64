//! Memory that goes from one attempt to the next.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes of one chunk.
pub(crate) const CHUNK_BYTES: usize = 256 << 10;

/// Most bytes that are kept while no attempt uses them.
const POOL_BYTES_MAX: usize = 64 << 20;

/// Empty chunks of memory, kept for the next attempt of a data directory: memory that the system
/// has to provide anew costs more than the copy into it.
#[derive(Debug, Default)]
pub(crate) struct ChunkPool(Mutex<Vec<Vec<u8>>>);

impl ChunkPool {
    /// An empty chunk with room for [`CHUNK_BYTES`].
    pub(crate) fn take(&self) -> Vec<u8> {
        self.lock().pop().unwrap_or_else(|| Vec::with_capacity(CHUNK_BYTES))
    }

    /// Keeps chunks, as many as fit.
    pub(crate) fn give_back(&self, chunks: impl Iterator<Item = Vec<u8>>) {
        let mut kept = self.lock();
        let room = (POOL_BYTES_MAX / CHUNK_BYTES).saturating_sub(kept.len());
        kept.extend(chunks.take(room).map(|mut chunk| {
            chunk.clear();
            chunk
        }));
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pool_keeps_empty_chunks_up_to_its_limit() {
        let pool = ChunkPool::default();
        let most = POOL_BYTES_MAX / CHUNK_BYTES;
        pool.give_back((0..most + 5).map(|_| vec![1]));
        assert_eq!(pool.lock().len(), most);
        assert!(pool.take().is_empty());
        assert_eq!(pool.lock().len(), most - 1);
    }
}
