use proptest::prelude::*;

use super::*;

type Entry = (Vec<u8>, Vec<u8>);

fn write(directory: &Path, entries: &[Entry], chunk_bytes: usize) -> SpillFile {
    let mut writer = EntryWriter::create(directory.join("a"), chunk_bytes).unwrap();
    for (key, value) in entries {
        writer.write(key, value).unwrap();
    }
    let file = writer.finish().unwrap();
    assert_eq!(file.bytes(), std::fs::metadata(file.path()).unwrap().len());
    file
}

fn read(file: &SpillFile) -> Result<Vec<Entry>, TaskFailure> {
    let mut reader = EntryReader::open(file)?;
    let mut entries = Vec::new();
    while reader.advance()? {
        entries.push((reader.key().to_vec(), reader.value().to_vec()));
    }
    assert!(reader.next_position().is_none() && !reader.advance()?, "it goes on behind its end");
    Ok(entries)
}

/// Some entries in several chunks.
fn some_entries() -> Vec<Entry> {
    (0..9_u8).map(|number| (vec![number], vec![number; 20])).collect()
}

fn refusal(file: &SpillFile, content: &[u8]) -> String {
    std::fs::write(file.path(), content).unwrap();
    let failure = read(file).unwrap_err();
    assert!(matches!(failure, TaskFailure::Task { .. }), "another attempt may: {failure:?}");
    failure.to_string()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn a_file_gives_back_its_entries_from_each_position(
        entries: Vec<Entry>, chunk_bytes in 0_usize..200,
    ) {
        let directory = tempfile::tempdir().unwrap();
        let file = write(directory.path(), &entries, chunk_bytes);
        prop_assert_eq!(&read(&file).unwrap(), &entries);
        let mut position = Some(Position::default());
        for (key, value) in &entries {
            let mut reader = EntryReader::open_at(&file, position.unwrap()).unwrap();
            prop_assert!(reader.advance().unwrap());
            prop_assert_eq!((reader.key(), reader.value()), (&key[..], &value[..]));
            position = reader.next_position();
        }
        prop_assert!(entries.is_empty() || position.is_none());
    }

    #[test]
    fn any_block_reads_or_is_refused(block: Vec<u8>) {
        let mut block = block.as_slice();
        while !block.is_empty() && read_entry(&mut block).is_some() {}
    }
}

#[test]
fn a_file_is_gone_with_its_owner() {
    let directory = tempfile::tempdir().unwrap();
    drop(write(directory.path(), &some_entries(), 100));
    drop(EntryWriter::create(directory.path().join("b"), 100).unwrap());
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn a_flipped_bit_anywhere_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let file = write(directory.path(), &some_entries(), 100);
    let whole = std::fs::read(file.path()).unwrap();
    for position in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[position] ^= 1 << (position % 8);
        let message = refusal(&file, &bytes);
        assert!(message.contains("is damaged") && message.contains("/a"), "{message}");
    }
}

#[test]
fn a_cut_file_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let file = write(directory.path(), &some_entries(), 100);
    let whole = std::fs::read(file.path()).unwrap();
    for length in 0..whole.len() {
        refusal(&file, &whole[..length]);
    }
}

#[test]
fn a_length_beyond_the_file_takes_no_memory() {
    let directory = tempfile::tempdir().unwrap();
    let file = write(directory.path(), &some_entries(), 100);
    let message = refusal(&file, &[0xff; 64]);
    assert!(message.contains("impossible length"), "{message}");
}
