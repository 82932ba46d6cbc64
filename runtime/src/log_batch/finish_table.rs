//! The finishes of a batch as columns: what many have in common is stored once.
//!
//! Each field of the table is a named field of the batch's `MessagePack`; a column is one binary
//! string of numbers (LEB128, see [`Column`] and [`Items`]). A column that is added later is
//! skipped by older programs and reads as zeros where it is missing.

mod finish_kind;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, sync::Arc};

use regrow_protocol::{
    Accumulators, DataDirectoryId, ExecutionAttemptId, FinishRecord, InputId, PartitionMetrics,
    SplitId, StagedFile, SubpartitionBytes, TaskMetrics, WorkerId,
};
use serde::{Deserialize, Serialize};

use self::finish_kind::FinishKind;
use super::column::{Column, Garbled, Items};
use crate::JobEvent;

/// The finishes of a batch, in order, and where they stand among its other events.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct FinishTable {
    /// Who ran them, and where.
    workers: Vec<(WorkerId, DataDirectoryId)>,
    /// What they have in common.
    kinds: Vec<FinishKind>,
    /// How many other events come next, then how many finishes, and so on.
    order: Items,
    /// Per finish: how far its subtask is from the one after the finish before.
    subtasks: Items,
    /// Per finish: index of its worker.
    #[serde(skip_serializing_if = "Column::is_unwritten")]
    worker: Column,
    /// Per finish: index of its kind.
    #[serde(skip_serializing_if = "Column::is_unwritten")]
    kind: Column,
    /// Per finish: number of the attempt.
    #[serde(skip_serializing_if = "Column::is_unwritten")]
    number: Column,
    #[serde(skip_serializing_if = "Column::is_unwritten")]
    records_in: Column,
    #[serde(skip_serializing_if = "Column::is_unwritten")]
    bytes_in: Column,
    #[serde(skip_serializing_if = "Column::is_unwritten")]
    records_out: Column,
    #[serde(skip_serializing_if = "Column::is_unwritten")]
    bytes_out: Column,
    #[serde(skip_serializing_if = "Column::is_unwritten")]
    duration_ms: Column,
    /// Per finish and input: the id, with the bits flipped that the id before has set.
    #[serde(skip_serializing_if = "Items::is_unwritten")]
    inputs: Items,
    /// Per finish and output: bytes per subpartition as they are packed, records, checksum.
    #[serde(skip_serializing_if = "Items::is_unwritten")]
    outputs: Items,
    /// Per finish and accumulator of its kind: the value.
    #[serde(skip_serializing_if = "Items::is_unwritten")]
    accumulators: Items,
    /// Per finish: how many splits it read.
    #[serde(skip_serializing_if = "Column::is_unwritten")]
    split_count: Column,
    /// Per split: how far it is from the one after the split before.
    #[serde(skip_serializing_if = "Items::is_unwritten")]
    splits: Items,
    /// Per finish: how many files it staged.
    #[serde(skip_serializing_if = "Column::is_unwritten")]
    staged_count: Column,
    /// Per staged file: sink, staged name, final name, bytes, checksum.
    #[serde(skip_serializing_if = "Items::is_unwritten")]
    staged_files: Items,
}

/// The numbers that the next ones are told apart from.
#[derive(Debug, Default)]
struct Expected {
    subtask: i64,
    split: i64,
    /// Per place of an input within its finish.
    inputs: Vec<u64>,
}

/// Makes a table.
#[derive(Debug, Default)]
pub(super) struct FinishTableWriter {
    table: FinishTable,
    expected: Expected,
    workers: BTreeMap<(WorkerId, DataDirectoryId), u64>,
    /// Per [`finish_kind::key`], the newest.
    kinds: BTreeMap<finish_kind::Key, u64>,
    newest_worker: Option<((WorkerId, DataDirectoryId), u64)>,
    newest_kind: u64,
}

