use proptest::prelude::*;
use regrow_protocol::{
    Accumulator, CollectedRecords, DataSetId, Epoch, JobVertexId, OpaqueBytes, PlanId, RunId,
    decode, encode,
};

use super::*;

const OTHER: JobEvent = JobEvent::CancelRequested;

fn record(vertex: u32, subtask: u32) -> FinishRecord {
    let (run, epoch) = (RunId::from_bits(1), Epoch::new(3, 1));
    let vertex = JobVertexId(vertex);
    FinishRecord {
        attempt: ExecutionAttemptId { run, vertex, subtask, epoch, number: 0 },
        plan: PlanId(u64::MAX),
        inputs: Vec::new(),
        outputs: Vec::new(),
        metrics: TaskMetrics::default(),
        accumulators: Accumulators::default(),
        splits: Vec::new(),
        staged_files: Vec::new(),
    }
}

fn finished(record: FinishRecord) -> JobEvent {
    let (worker, data_directory) = (WorkerId::from_bits(5), DataDirectoryId::from_bits(6));
    JobEvent::ExecutionVertexFinished { worker, data_directory, record: Arc::new(record) }
}

fn row(subtask: u32) -> JobEvent {
    finished(record(0, subtask))
}

/// The table after the disk, and the other events.
fn stored(events: &[JobEvent]) -> (Vec<JobEvent>, FinishTable) {
    let (others, table) = FinishTableWriter::split(events);
    let others = others.into_iter().cloned().collect();
    (others, decode(&encode(&table.unwrap()).unwrap()).unwrap())
}

#[test]
fn finishes_stand_where_they_stood() {
    let orders = [
        vec![row(0)],
        vec![row(0), OTHER],
        vec![OTHER, OTHER, row(1), row(0), OTHER, row(7), OTHER],
    ];
    for events in orders {
        let (others, table) = stored(&events);
        assert!(others.iter().all(|event| *event == OTHER));
        assert_eq!(table.join(others).unwrap(), events);
    }
    assert!(FinishTableWriter::split(&[OTHER]).1.is_none());
}

#[test]
fn a_finish_like_the_one_before_takes_two_bytes() {
    let size = |count| {
        let events: Vec<JobEvent> = (0..count).map(row).collect();
        encode(&FinishTableWriter::split(&events).1.unwrap()).unwrap().len()
    };
    assert!(size(1200) - size(200) <= 2000, "{} and {} bytes", size(1200), size(200));
}

#[test]
fn kinds_that_alternate_are_stored_once() {
    let events: Vec<JobEvent> =
        (0..100).map(|subtask| finished(record(subtask % 2, subtask))).collect();
    let (others, table) = stored(&events);
    assert_eq!(table.kinds.len(), 2);
    assert_eq!(table.join(others).unwrap(), events);
}

#[test]
fn a_kind_is_told_by_the_names_and_shape_of_what_it_lists() {
    let change: [fn(&mut FinishRecord); 5] = [
        |_| {},
        |record| record.accumulators.add("lines", Accumulator::Sum(1)),
        |record| record.accumulators.add("lines", Accumulator::Max(1)),
        |record| record.inputs.push(InputId(1)),
        |record| {
            record.outputs.push(PartitionMetrics {
                data_set: DataSetId(1),
                subpartition_bytes: SubpartitionBytes::default(),
                records: 0,
                checksum: 0,
            });
        },
    ];
    let events: Vec<JobEvent> = change
        .iter()
        .map(|change| {
            let mut record = record(0, 0);
            change(&mut record);
            finished(record)
        })
        .collect();
    let (others, table) = stored(&events);
    assert_eq!(table.kinds.len(), events.len());
    assert_eq!(table.join(others).unwrap(), events);
}

#[test]
fn a_column_that_a_later_version_adds_is_skipped() {
    #[derive(Serialize)]
    struct Later {
        added: &'static str,
        workers: Vec<(WorkerId, DataDirectoryId)>,
        kinds: Vec<FinishKind>,
        order: Items,
        subtasks: Items,
    }
    let (others, table) = stored(&[row(4)]);
    let FinishTable { workers, kinds, order, subtasks, .. } = table;
    let later = Later { added: "more", workers, kinds, order, subtasks };
    let table: FinishTable = decode(&encode(&later).unwrap()).unwrap();
    assert_eq!(table.join(others).unwrap(), [row(4)]);
}

