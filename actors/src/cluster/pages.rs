//! The recovery reports of a job in pages that fit into frames.

use regrow_runtime::RecoveryReport;
use serde::{Deserialize, Serialize};

/// Lines of recovery reports in one page at most.
const PAGE_LINES_MAX: usize = 10_000;

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
    use regrow_runtime::{Fate, FateLine, RecoveryPhases};

    use super::*;

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
