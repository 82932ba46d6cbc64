//! Where an attempt's splits come from: pinned ones are served here, others are asked for.

use std::collections::VecDeque;

use regrow_protocol::{PinnedSplits, Split, SplitId, TaskFailure};

use crate::task::NextSplit;

/// The splits of one attempt: those it read, in order, and the next one.
#[derive(Debug)]
pub(super) struct SplitSource {
    origin: Origin,
    next: Option<NextSplit>,
    read: Vec<SplitId>,
}

#[derive(Debug)]
enum Origin {
    None,
    OnRequest { requests: u64 },
    Pinned(VecDeque<Split>),
}

/// What a task that waits for a split must do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Nothing: the answer is there.
    Ready,
    /// Wait for the answer to this request.
    Request(u64),
}

impl SplitSource {
    pub(super) fn new(splits: &PinnedSplits) -> Self {
        let origin = match splits {
            PinnedSplits::None => Origin::None,
            PinnedSplits::OnRequest => Origin::OnRequest { requests: 0 },
            PinnedSplits::Exactly(splits) => Origin::Pinned(splits.iter().cloned().collect()),
        };
        Self { origin, next: None, read: Vec::new() }
    }

    /// Begins to wait for the next split.
    pub(super) fn next(&mut self) -> Result<Wait, TaskFailure> {
        if self.next.is_some() {
            return Err(TaskFailure::unrecoverable(
                "the task waits for a split but has not taken the one that is there",
            ));
        }
        match &mut self.origin {
            Origin::None => Err(TaskFailure::unrecoverable(
                "the task waits for a split but its vertex has no source",
            )),
            Origin::OnRequest { requests } => {
                let request = *requests;
                *requests += 1;
                Ok(Wait::Request(request))
            }
            Origin::Pinned(splits) => {
                let split = splits.pop_front();
                self.deliver(split);
                Ok(Wait::Ready)
            }
        }
    }

    /// The answer: it counts as read from here on, because its coordinator counts it so.
    pub(super) fn deliver(&mut self, split: Option<Split>) {
        self.next = Some(match split {
            Some(split) => {
                self.read.push(split.id);
                NextSplit::Split(split)
            }
            None => NextSplit::End,
        });
    }

    pub(super) fn take(&mut self) -> Option<NextSplit> {
        self.next.take()
    }

    pub(super) fn into_read(self) -> Vec<SplitId> {
        self.read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(id: u32) -> Split {
        Split { id: SplitId(id), size_bytes: 1, payload: Vec::new() }
    }

    #[test]
    fn rule_5_6_pinned_splits_are_served_in_order_without_asking() {
        let mut source = SplitSource::new(&PinnedSplits::Exactly(vec![split(4), split(2)]));
        for expected in [NextSplit::Split(split(4)), NextSplit::Split(split(2)), NextSplit::End] {
            assert_eq!(source.next(), Ok(Wait::Ready));
            assert_eq!(source.take(), Some(expected));
            assert_eq!(source.take(), None);
        }
        assert_eq!(source.into_read(), [SplitId(4), SplitId(2)]);
    }

    #[test]
    fn requests_are_numbered_and_their_answers_recorded() {
        let mut source = SplitSource::new(&PinnedSplits::OnRequest);
        assert_eq!(source.next(), Ok(Wait::Request(0)));
        assert_eq!(source.take(), None);
        source.deliver(Some(split(7)));
        assert_eq!(source.take(), Some(NextSplit::Split(split(7))));
        assert_eq!(source.next(), Ok(Wait::Request(1)));
        source.deliver(None);
        assert_eq!(source.take(), Some(NextSplit::End));
        assert_eq!(source.into_read(), [SplitId(7)]);
    }

    #[test]
    fn a_task_that_drops_a_split_or_has_no_source_fails_for_good() {
        let mut source = SplitSource::new(&PinnedSplits::OnRequest);
        source.next().unwrap();
        source.deliver(Some(split(7)));
        assert!(matches!(source.next(), Err(TaskFailure::Unrecoverable { .. })));
        let mut none = SplitSource::new(&PinnedSplits::None);
        assert!(matches!(none.next(), Err(TaskFailure::Unrecoverable { .. })));
    }
}