impl FinishTableWriter {
    /// The events that are no finishes, and a table of those that are, if there are any.
    pub(super) fn split<'a>(
        events: impl IntoIterator<Item = &'a JobEvent>,
    ) -> (Vec<&'a JobEvent>, Option<FinishTable>) {
        let mut writer = Self::default();
        let (mut others, mut finishes, mut count) = (Vec::new(), 0, 0);
        for event in events {
            if let JobEvent::ExecutionVertexFinished { worker, data_directory, record } = event {
                writer.push((*worker, *data_directory), record);
                finishes += 1;
                continue;
            }
            if finishes > 0 {
                writer.end_of_finishes(others.len() - count, finishes);
                (count, finishes) = (others.len(), 0);
            }
            others.push(event);
        }
        if finishes > 0 {
            writer.end_of_finishes(others.len() - count, finishes);
        }
        let is_empty = writer.table.order.is_unwritten();
        (others, (!is_empty).then_some(writer.table))
    }

    fn end_of_finishes(&mut self, others: usize, finishes: u64) {
        self.table.order.push(others as u64);
        self.table.order.push(finishes);
    }

    fn push(&mut self, place: (WorkerId, DataDirectoryId), record: &FinishRecord) {
        // All fields by name: one that is added must find its place here.
        let FinishRecord {
            attempt,
            plan: _,
            inputs,
            outputs,
            metrics,
            accumulators,
            splits,
            staged_files,
        } = record;
        let ExecutionAttemptId { run: _, vertex: _, subtask, epoch: _, number } = attempt;
        let (worker, kind) = (self.worker(place), self.kind(record));
        let Self { table, expected, .. } = self;
        table.worker.push(worker);
        table.kind.push(kind);
        let subtask = i64::from(*subtask);
        table.subtasks.push_signed(subtask - expected.subtask);
        expected.subtask = subtask + 1;
        table.number.push(u64::from(*number));
        table.push_metrics(metrics);
        for (index, InputId(input)) in inputs.iter().enumerate() {
            let before = expected.input(index);
            table.inputs.push(*input ^ *before);
            *before = *input;
        }
        for output in outputs {
            table.push_output(output);
        }
        for (_, value) in accumulators.iter() {
            finish_kind::push(value, &mut table.accumulators);
        }
        table.split_count.push(splits.len() as u64);
        for SplitId(split) in splits {
            let split = i64::from(*split);
            table.splits.push_signed(split - expected.split);
            expected.split = split + 1;
        }
        table.staged_count.push(staged_files.len() as u64);
        for file in staged_files {
            table.push_staged_file(file);
        }
    }

    fn worker(&mut self, place: (WorkerId, DataDirectoryId)) -> u64 {
        if let Some((newest, index)) = self.newest_worker
            && newest == place
        {
            return index;
        }
        let index = *self.workers.entry(place).or_insert_with(|| {
            self.table.workers.push(place);
            self.table.workers.len() as u64 - 1
        });
        self.newest_worker = Some((place, index));
        index
    }

    fn kind(&mut self, record: &FinishRecord) -> u64 {
        let fits = |index: u64| {
            let kind = usize::try_from(index).ok().and_then(|index| self.table.kinds.get(index));
            kind.is_some_and(|kind| kind.fits(record))
        };
        if fits(self.newest_kind) {
            return self.newest_kind;
        }
        let key = finish_kind::key(record);
        self.newest_kind = match self.kinds.get(&key) {
            Some(&known) if fits(known) => known,
            Some(_) | None => {
                self.table.kinds.push(FinishKind::of(record));
                self.table.kinds.len() as u64 - 1
            }
        };
        self.kinds.insert(key, self.newest_kind);
        self.newest_kind
    }
}

impl Expected {
    fn input(&mut self, index: usize) -> &mut u64 {
        if index >= self.inputs.len() {
            self.inputs.resize(index + 1, 0);
        }
        &mut self.inputs[index]
    }
}

impl FinishTable {
    /// Puts the finishes back among the events that are none.
    pub(super) fn join(mut self, others: Vec<JobEvent>) -> Result<Vec<JobEvent>, Garbled> {
        let mut events = Vec::new();
        let mut others = others.into_iter();
        let mut expected = Expected::default();
        while !self.order.is_empty() {
            for _ in 0..self.order.take()? {
                events.push(others.next().ok_or(Garbled)?);
            }
            for _ in 0..self.order.take()? {
                events.push(self.take(&mut expected)?);
            }
        }
        events.extend(others);
        if self.subtasks.is_empty() { Ok(events) } else { Err(Garbled) }
    }

