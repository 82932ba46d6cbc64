//! What a person is told of an event store that was lost.

use std::{fmt, path::PathBuf};

use serde::{Deserialize, Serialize};

/// An event store that was lost, and what is left of its run. Its text is for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreLoss {
    /// Where the store was.
    pub path: PathBuf,
    /// What became of it.
    pub how: StoreLossKind,
    /// What stands in for it.
    pub stand_in: StandIn,
}

/// What stands in for a store that was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StandIn {
    /// The archive: the run has ended, and is only cleaned up.
    Archive,
    /// The manifest in the output directory: the output is published, and nothing runs again.
    Manifest,
    /// That many finish records.
    FinishRecords(usize),
}

/// How an event store was lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StoreLossKind {
    /// Somebody removed it.
    Gone,
    /// It was in the memory of a process that ended.
    InMemory,
    /// It is damaged; a new one takes its place.
    Damaged {
        /// What was found, with the position.
        reason: String,
        /// Where it is kept until the run is over.
        aside: PathBuf,
        /// Older damaged ones that were removed, because so many are not kept.
        removed: Vec<PathBuf>,
    },
}

impl fmt::Display for StoreLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.how {
            StoreLossKind::Gone => write!(f, "the event store {} is gone", self.path.display())?,
            StoreLossKind::InMemory => f.write_str("the events of the run were in memory")?,
            StoreLossKind::Damaged { reason, aside, removed } => {
                write!(f, "{reason}; until the run is over, it is kept as {}", aside.display())?;
                for path in removed {
                    write!(f, ", for which the older {} was removed", path.display())?;
                }
            }
        }
        match self.stand_in {
            StandIn::Archive => f.write_str(": the run had ended, which the archive knows"),
            StandIn::Manifest => {
                f.write_str(": the output, which was being published, is published to its end")
            }
            StandIn::FinishRecords(0) => {
                f.write_str(": no finish record is left, so the job begins again")
            }
            StandIn::FinishRecords(count) => write!(
                f,
                ": what the finish records prove ({count} are there) is kept, the rest runs again"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happened_and_what_follows_is_told() {
        let loss =
            |how, stand_in| StoreLoss { path: PathBuf::from("/s"), how, stand_in }.to_string();
        assert_eq!(
            loss(StoreLossKind::Gone, StandIn::FinishRecords(0)),
            "the event store /s is gone: no finish record is left, so the job begins again"
        );
        let damaged = StoreLossKind::Damaged {
            reason: "the store at /s is damaged: x".to_owned(),
            aside: PathBuf::from("/s-2"),
            removed: vec![PathBuf::from("/s-1")],
        };
        assert_eq!(
            loss(damaged, StandIn::FinishRecords(3)),
            "the store at /s is damaged: x; until the run is over, it is kept as /s-2, for which \
             the older /s-1 was removed: what the finish records prove (3 are there) is kept, the \
             rest runs again"
        );
        let gone = |stand_in| loss(StoreLossKind::Gone, stand_in);
        assert!(gone(StandIn::Manifest).ends_with("is published to its end"));
        assert!(
            loss(StoreLossKind::InMemory, StandIn::Manifest).starts_with("the events of the run")
        );
        assert!(gone(StandIn::Archive).ends_with("the run had ended, which the archive knows"));
    }
}
