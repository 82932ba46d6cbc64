//! What lies in an output directory, and whether a file is as it was recorded.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::Path,
};

use super::{HIDDEN_PREFIX, OutputError, manifest::OldFile};

/// Prefix of the files that jobs publish; `--overwrite` replaces and removes no others.
const PART_PREFIX: &str = "part-";

/// How much of a file is read at a time.
const READ_BYTES: usize = 1 << 18;

/// What lies in an output directory.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// Hidden directories of runs, by name, ascending.
    pub(super) hidden: Vec<String>,
    /// Plain files that a job may have published, ascending.
    pub(super) parts: Vec<String>,
    /// All else, ascending.
    pub(super) others: Vec<String>,
}

impl Listing {
    pub(super) fn read(directory: &Path) -> Result<Self, OutputError> {
        let failed = |source| OutputError::Io {
            action: "list output directory",
            path: directory.to_owned(),
            source,
        };
        let mut listing = Self::default();
        for entry in fs::read_dir(directory).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let kind = entry.file_type().map_err(failed)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if kind.is_dir() && name.starts_with(HIDDEN_PREFIX) {
                listing.hidden.push(name);
            } else if kind.is_file() && name.starts_with(PART_PREFIX) {
                listing.parts.push(name);
            } else {
                listing.others.push(name);
            }
        }
        listing.hidden.sort_unstable();
        listing.parts.sort_unstable();
        listing.others.sort_unstable();
        Ok(listing)
    }

    /// What is no plain file and has the name of one that a job publishes.
    pub(super) fn no_part_file(&self) -> Option<&str> {
        self.others.iter().map(String::as_str).find(|name| is_part_name(name))
    }
}

/// What `path` is, for people.
pub(super) fn kind(path: &Path) -> &'static str {
    match fs::symlink_metadata(path).map(|metadata| metadata.file_type()) {
        Ok(found) if found.is_symlink() => "a link",
        Ok(found) if found.is_dir() => "a directory",
        Ok(found) if found.is_file() => "a file",
        Ok(_) => "a device, pipe or socket",
        Err(_) => "something",
    }
}

/// Whether sinks give this name to what they publish: `part-` and a number.
fn is_part_name(name: &str) -> bool {
    let number = name.strip_prefix(PART_PREFIX);
    number.is_some_and(|number| number.starts_with(|first: char| first.is_ascii_digit()))
}

/// Length and CRC32C of a plain file; none if there is no such file, or something else there.
pub(super) fn fingerprint(path: &Path) -> Result<Option<(u64, u32)>, OutputError> {
    let failed = |source| OutputError::Io { action: "read", path: path.to_owned(), source };
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_file() => read_fingerprint(path).map(Some).map_err(failed),
        Ok(_) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(error)),
    }
}

fn read_fingerprint(path: &Path) -> io::Result<(u64, u32)> {
    let mut file = File::open(path)?;
    let mut block = vec![0; READ_BYTES];
    let (mut bytes, mut checksum) = (0_u64, 0_u32);
    loop {
        let count = file.read(&mut block)?;
        let read = block.get(..count).unwrap_or_default();
        if read.is_empty() {
            return Ok((bytes, checksum));
        }
        bytes += read.len() as u64;
        checksum = crc32c::crc32c_append(checksum, read);
    }
}

/// Length of a plain file; none if there is no such file.
pub(super) fn length(path: &Path) -> Option<u64> {
    fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file).map(|metadata| metadata.len())
}

/// The part files of `directory`, as they are now.
pub(super) fn old_files(directory: &Path) -> Result<Vec<OldFile>, OutputError> {
    let mut old = Vec::new();
    for name in Listing::read(directory)?.parts {
        // A file that vanished since the listing has nothing to be replaced.
        if let Some((bytes, checksum)) = fingerprint(&directory.join(&name))? {
            old.push(OldFile { name, bytes, checksum });
        }
    }
    Ok(old)
}
