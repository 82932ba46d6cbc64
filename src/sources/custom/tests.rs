//! Sources of a user's own, as a job reads them.

use regrow_runtime::JobGraph;

use super::*;
use crate::{SourceError, test_job::TestJob};

/// Counts up to some numbers.
struct Counts {
    up_to: Vec<u64>,
    listing: Listing,
}

struct Count(std::ops::Range<u64>);

impl Source for Counts {
    type Split = u64;
    type Reader = Count;

    fn discover(&self) -> Result<Vec<SourceSplit<u64>>, String> {
        if self.up_to.is_empty() {
            return Err("there is nothing to count to".to_owned());
        }
        let split = |&split| SourceSplit { split, size_bytes: split };
        Ok(self.up_to.iter().map(split).collect())
    }

    fn open(&self, split: u64) -> Result<Count, SourceError> {
        match split {
            13 => Err(SourceError::BadInput("13 brings ill luck".to_owned())),
            _ => Ok(Count(0..split)),
        }
    }

    fn listing(&self) -> Listing {
        self.listing
    }

    fn determinacy(&self) -> Determinacy {
        match self.listing {
            Listing::Durable => Determinacy::Determinate,
            Listing::OneListing => Determinacy::Indeterminate,
        }
    }
}

impl SplitReader for Count {
    type Item = u64;

    fn read(&mut self, out: &mut Emitter<u64>) -> Result<SplitProgress, SourceError> {
        while !out.is_full() {
            let Some(next) = self.0.next() else {
                out.add("splits", 1);
                return Ok(SplitProgress::End);
            };
            if next == 5_000 {
                Err(std::io::Error::other("the wire broke"))?;
            }
            out.emit(next);
        }
        Ok(SplitProgress::More)
    }
}

fn read(up_to: &[u64]) -> Result<Vec<u64>, TaskFailure> {
    let source = Counts { up_to: up_to.to_vec(), listing: Listing::Durable };
    let job = TestJob::new(1 << 20, |environment| environment.read_from(source).write_csv("/out"));
    let mut found: Vec<u64> = job.lines()?.iter().map(|line| line.parse().unwrap()).collect();
    found.sort_unstable();
    Ok(found)
}

#[test]
fn what_a_reader_counts_is_that_of_all_its_splits() {
    let source = Counts { up_to: vec![1_000, 0, 3, 7, 300], listing: Listing::Durable };
    let job = TestJob::new(1 << 20, |environment| environment.read_from(source).write_csv("/out"));
    let found = job.accumulators().unwrap();
    assert_eq!(found.get("splits"), Some(&regrow_protocol::Accumulator::Sum(5)));
}

#[test]
fn all_splits_are_read_to_their_end() {
    let mut expected: Vec<u64> = (0..1_000).chain(0..3).collect();
    expected.sort_unstable();
    assert_eq!(read(&[1_000, 0, 3]).unwrap(), expected);
}

#[test]
fn errors_say_whether_another_try_may_succeed() {
    let text = "there is nothing to count to";
    assert_eq!(read(&[]).unwrap_err(), TaskFailure::unrecoverable(text));
    assert_eq!(read(&[13]).unwrap_err(), TaskFailure::unrecoverable("13 brings ill luck"));
    assert_eq!(read(&[6_000]).unwrap_err(), TaskFailure::task("the wire broke"));
    let bad = std::io::Error::from(std::io::ErrorKind::InvalidData);
    assert!(matches!(SourceError::from(bad), SourceError::BadInput(_)));
}

#[test]
fn a_source_chooses_its_coordinator_and_says_whether_it_is_determinate() {
    let graph = |listing| -> JobGraph {
        let environment = Environment::new(None, false);
        let _ = environment.read_from(Counts { up_to: vec![1], listing }).write_csv("/out");
        environment.into_job().graph
    };
    let vertex = &graph(Listing::Durable).vertices[0];
    assert_eq!(vertex.coordinator, Some(CoordinatorKind::Source));
    assert_eq!(vertex.determinacy, Determinacy::Determinate);
    let vertex = &graph(Listing::OneListing).vertices[0];
    assert_eq!(vertex.coordinator, Some(CoordinatorKind::OneListingSource));
    assert_eq!(vertex.determinacy, Determinacy::Indeterminate);
}

#[test]
fn a_split_of_another_source_is_refused() {
    let source = Arc::new(Counts { up_to: vec![], listing: Listing::Durable });
    let mut reads = CustomReads { source, reader: None, emitter: Emitter::default() };
    let split = Split { id: SplitId(4), size_bytes: 1, payload: encode("text").unwrap() };
    let error = reads.open(&split).unwrap_err().to_string();
    assert!(error.contains("split 4") && error.contains("Counts"), "{error}");
}
