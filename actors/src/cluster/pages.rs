//! What is long, such as a log, in pages that fit into frames.

use regrow_runtime::{RecoveryReport, decode_batch};
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;

/// Bytes of events in one page at most, unless a single batch has more.
const PAGE_BYTES_MAX: usize = 4 << 20;

/// Longest batch that is sent.
const BATCH_BYTES_MAX: usize = 32 << 20;

/// Lines of recovery reports in one page at most.
const PAGE_LINES_MAX: usize = 10_000;

/// Some events of a job, as batches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventPage {
    /// Batches in order, as the log holds them.
    pub batches: Vec<ByteBuf>,
    /// Number of the event from which on to ask next; none at the end.
    pub next: Option<u64>,
    /// Where the log is damaged behind these, or cannot be sent.
    pub damage: Option<String>,
}

/// Some lines of the recovery reports of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportPage {
    /// Reports, of which the first and the last may have some of their lines only.
    pub reports: Vec<RecoveryReport>,
    /// Where to go on; none at the end.
    pub next: Option<ReportPlace>,
}

/// A place in the recovery reports of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportPlace {
    /// Which report, from 0.
    pub report: usize,
    /// Which of its lines, from 0.
    pub line: usize,
}

impl EventPage {
    /// The page of a log that begins with event number `from`. `damage` is what is wrong behind the
    /// last batch.
    pub(crate) fn of(batches: Vec<Vec<u8>>, damage: Option<String>, from: u64) -> Self {
        let (mut page, mut bytes) = (Self::default(), 0);
        for batch in batches {
            let Ok(decoded) = decode_batch(&batch) else {
                // Who asks finds the damage in it.
                page.batches.push(ByteBuf::from(batch));
                return page;
            };
            let (first, count) = (decoded.first.0, decoded.events.len() as u64);
            if first.saturating_add(count) <= from {
                continue;
            }
            if batch.len() > BATCH_BYTES_MAX {
                page.damage = Some(format!(
                    "the batch of event {first} has {} bytes, too many to be sent; look \
                     into the store with `store dump` while no JobManager runs",
                    batch.len()
                ));
                return page;
            }
            bytes += batch.len();
            if bytes > PAGE_BYTES_MAX && !page.batches.is_empty() {
                page.next = Some(first);
                return page;
            }
            page.batches.push(ByteBuf::from(batch));
        }
        page.damage = damage;
        page
    }
}

impl ReportPage {
    /// The page of `reports` that begins at `from`.
    pub(crate) fn of(reports: Vec<RecoveryReport>, from: ReportPlace) -> Self {
        let (mut page, mut room) = (Self::default(), PAGE_LINES_MAX);
        for (index, mut report) in reports.into_iter().enumerate().skip(from.report) {
            let begin = if index == from.report { from.line.min(report.lines.len()) } else { 0 };
            if room == 0 {
                page.next = Some(ReportPlace { report: index, line: begin });
                return page;
            }
            let end = report.lines.len().min(begin + room);
            let rest = end < report.lines.len();
            report.lines = report.lines.drain(begin..end).collect();
            room -= report.lines.len();
            page.reports.push(report);
            if rest {
                page.next = Some(ReportPlace { report: index, line: end });
                return page;
            }
        }
        page
    }

    /// Adds a page to those before it, so that reports become whole.
    pub(crate) fn add_to(self, all: &mut Vec<RecoveryReport>) {
        for report in self.reports {
            match all.last_mut() {
                Some(last) if last.epoch == report.epoch => last.lines.extend(report.lines),
                _ => all.push(report),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use regrow_protocol::{Epoch, ExecutionVertexId, JobVertexId};
    use regrow_runtime::{Fate, FateLine, JobEvent, Lsn, RecoveryPhases, encode_batch};

    use super::*;

    fn batch(first: u64, count: usize, bytes: usize) -> Vec<u8> {
        let event = JobEvent::FailureDecided { error: "x".repeat(bytes) };
        encode_batch(Epoch::new(1, 0), Lsn(first), &vec![event; count]).unwrap()
    }

    #[test]
    fn pages_of_events_have_all_of_them_once() {
        let log: Vec<Vec<u8>> = (0..10).map(|index| batch(index * 3, 3, 500_000)).collect();
        let (mut from, mut heard, mut pages) = (Some(0), Vec::new(), 0);
        while let Some(place) = from {
            let page = EventPage::of(log.clone(), Some("torn".to_owned()), place);
            assert_eq!(page.damage.is_some(), page.next.is_none());
            heard.extend(page.batches.into_iter().map(ByteBuf::into_vec));
            (from, pages) = (page.next, pages + 1);
        }
        assert_eq!(heard, log);
        assert!(pages > 3, "{pages}");
    }

    #[test]
    fn a_log_that_was_compacted_meanwhile_goes_on_with_what_it_has() {
        let page = EventPage::of(vec![batch(40, 1, 9), batch(41, 2, 9)], None, 7);
        assert_eq!((page.batches.len(), page.next), (2, None));
        let page = EventPage::of(vec![batch(40, 1, 9), batch(41, 2, 9)], None, 42);
        assert_eq!(page.batches, [ByteBuf::from(batch(41, 2, 9))], "it is part of this batch");
    }

    #[test]
    fn what_cannot_be_sent_or_read_is_told() {
        let page = EventPage::of(vec![batch(0, 1, 9), vec![7; 9], batch(1, 1, 9)], None, 0);
        assert_eq!(page.batches.len(), 2, "whoever decodes it says what is wrong");
        let page = EventPage::of(vec![batch(0, 1, BATCH_BYTES_MAX), batch(1, 1, 9)], None, 0);
        assert!(page.batches.is_empty() && page.damage.unwrap().contains("store dump"));
    }

    fn recovery(life: u32, count: u32) -> RecoveryReport {
        let fate = |subtask| FateLine {
            subtask: ExecutionVertexId { vertex: JobVertexId(0), subtask },
            attempt: None,
            fate: Fate::Rerun,
            reason: "had not finished".to_owned(),
        };
        RecoveryReport {
            epoch: Epoch::new(1, life),
            previous_end: String::new(),
            lines: (0..count).map(fate).collect(),
            log_damage: None,
            phases: RecoveryPhases::default(),
        }
    }

    #[test]
    fn pages_of_reports_make_up_whole_reports() {
        let reports = vec![
            recovery(1, 4_000),
            recovery(2, 0),
            recovery(3, 25_000),
            recovery(4, 0),
            recovery(5, 6_000),
        ];
        let (mut from, mut all, mut pages) = (Some(ReportPlace::default()), Vec::new(), 0);
        while let Some(place) = from {
            let page = ReportPage::of(reports.clone(), place);
            assert!(page.reports.iter().map(|report| report.lines.len()).sum::<usize>() <= 10_000);
            from = page.next;
            page.add_to(&mut all);
            pages += 1;
        }
        assert_eq!(all, reports);
        assert_eq!(pages, 4);
    }
}
