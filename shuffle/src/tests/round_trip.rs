//! What is written is what is read.

use proptest::prelude::*;

use super::*;
use crate::{BLOCK_BYTES_MAX, SUBPARTITIONS_MAX, trailer::read_footer};

/// A block to write: where, its length, and the byte it consists of.
type Planned = (usize, u32, usize, u8);

fn planned() -> impl Strategy<Value = (Vec<u32>, Vec<Planned>, u64)> {
    let shape = proptest::collection::vec(1_u32..12, 1..4);
    let length = prop_oneof![4 => 0_usize..200, 1 => 0_usize..20_000];
    let block = (any::<usize>(), any::<u32>(), length, any::<u8>());
    let budget = prop_oneof![Just(0), 0_u64..50_000, Just(1 << 20)];
    (shape, proptest::collection::vec(block, 0..60), budget).prop_map(|(shape, blocks, budget)| {
        let blocks = blocks.into_iter().map(|(output, subpartition, length, fill)| {
            let output = output % shape.len();
            (output, subpartition % shape[output], length, fill)
        });
        let blocks = blocks.collect();
        (shape, blocks, budget)
    })
}

/// The blocks of subpartitions `range` of `output`, as a reader should get them.
fn expected(blocks: &[Planned], output: usize, range: std::ops::Range<u32>) -> Vec<Vec<u8>> {
    let mut chosen: Vec<_> =
        blocks.iter().filter(|block| block.0 == output && range.contains(&block.1)).collect();
    chosen.sort_by_key(|block| block.1);
    chosen.into_iter().map(|(_, _, length, fill)| vec![*fill; *length]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn any_blocks_in_any_memory_are_read_as_they_were_written(
        (shape, blocks, budget) in planned(),
    ) {
        let mut fixture = Fixture::new();
        let mut writer =
            AttemptWriter::create(&fixture.directory, attempt(0), &outputs(&shape), budget).unwrap();
        for (output, subpartition, length, fill) in &blocks {
            writer.write_block(*output, *subpartition, &vec![*fill; *length], 2).unwrap();
        }
        let sealed = writer.seal(record(attempt(0))).unwrap();
        for life in 0..2 {
            for (output, subpartitions) in shape.iter().enumerate() {
                let of = partition(attempt(0), output);
                for (start, end) in [(0, *subpartitions), (subpartitions / 2, *subpartitions), (0, 1)] {
                    let found = fixture.read_range(of, start..end).unwrap();
                    prop_assert_eq!(found, expected(&blocks, output, start..end), "life {}", life);
                }
                let metrics = &sealed.outputs[output];
                let all = expected(&blocks, output, 0..*subpartitions);
                prop_assert_eq!(metrics.records, 2 * all.len() as u64);
                let bytes: usize = all.iter().map(Vec::len).sum();
                prop_assert_eq!(metrics.subpartition_bytes.total(), bytes as u64);
            }
            let inventory = fixture.inventory();
            prop_assert_eq!(inventory.damaged, vec![]);
            prop_assert_eq!(inventory.finished, vec![sealed.clone()]);
            fixture = fixture.next_life();
        }
    }
}

fn regions(fixture: &Fixture, of: PartitionId) -> u32 {
    let name = crate::run_file::RunFile::Partition(of).to_string();
    let mut file = fs::File::open(fixture.run_path().join(name)).unwrap();
    read_footer(&mut file, of).unwrap().0.regions
}

/// Writes `count` blocks of `length` bytes over 3 subpartitions with room for two of them.
fn write_spilling(fixture: &Fixture, count: u8, length: usize) -> Vec<Planned> {
    let budget = 2 * length as u64 + 200;
    let mut writer =
        AttemptWriter::create(&fixture.directory, attempt(0), &outputs(&[3]), budget).unwrap();
    let blocks: Vec<Planned> =
        (0..count).map(|fill| (0, u32::from(fill) % 3, length, fill)).collect();
    for (output, subpartition, length, fill) in &blocks {
        writer.write_block(*output, *subpartition, &vec![*fill; *length], 1).unwrap();
    }
    writer.seal(record(attempt(0))).unwrap();
    blocks
}

#[test]
fn long_pieces_of_regions_stay_where_they_were_written() {
    let fixture = Fixture::new();
    let blocks = write_spilling(&fixture, 9, 300_000);
    let of = partition(attempt(0), 0);
    assert_eq!(regions(&fixture, of), 5);
    for range in [0..3, 1..2, 1..3] {
        let found = fixture.read_range(of, range.clone()).unwrap();
        assert!(found == expected(&blocks, 0, range));
    }
}

#[test]
fn short_pieces_of_regions_are_merged() {
    let fixture = Fixture::new();
    let blocks = write_spilling(&fixture, 200, 3_000);
    let of = partition(attempt(0), 0);
    assert_eq!(regions(&fixture, of), 1);
    assert!(fixture.read_range(of, 0..3).unwrap() == expected(&blocks, 0, 0..3));
    assert_eq!(fixture.files().len(), 1, "{:?}", fixture.files());
}

#[test]
fn the_longest_block_is_read_and_a_longer_one_refused() {
    let fixture = Fixture::new();
    let mut writer = fixture.writer(attempt(0), &[1]);
    let mut block = vec![5; BLOCK_BYTES_MAX];
    writer.write_block(0, 0, &block, 1).unwrap();
    block.push(5);
    let refused = writer.write_block(0, 0, &block, 1);
    assert!(matches!(refused, Err(WriteError::BlockTooLong { .. })), "{refused:?}");
    writer.seal(record(attempt(0))).unwrap();
    block.pop();
    assert!(fixture.read_range(partition(attempt(0), 0), 0..1).unwrap() == [block]);
}

#[test]
fn outputs_outside_the_limits_are_refused() {
    let fixture = Fixture::new();
    for subpartitions in [0, SUBPARTITIONS_MAX + 1] {
        let refused =
            AttemptWriter::create(&fixture.directory, attempt(0), &outputs(&[subpartitions]), 1);
        assert!(matches!(refused, Err(WriteError::SubpartitionCount { .. })));
    }
    let twice = [outputs(&[1]), outputs(&[1])].concat();
    let refused = AttemptWriter::create(&fixture.directory, attempt(0), &twice, 1);
    assert!(matches!(refused, Err(WriteError::DuplicateDataSet { .. })));
    let mut writer = fixture.writer(attempt(0), &[4]);
    for (output, subpartition) in [(0, 4), (1, 0)] {
        let refused = writer.write_block(output, subpartition, b"x", 1);
        assert!(matches!(refused, Err(WriteError::NoSuchSubpartition { .. })));
    }
}

#[test]
fn a_range_that_the_partition_does_not_have_is_told_from_damage() {
    let fixture = Fixture::new();
    fixture.seal(attempt(0), 1);
    let refused = fixture.read_range(partition(attempt(0), 0), 0..3);
    assert!(matches!(refused, Err(FetchError::OutOfRange { subpartitions: 2, .. })), "{refused:?}");
}

#[test]
fn an_empty_range_reads_nothing_and_needs_no_file() {
    let fixture = Fixture::new();
    let found = fixture.read_range(partition(attempt(0), 0), 1..1).unwrap();
    assert!(found.is_empty());
}
