use std::{io, path::Path};

use regrow_protocol::{DataSetId, InputId, PartitionId, SubpartitionRange};
use tempfile::TempDir;

use super::*;
use crate::worker::bench::attempt;

const RANGE: SubpartitionRange = SubpartitionRange { start: 0, end: 1 };

fn partition() -> PartitionId {
    PartitionId { attempt: attempt(1, 0), data_set: DataSetId(0) }
}

#[test]
fn fault_39_each_error_of_a_read_leads_to_its_own_action() {
    let (partition, path) = (partition(), PathBuf::from("/data/p"));
    let unreadable = |code| FetchError::Unreadable {
        partition,
        path: path.clone(),
        source: io::Error::from_raw_os_error(code),
    };
    let lost = [
        FetchError::Gone { partition, path: path.clone() },
        FetchError::Corrupt { partition, path: path.clone(), reason: "bits".to_owned() },
        unreadable(5),
    ];
    for error in lost {
        let text = error.to_string();
        let failure = fetch_failure(error);
        let TaskFailure::InputLost { partition: named, reason } = failure else {
            panic!("{failure:?}");
        };
        assert_eq!(named, partition);
        assert!(reason.starts_with(&text), "{reason}");
    }
    for code in [23, 24] {
        assert!(matches!(fetch_failure(unreadable(code)), TaskFailure::Task { .. }));
    }
    let range = SubpartitionRange { start: 4, end: 9 };
    let error = FetchError::OutOfRange { partition, range, subpartitions: 2 };
    assert!(matches!(fetch_failure(error), TaskFailure::Unrecoverable { .. }));
    let kept = [
        (FetchError::Unreachable { partition, reason: "nobody is there".to_owned() }, "nobody is"),
        (FetchError::Stale { partition, known: Epoch::new(2, 0) }, "leads the run"),
    ];
    for (error, expected) in kept {
        let failure = fetch_failure(error);
        let TaskFailure::InputUnreachable { partition: named, reason } = failure else {
            panic!("{failure:?}");
        };
        assert_eq!(named, partition);
        assert!(reason.contains(expected), "{reason}");
    }
    assert_eq!(fetch_failure(FetchError::Stopped { partition }), TaskFailure::Cancelled);
}

fn first_failure(root: &Path, locations: &[DirectoryLocation]) -> TaskFailure {
    let sources = Sources {
        root: root.to_owned(),
        locations: locations.into(),
        remote: None,
        epoch: Epoch::new(1, 0),
        cancelled: Arc::default(),
    };
    let producer =
        ProducerPartition { partition: partition(), data_directory: DataDirectoryId::from_bits(7) };
    let gate = InputGate {
        data_set: DataSetId(0),
        input: InputId(0),
        subpartitions: RANGE,
        producers: [producer].into(),
    };
    let (mut block, mut metrics) = (Vec::new(), TaskMetrics::default());
    Input::new(sources).read_block(&gate, &mut block, &mut metrics).unwrap_err()
}

#[test]
fn a_missing_file_is_a_loss_only_where_its_directory_would_be() {
    let root = TempDir::new().unwrap();
    let address = SocketAddr::from(([127, 0, 0, 1], 1));
    let location =
        |id| DirectoryLocation { data_directory: DataDirectoryId::from_bits(id), address };
    let lost = |failure| matches!(failure, TaskFailure::InputLost { .. });
    assert!(lost(first_failure(root.path(), &[])), "all directories are here");
    let TaskFailure::InputUnreachable { reason, .. } = first_failure(root.path(), &[location(8)])
    else {
        panic!("nobody knows where it is");
    };
    assert!(reason.contains("nobody said where data directory"), "{reason}");
    std::fs::create_dir(root.path().join(DataDirectoryId::from_bits(7).to_string())).unwrap();
    assert!(lost(first_failure(root.path(), &[location(7)])), "it is on this host");
}
