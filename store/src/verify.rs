//! Reads a whole store and says what is in it.

use regrow_protocol::RunId;

use crate::{EventStore, LogDamage, StoreError};

/// What was found of one run's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunReport {
    /// Whose log.
    pub run: RunId,
    /// Count of valid batches.
    pub batches: u64,
    /// Bytes of the valid batches.
    pub bytes: u64,
    /// The first thing that is wrong, if anything.
    pub damage: Option<LogDamage>,
}

/// Reads the logs of all runs, ascending by run. Holds one log in memory at a time.
///
/// # Errors
/// When the store itself cannot be read; a damage in one log is part of its report.
pub fn verify(store: &mut dyn EventStore) -> Result<Vec<RunReport>, StoreError> {
    let mut reports = Vec::new();
    for run in store.runs()? {
        let log = store.read_log(run)?;
        reports.push(RunReport {
            run,
            batches: log.batches.len() as u64,
            bytes: log.batches.iter().map(|batch| batch.bytes.len() as u64).sum(),
            damage: log.damage,
        });
    }
    Ok(reports)
}

#[cfg(test)]
mod tests {
    use regrow_protocol::Epoch;

    use super::*;
    use crate::MemoryStore;

    #[test]
    fn a_report_counts_what_is_valid_and_names_what_is_not() {
        let mut store = MemoryStore::new();
        let (run, epoch) = (RunId::from_bits(1), Epoch::new(1, 0));
        store.open_log(run, epoch).unwrap();
        for batch in [&b"abc"[..], b"de", b"f"] {
            store.append(run, epoch, batch).unwrap();
        }
        store.damage_batch(run, 1);
        let reports = verify(&mut store).unwrap();
        assert_eq!((reports[0].batches, reports[0].bytes), (2, 4));
        assert_eq!(reports[0].damage.as_ref().unwrap().sequence, 1);
    }
}
