//! A queue that never moves what it holds.

use std::{
    collections::{VecDeque, vec_deque},
    iter::Flatten,
};

/// Bytes of one chunk, about: fits what allocators keep at hand.
const CHUNK_BYTES: usize = 16 << 10;

/// A queue that never moves what it holds: it grows by chunks. A `VecDeque` of ten thousand has
/// touched twice its memory on the way, copied from half to whole; on a thread that leads others
/// this shows.
#[derive(Clone, Debug)]
pub struct ChunkedQueue<T> {
    /// None is empty.
    chunks: VecDeque<VecDeque<T>>,
    len: usize,
}

impl<T> ChunkedQueue<T> {
    /// At least one, also of what is larger than a chunk.
    const CHUNK_LEN: usize = 1 + CHUNK_BYTES / (1 + size_of::<T>());

    /// Adds `item` at the end.
    pub fn push_back(&mut self, item: T) {
        self.len += 1;
        match self.chunks.back_mut() {
            Some(chunk) if chunk.len() < chunk.capacity() => chunk.push_back(item),
            Some(_) | None => {
                let mut chunk = VecDeque::with_capacity(Self::CHUNK_LEN);
                chunk.push_back(item);
                self.chunks.push_back(chunk);
            }
        }
    }

    /// Takes the first item if `wanted` says so.
    pub fn pop_front_if(&mut self, wanted: impl FnOnce(&T) -> bool) -> Option<T> {
        let chunk = self.chunks.front_mut()?;
        let item = chunk.pop_front_if(|item| wanted(item))?;
        self.len -= 1;
        if chunk.is_empty() {
            self.chunks.pop_front();
        }
        Some(item)
    }

    /// The first item.
    pub fn front(&self) -> Option<&T> {
        self.chunks.front()?.front()
    }

    /// All items, the first one first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.into_iter()
    }

    /// How many items there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl<T> Default for ChunkedQueue<T> {
    fn default() -> Self {
        Self { chunks: VecDeque::new(), len: 0 }
    }
}

impl<'a, T> IntoIterator for &'a ChunkedQueue<T> {
    type Item = &'a T;
    type IntoIter = Flatten<vec_deque::Iter<'a, VecDeque<T>>>;

    fn into_iter(self) -> Self::IntoIter {
        self.chunks.iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_come_out_as_they_went_in_over_many_chunks() {
        let mut queue = ChunkedQueue::default();
        let (mut next_in, mut next_out) = (0_u64, 0);
        for round in 0..300 {
            for _ in 0..round {
                queue.push_back(next_in);
                next_in += 1;
            }
            for _ in 0..round / 2 {
                assert_eq!(queue.front(), Some(&next_out));
                assert_eq!(queue.pop_front_if(|item| *item != next_out), None);
                assert_eq!(queue.pop_front_if(|_| true), Some(next_out));
                next_out += 1;
            }
            assert_eq!(queue.len() as u64, next_in - next_out);
            assert!(queue.iter().copied().eq(next_out..next_in));
        }
        assert!(queue.chunks.len() > 2);
        while queue.pop_front_if(|_| true).is_some() {}
        assert!(queue.is_empty() && queue.chunks.is_empty() && queue.front().is_none());
    }
}
