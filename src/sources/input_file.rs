//! A file that is read, as it was when it was listed.

use std::{
    fs::{self, File, Metadata},
    io::{self, Read as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

/// A file that is read, as it was when it was listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InputFile {
    pub(super) path: PathBuf,
    pub(super) stamp: FileStamp,
}

/// By what a file is known again: when one of it differs, the file is another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileStamp {
    /// Its length.
    pub(super) bytes: u64,
    /// When it was modified last, in seconds since 1970, and nanoseconds of that second.
    pub(super) modified_s: i64,
    pub(super) modified_ns: i64,
}

impl FileStamp {
    /// That of an open file.
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self {
            bytes: metadata.len(),
            modified_s: metadata.mtime(),
            modified_ns: metadata.mtime_nsec(),
        }
    }
}

impl InputFile {
    /// Looks at a file. A pipe, a device or a file that the system makes up as it is read has no
    /// length to divide by, and would count as empty.
    pub(super) fn look(path: PathBuf) -> Result<Self, String> {
        let cannot =
            |error: io::Error| format!("cannot read the input {}: {error}", path.display());
        if path.to_str().is_none() {
            return Err(format!(
                "the path of the input {} is not UTF-8; rename it",
                path.display()
            ));
        }
        let metadata = fs::metadata(&path).map_err(cannot)?;
        if !metadata.is_file() {
            return Err(unknown_length(&path));
        }
        if metadata.len() == 0 {
            let read =
                File::open(&path).and_then(|mut file| file.read(&mut [0])).map_err(cannot)?;
            if read > 0 {
                return Err(unknown_length(&path));
            }
            if is_gzip(&path) {
                return Err(format!(
                    "the input {} is empty, which no gzip file is: it was cut; copy it again or \
                     remove it",
                    path.display()
                ));
            }
        }
        Ok(Self { stamp: FileStamp::of(&metadata), path })
    }

    /// Whether it can be read from its beginning only.
    pub(super) fn is_gzip(&self) -> bool {
        is_gzip(&self.path)
    }
}

/// Whether a file is compressed, by its name.
pub(super) fn is_gzip(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gz"))
}

fn unknown_length(path: &Path) -> String {
    format!(
        "cannot read the input {}: it is no plain file whose length is known; copy what it holds to \
         a file",
        path.display()
    )
}
