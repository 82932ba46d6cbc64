//! The events of a job in pages that fit into frames.

use regrow_protocol::RunId;
use regrow_runtime::decode_batch;
use regrow_store::{LogPart, LogPlace};
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;

use crate::archive::{ArchivePlace, ArchivedPart};

/// Bytes of events that are read for one page at most, unless a single batch has more.
pub(crate) const PAGE_BYTES_MAX: usize = 4 << 20;

/// Longest batch that is sent.
const BATCH_BYTES_MAX: usize = 32 << 20;

/// Some events of a job, as batches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventPage {
    /// Events between the page before and this one that a snapshot replaced meanwhile: the first of
    /// them, and the first behind them.
    #[serde(default)]
    pub replaced: Option<(u64, u64)>,
    /// Batches in order, as the log holds them.
    pub batches: Vec<ByteBuf>,
    /// Number of the event from which on to ask next; none at the end.
    pub next: Option<u64>,
    /// Where the log is damaged behind these, or cannot be sent. It may go on behind that.
    pub damage: Option<String>,
    /// Where the next page begins; nothing before it is read again.
    #[serde(default)]
    pub place: Option<EventPlace>,
}

/// Where a page of events begins: exact, whatever happens to the log between two pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventPlace {
    /// The run whose events they are.
    pub(crate) run: RunId,
    spot: Spot,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Spot {
    /// Before a batch of the log.
    Log {
        segment: u64,
        sequence: u64,
        /// CRC32C of the last batch that was shown: by it the place is found in the archive.
        before: Option<u32>,
    },
    /// In the file of an archived job.
    Archive { offset: u64 },
}

/// Which events are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EventQuestion {
    /// Number of the first event.
    from: u64,
    /// Where it is; none to look for it.
    place: Option<EventPlace>,
    /// Whether batches are passed over that end before the first event, because its place is looked
    /// for. From a known place on all counts: a batch that was written again has old numbers.
    seeks: bool,
}

/// What came of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// A page.
    Page(EventPage),
    /// What was read ends before the first event: ask this next.
    Further(EventQuestion),
}

/// What was read of a log or an archive.
struct Part {
    batches: Vec<Vec<u8>>,
    /// What is wrong behind the last one.
    damage: Option<String>,
    /// The batch behind the damage, if it is known.
    behind: Option<Vec<u8>>,
    next: Option<Spot>,
    /// Whether events before the first batch are there no more.
    replaced: bool,
}

impl EventPage {
    /// Whether it says nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.batches.is_empty() && self.damage.is_none() && self.next.is_none()
    }
}

impl EventQuestion {
    /// Events from number `from` on, which lies at `place`.
    pub(crate) fn new(from: u64, place: Option<EventPlace>) -> Self {
        Self { from, place, seeks: place.is_none() }
    }

    /// Whether the log of this run may have the answer.
    pub(crate) fn may_be_in_log(&self, run: RunId) -> bool {
        self.place.is_none_or(|place| place.run == run && matches!(place.spot, Spot::Log { .. }))
    }

    /// The run, if it is about one.
    pub(crate) fn run(&self) -> Option<RunId> {
        self.place.map(|place| place.run)
    }

    /// From where on the log is to be read.
    pub(crate) fn in_log(&self) -> LogPlace {
        match self.place {
            Some(EventPlace { spot: Spot::Log { segment, sequence, .. }, .. }) => {
                LogPlace { segment, sequence }
            }
            Some(EventPlace { spot: Spot::Archive { .. }, .. }) | None => LogPlace::default(),
        }
    }

    /// From where on the archive is to be read.
    pub(crate) fn in_archive(&self) -> ArchivePlace {
        match self.place.map(|place| place.spot) {
            Some(Spot::Archive { offset }) => ArchivePlace::At(offset),
            Some(Spot::Log { before: Some(checksum), .. }) => ArchivePlace::Behind(checksum),
            Some(Spot::Log { before: None, .. }) | None => ArchivePlace::Beginning,
        }
    }
}

impl Reading {
    /// Of a part of the log of `run`.
    pub(crate) fn of_log(run: RunId, part: LogPart, question: EventQuestion) -> Self {
        let asked = question.in_log();
        let at = |batch: &regrow_store::LogBatch| LogPlace {
            segment: batch.position.segment,
            sequence: batch.position.sequence,
        };
        let replaced = !question.seeks && part.start > asked.sequence;
        let mut batches = part.log.batches;
        // A page ends at a damage, so that it is told where it lies.
        let cut = batches.iter().position(|batch| batch.follows_damage && at(batch) != asked);
        let behind = cut.map(|cut| batches.split_off(cut));
        let behind = behind.and_then(|behind| behind.into_iter().next());
        let next = behind.as_ref().map(at).or(part.next);
        let before = batches.last().map(|batch| crc32c::crc32c(&batch.bytes));
        let spot = |LogPlace { segment, sequence }| Spot::Log { segment, sequence, before };
        let part = Part {
            batches: batches.into_iter().map(|batch| batch.bytes).collect(),
            damage: part.log.damage.map(|damage| damage.to_string()),
            behind: behind.map(|batch| batch.bytes),
            next: next.map(spot),
            replaced,
        };
        Self::of(run, part, question)
    }

