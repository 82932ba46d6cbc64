//! Small files that are there whole or not at all.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::Path,
};

/// Replaces the file at `path`, or makes it; what is there afterwards, even after a crash, is the
/// old or the new content.
pub(crate) fn replace(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    let temporary = path.with_extension("new");
    let mut file = File::create(&temporary)?;
    for part in parts {
        file.write_all(part)?;
    }
    file.sync_all()?;
    fs::rename(&temporary, path)?;
    match path.parent() {
        Some(parent) => File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}