#[test]
fn log_1_a_table_that_tells_of_more_than_it_holds_is_garbled() {
    let broken: [fn(&mut FinishTable); 7] = [
        |table| table.order.push(1 << 60),
        |table| {
            table.order.push(0);
            table.order.push(1 << 60);
        },
        |table| table.subtasks.push(0),
        |table| table.kinds.clear(),
        |table| table.workers.clear(),
        |table| table.kinds[0].inputs = u32::MAX,
        |table| table.split_count.push(u64::MAX),
    ];
    for (index, damage) in broken.iter().enumerate() {
        let (others, mut table) = stored(&[row(4)]);
        damage(&mut table);
        assert!(table.join(others).is_err(), "damage {index}");
    }
}

fn accumulator(kind: u8, value: i64) -> Accumulator {
    let bytes =
        || OpaqueBytes(value.to_be_bytes()[..usize::from(value.to_be_bytes()[7] % 9)].to_vec());
    match kind {
        0 => Accumulator::Sum(value),
        1 => Accumulator::Min(value),
        2 => Accumulator::Max(value),
        3 => Accumulator::Custom(vec![bytes(); usize::from(value.to_be_bytes()[6] % 3)]),
        _ => Accumulator::Collected(CollectedRecords {
            records: value.unsigned_abs(),
            record_type: value.to_string(),
            bytes: bytes(),
        }),
    }
}

fn any_record() -> impl Strategy<Value = FinishRecord> {
    let attempt = (0..3_u32, any::<u32>(), 0..3_u32, 0..3_u64);
    let numbers = prop::collection::vec(any::<u64>(), 6);
    let lists = (
        prop::collection::vec(any::<u64>(), 0..3),
        prop::collection::vec(any::<u32>(), 0..4),
        prop::collection::vec((any::<u64>(), any::<u32>()), 0..3),
        prop::collection::vec(("[ab]", any::<i64>(), 0..5_u8), 0..3),
        prop::collection::vec((any::<u32>(), ".{0,9}"), 0..3),
    );
    (attempt, numbers, lists).prop_map(|(attempt, numbers, lists)| {
        let (vertex, subtask, number, term) = attempt;
        let (inputs, splits, outputs, accumulators, files) = lists;
        let mut record = record(vertex, subtask);
        record.attempt.number = number;
        record.attempt.epoch.term = term;
        record.plan = PlanId(numbers[5] % 2);
        record.metrics = TaskMetrics {
            records_in: numbers[0],
            bytes_in: numbers[1],
            records_out: numbers[2],
            bytes_out: numbers[3] % 2,
            duration_ms: numbers[4],
        };
        record.inputs = inputs.into_iter().map(InputId).collect();
        record.splits = splits.into_iter().map(SplitId).collect();
        let output = |(index, (bytes, checksum))| PartitionMetrics {
            data_set: DataSetId(index),
            subpartition_bytes: SubpartitionBytes::new(&[0, bytes]),
            records: bytes,
            checksum,
        };
        record.outputs = (0..).zip(outputs).map(output).collect();
        for (name, value, kind) in accumulators {
            record.accumulators.add(&name, accumulator(kind, value));
        }
        let file = |(sink, name): (u32, String)| StagedFile {
            sink,
            final_name: format!("{name}.csv"),
            staged_name: name,
            bytes: u64::from(sink),
            checksum: !sink,
        };
        record.staged_files = files.into_iter().map(file).collect();
        record
    })
}

proptest! {
    #[test]
    fn whatever_finished_comes_back(
        records in prop::collection::vec(any_record(), 1..20), place in 0..20_usize,
    ) {
        let mut events: Vec<JobEvent> = records.into_iter().map(finished).collect();
        events.insert(place.min(events.len()), OTHER);
        let (others, table) = stored(&events);
        prop_assert_eq!(table.join(others).unwrap(), events);
    }
}