    /// Of a part of an archived job.
    pub(crate) fn of_archive(part: ArchivedPart, mut question: EventQuestion) -> Self {
        // A batch that was shown, and is not there, was replaced; its number is all that is known.
        question.seeks |= part.missed;
        let read = Part {
            batches: part.batches,
            damage: None,
            behind: None,
            next: part.next.map(|offset| Spot::Archive { offset }),
            replaced: part.missed,
        };
        Self::of(part.run, read, question)
    }

    fn of(run: RunId, part: Part, question: EventQuestion) -> Self {
        let EventQuestion { from, seeks, .. } = question;
        let mut page = EventPage { damage: part.damage, ..EventPage::default() };
        let mut next = from;
        for batch in part.batches {
            let Ok(decoded) = decode_batch(&batch) else {
                // Who asks finds the damage in it.
                page.batches.push(ByteBuf::from(batch));
                page.damage = None;
                return Self::Page(page);
            };
            let first = decoded.first.0;
            let end = first.saturating_add(decoded.events.len() as u64);
            if seeks && end <= from {
                continue;
            }
            if part.replaced && page.batches.is_empty() && first > from {
                page.replaced = Some((from, first));
            }
            next = end;
            if batch.len() > BATCH_BYTES_MAX {
                // It is alone in what was read.
                page.damage = Some(too_long(first, batch.len()));
                continue;
            }
            page.batches.push(ByteBuf::from(batch));
        }
        if let Some(behind) = part.behind.and_then(|batch| decode_batch(&batch).ok()) {
            next = next.max(behind.first.0);
        }
        let Some(spot) = part.next else { return Self::Page(page) };
        let place = Some(EventPlace { run, spot });
        if seeks && from > 0 && page.batches.is_empty() && next <= from {
            return Self::Further(EventQuestion { from, place, seeks });
        }
        (page.next, page.place) = (Some(next), place);
        Self::Page(page)
    }
}

fn too_long(first: u64, bytes: usize) -> String {
    format!(
        "the batch of event {first} has {bytes} bytes, too many to be sent; look into the store with \
         `store dump` while no JobManager runs"
    )
}

#[cfg(test)]
mod tests {
    use regrow_protocol::{Accumulators, Epoch, JobId};
    use regrow_runtime::{JobEvent, JobOutcome, JobState, Lsn, encode_batch};
    use regrow_store::{BatchPosition, EventStore, MemoryStore};

    use super::*;
    use crate::archive::{Archive, ArchivedJob};

    const RUN: RunId = RunId::from_bits(1);
    const EPOCH: Epoch = Epoch::new(1, 0);

    fn batch(first: u64, count: usize, bytes: usize) -> Vec<u8> {
        let event = JobEvent::FailureDecided { error: "x".repeat(bytes) };
        encode_batch(Epoch::new(1, 0), Lsn(first), &vec![event; count]).unwrap()
    }

    fn store(batches: impl IntoIterator<Item = Vec<u8>>) -> (MemoryStore, Vec<BatchPosition>) {
        let mut store = MemoryStore::new();
        store.open_log(RUN, EPOCH).unwrap();
        let append = |batch: Vec<u8>| store.append(RUN, EPOCH, &batch).unwrap();
        let positions = batches.into_iter().map(append).collect();
        (store, positions)
    }

    /// Asks as a client does.
    fn page(store: &mut MemoryStore, mut question: EventQuestion) -> EventPage {
        loop {
            let part = store.read_part(RUN, question.in_log(), PAGE_BYTES_MAX).unwrap();
            match Reading::of_log(RUN, part, question) {
                Reading::Page(page) => return page,
                Reading::Further(next) => question = next,
            }
        }
    }

    fn next(page: &EventPage) -> Option<EventQuestion> {
        page.next.map(|from| EventQuestion::new(from, page.place))
    }

    fn all(
        store: &mut MemoryStore,
        next: impl Fn(&EventPage) -> Option<EventQuestion>,
    ) -> Vec<EventPage> {
        let (mut question, mut pages) = (Some(EventQuestion::new(0, None)), Vec::new());
        while let Some(asked) = question {
            let page = page(store, asked);
            question = next(&page);
            pages.push(page);
        }
        pages
    }

    fn batches(pages: Vec<EventPage>) -> Vec<Vec<u8>> {
        pages.into_iter().flat_map(|page| page.batches).map(ByteBuf::into_vec).collect()
    }

