use proptest::prelude::*;

use super::*;

type Entry = (Vec<u8>, Vec<u8>);

fn write(directory: &Path, name: &str, entries: &[Entry]) -> SpillFile {
    let mut writer = EntryWriter::create(directory, name, 16).unwrap();
    for (key, value) in entries {
        writer.write(key, value).unwrap();
    }
    writer.finish().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn a_file_gives_back_its_entries_from_each_offset(entries: Vec<Entry>, buffer in 1_usize..64) {
        let directory = tempfile::tempdir().unwrap();
        let file = write(directory.path(), "a", &entries);
        let mut reader = EntryReader::open(&file, 0, buffer).unwrap();
        for (index, entry) in entries.iter().enumerate() {
            let offset = file.bytes - reader.bytes_left();
            let mut second = EntryReader::open(&file, offset, buffer).unwrap();
            prop_assert!(second.advance().unwrap() && reader.advance().unwrap());
            prop_assert_eq!((reader.key(), reader.value()), (&entry.0[..], &entry.1[..]));
            prop_assert_eq!((second.key(), second.value()), (&entry.0[..], &entry.1[..]), "{}", index);
        }
        prop_assert!(!reader.advance().unwrap());
    }

    #[test]
    fn any_file_reads_or_is_refused(content: Vec<u8>) {
        let directory = tempfile::tempdir().unwrap();
        let file = write(directory.path(), "a", &[(Vec::new(), vec![0; content.len()])]);
        std::fs::write(directory.path().join("a"), &content).unwrap();
        let mut reader = EntryReader::open(&file, 0, 16).unwrap();
        while let Ok(true) = reader.advance() {}
        let mut block = content.as_slice();
        while !block.is_empty() && read_entry(&mut block).is_some() {}
    }
}

#[test]
fn a_length_beyond_the_file_takes_no_memory() {
    let directory = tempfile::tempdir().unwrap();
    let file = write(directory.path(), "a", &[(vec![1; 10], vec![2; 10])]);
    let mut lengths = Vec::new();
    write_number(u64::MAX / 2, &mut lengths);
    lengths.resize(22, 0);
    std::fs::write(directory.path().join("a"), lengths).unwrap();
    let mut reader = EntryReader::open(&file, 0, 16).unwrap();
    let error = reader.advance().unwrap_err();
    assert!(error.to_string().contains("changed while it was in use"), "{error}");
}