    fn take(&mut self, expected: &mut Expected) -> Result<JobEvent, Garbled> {
        // First, because it is there for each finish: an order that tells of more ends here.
        let subtask = near(expected.subtask, self.subtasks.take_signed()?)?;
        expected.subtask = i64::from(subtask) + 1;
        let place = self.worker.take_u32()? as usize;
        let (worker, data_directory) = *self.workers.get(place).ok_or(Garbled)?;
        let kind = self.kind.take_u32()? as usize;
        let number = self.number.take_u32()?;
        let metrics = self.take_metrics()?;
        let splits = self.take_splits(expected)?;
        let staged_files = self.take_staged_files()?;
        let kind = self.kinds.get(kind).ok_or(Garbled)?;
        let FinishKind { run, vertex, epoch, plan, inputs, outputs, accumulators } = kind;
        let mut record = FinishRecord {
            attempt: ExecutionAttemptId {
                run: *run,
                vertex: *vertex,
                subtask,
                epoch: *epoch,
                number,
            },
            plan: *plan,
            inputs: Vec::new(),
            outputs: Vec::new(),
            metrics,
            accumulators: Accumulators::default(),
            splits,
            staged_files,
        };
        for index in 0..*inputs {
            let before = expected.input(index as usize);
            *before ^= self.inputs.take()?;
            record.inputs.push(InputId(*before));
        }
        for data_set in outputs {
            record.outputs.push(PartitionMetrics {
                data_set: *data_set,
                subpartition_bytes: SubpartitionBytes::from_packed(self.outputs.take_bytes()?),
                records: self.outputs.take()?,
                checksum: self.outputs.take_u32()?,
            });
        }
        for (name, kind) in accumulators {
            record.accumulators.add(name, kind.take(&mut self.accumulators)?);
        }
        let record = Arc::new(record);
        Ok(JobEvent::ExecutionVertexFinished { worker, data_directory, record })
    }

    fn push_metrics(&mut self, metrics: &TaskMetrics) {
        let TaskMetrics { records_in, bytes_in, records_out, bytes_out, duration_ms } = metrics;
        self.records_in.push(*records_in);
        self.bytes_in.push(*bytes_in);
        self.records_out.push(*records_out);
        self.bytes_out.push(*bytes_out);
        self.duration_ms.push(*duration_ms);
    }

    fn take_metrics(&mut self) -> Result<TaskMetrics, Garbled> {
        Ok(TaskMetrics {
            records_in: self.records_in.take()?,
            bytes_in: self.bytes_in.take()?,
            records_out: self.records_out.take()?,
            bytes_out: self.bytes_out.take()?,
            duration_ms: self.duration_ms.take()?,
        })
    }

    fn push_output(&mut self, output: &PartitionMetrics) {
        // The data set is part of the kind.
        let PartitionMetrics { data_set: _, subpartition_bytes, records, checksum } = output;
        self.outputs.push_bytes(subpartition_bytes.packed());
        self.outputs.push(*records);
        self.outputs.push(u64::from(*checksum));
    }

    fn push_staged_file(&mut self, file: &StagedFile) {
        let StagedFile { sink, staged_name, final_name, bytes, checksum } = file;
        self.staged_files.push(u64::from(*sink));
        self.staged_files.push_bytes(staged_name.as_bytes());
        self.staged_files.push_bytes(final_name.as_bytes());
        self.staged_files.push(*bytes);
        self.staged_files.push(u64::from(*checksum));
    }

    fn take_staged_files(&mut self) -> Result<Vec<StagedFile>, Garbled> {
        let mut files = Vec::new();
        for _ in 0..self.staged_count.take()? {
            let items = &mut self.staged_files;
            files.push(StagedFile {
                sink: items.take_u32()?,
                staged_name: items.take_text()?,
                final_name: items.take_text()?,
                bytes: items.take()?,
                checksum: items.take_u32()?,
            });
        }
        Ok(files)
    }

    fn take_splits(&mut self, expected: &mut Expected) -> Result<Vec<SplitId>, Garbled> {
        let mut splits = Vec::new();
        for _ in 0..self.split_count.take()? {
            let split = near(expected.split, self.splits.take_signed()?)?;
            expected.split = i64::from(split) + 1;
            splits.push(SplitId(split));
        }
        Ok(splits)
    }
}

fn near(expected: i64, distance: i64) -> Result<u32, Garbled> {
    let value = expected.checked_add(distance).ok_or(Garbled)?;
    u32::try_from(value).map_err(|_| Garbled)
}