    #[test]
    fn pages_of_events_have_all_of_them_once() {
        let log: Vec<Vec<u8>> = (0..10).map(|index| batch(index * 3, 3, 500_000)).collect();
        let (mut store, _) = store(log.clone());
        let pages = all(&mut store, next);
        assert!(pages.len() > 3, "{}", pages.len());
        let bytes = |page: &EventPage| page.batches.iter().map(|batch| batch.len()).sum::<usize>();
        assert!(pages.iter().all(|page| bytes(page) <= PAGE_BYTES_MAX && page.damage.is_none()));
        assert_eq!(batches(pages), log);
        let numbers_only = |page: &EventPage| page.next.map(|from| EventQuestion::new(from, None));
        assert_eq!(batches(all(&mut store, numbers_only)), log, "of a client that knows no places");
    }

    #[test]
    fn what_was_written_again_under_old_numbers_is_not_lost_between_pages() {
        // A later life had not read the second batch: what it wrote has the same numbers.
        let log = [batch(0, 1, 9), batch(1, 3, 1_400_000), batch(1, 1, 9), batch(2, 1, 9)];
        let (mut store, _) = store(log.clone());
        let pages = all(&mut store, next);
        assert_eq!((pages.len(), batches(pages)), (3, log.to_vec()));
    }

    #[test]
    fn what_a_snapshot_replaces_between_two_pages_is_told() {
        let (mut store, positions) = store((0..9).map(|index| batch(index * 2, 2, 1_500_000)));
        let first = page(&mut store, EventQuestion::new(0, None));
        assert_eq!((first.batches.len(), first.next), (1, Some(2)));
        store.remove_before(RUN, EPOCH, positions[7]).unwrap();
        let second = page(&mut store, next(&first).unwrap());
        assert_eq!((second.replaced, second.batches.len()), (Some((2, 14)), 1));
        let third = page(&mut store, next(&second).unwrap());
        assert_eq!((third.replaced, third.next), (None, None));
        let afresh = page(&mut store, EventQuestion::new(0, None));
        assert_eq!(afresh.replaced, None, "it has lost nothing that it was to hear");
    }

    #[test]
    fn a_damage_is_told_once_and_where_it_lies() {
        let (mut store, _) = store((0..6).map(|index| batch(index, 1, 9)));
        store.damage_batch(RUN, 0);
        store.damage_batch(RUN, 3);
        let pages = all(&mut store, next);
        let told: Vec<(usize, bool, bool)> = pages
            .iter()
            .map(|page| (page.batches.len(), page.damage.is_some(), page.replaced.is_some()))
            .collect();
        assert_eq!(told, [(0, true, false), (2, true, false), (2, false, false)]);
        store.damage_batch(RUN, 5);
        assert!(all(&mut store, next).pop().unwrap().damage.is_some(), "nothing is behind it");
    }

    /// What the archive says to a reader of the log that has read a page, if it holds `kept`.
    fn in_archive(kept: &[Vec<u8>], question: EventQuestion) -> EventPage {
        let root = tempfile::tempdir().unwrap();
        let archive = Archive::new(root.path());
        let job = JobId::from_bits(1);
        let outcome = JobOutcome {
            job: job.clone(),
            run: RUN,
            state: JobState::Finished,
            recoveries: 0,
            error: None,
            accumulators: Accumulators::default(),
        };
        let ended = ArchivedJob {
            outcome,
            job_name: "sort".to_owned(),
            arguments: Vec::new(),
            submission: None,
            reports: Vec::new(),
        };
        archive.write(&ended, kept).unwrap();
        let part = archive.read_part(&job, question.in_archive(), usize::MAX).unwrap().unwrap();
        let Reading::Page(page) = Reading::of_archive(part, question) else {
            panic!("it is there")
        };
        page
    }

    #[test]
    fn who_reads_a_log_goes_on_in_the_archive_where_it_was() {
        // Under one number twice: by numbers alone the place would not be found.
        let log = [batch(0, 2, 1_500_000), batch(2, 1, 4_200_000), batch(2, 2, 9), batch(4, 1, 9)];
        let (mut store, _) = store(log.clone());
        let first = page(&mut store, EventQuestion::new(0, None));
        let second = page(&mut store, next(&first).unwrap());
        assert_eq!((first.batches.len(), second.batches.len()), (1, 1));
        let rest = in_archive(&log, next(&second).unwrap());
        assert_eq!((batches(vec![rest.clone()]), rest.replaced), (log[2..].to_vec(), None));
        let rest = in_archive(&log[3..], next(&first).unwrap());
        assert_eq!((rest.batches.len(), rest.replaced), (1, Some((2, 4))), "it was compacted");
    }

    #[test]
    fn what_cannot_be_sent_or_read_is_told() {
        let (mut unreadable, _) = store([batch(0, 1, 9), vec![7; 9], batch(1, 1, 9)]);
        let first = page(&mut unreadable, EventQuestion::new(0, None));
        assert_eq!((first.batches.len(), first.next), (2, None), "who decodes it says what it is");
        let (mut long, _) = store([batch(0, 1, BATCH_BYTES_MAX), batch(1, 1, 9)]);
        let pages = all(&mut long, next);
        assert!(pages[0].damage.as_ref().unwrap().contains("store dump"));
        assert_eq!(batches(pages), [batch(1, 1, 9)], "what is behind it is shown");
    }
}
