//! What a user names as input: a file, a directory or a pattern.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use glob::{MatchOptions, Pattern, glob_with};

use super::input_file::InputFile;

/// Which of the files that match are hidden is decided here, not by `glob`: it knows no `_` in front,
/// and does not find `.a` by `.*`.
const OPTIONS: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: false,
};

/// What a user names as input: a file, a directory, or a pattern of files like `logs/*/part-*.csv`.
#[derive(Clone, Debug)]
pub(crate) struct InputPath {
    /// Absolute.
    path: PathBuf,
    /// If it can be one: absolute, with its directory taken as it is.
    pattern: Option<String>,
}

impl InputPath {
    /// Makes one of what a user wrote, which is relative to `directory`.
    pub(crate) fn new(directory: &Path, written: &Path) -> Self {
        let pattern =
            written.to_str().filter(|text| text.contains(['*', '?', '['])).and_then(|text| {
                if written.is_absolute() {
                    return Some(text.to_owned());
                }
                let directory = Pattern::escape(directory.to_str()?);
                Some(format!("{}/{text}", directory.trim_end_matches('/')))
            });
        Self { path: directory.join(written), pattern }
    }

    /// What is there now: the file or directory, or the files that match; nothing that cannot be
    /// looked at.
    pub(crate) fn found(&self) -> Vec<PathBuf> {
        match self.as_pattern().map(|pattern| glob_with(pattern, OPTIONS)) {
            Some(Ok(paths)) => paths.filter_map(Result::ok).collect(),
            Some(Err(_)) | None => vec![self.path.clone()],
        }
    }

    /// The files to read, sorted by path.
    pub(super) fn list(&self) -> Result<Vec<InputFile>, String> {
        if let Some(pattern) = self.as_pattern() {
            return matching(pattern);
        }
        let metadata = fs::metadata(&self.path).map_err(|error| self.cannot(&error))?;
        if metadata.is_dir() {
            return self.of_directory();
        }
        Ok(vec![InputFile::look(self.path.clone())?])
    }

    /// A file may be called like a pattern: then it is no pattern.
    fn as_pattern(&self) -> Option<&str> {
        self.pattern.as_deref().filter(|_| self.path.symlink_metadata().is_err())
    }

    fn of_directory(&self) -> Result<Vec<InputFile>, String> {
        let mut paths = BTreeSet::new();
        for entry in fs::read_dir(&self.path).map_err(|error| self.cannot(&error))? {
            let entry = entry.map_err(|error| self.cannot(&error))?;
            if hides(&entry.file_name().to_string_lossy()).is_none() {
                paths.insert(entry.path());
            }
        }
        if let Some(below) = paths.iter().find(|path| path.is_dir()) {
            return Err(format!(
                "the input {} holds a directory, {}, and only files directly in a directory are \
                 read; give {}/**/* for all files below it, or {}/* for those in it",
                self.path.display(),
                below.display(),
                self.path.display(),
                self.path.display()
            ));
        }
        paths.into_iter().map(InputFile::look).collect()
    }

    fn cannot(&self, error: &io::Error) -> String {
        format!(
            "cannot read the input {}: {error}; give a file, a directory of files, or a pattern \
             like logs/*.txt",
            self.path.display()
        )
    }
}

/// The files that match, without directories.
fn matching(pattern: &str) -> Result<Vec<InputFile>, String> {
    let paths = glob_with(pattern, OPTIONS)
        .map_err(|error| format!("the input {pattern} is no pattern of files: {error}"))?;
    let wanted = wanted_hidden(pattern);
    let literal = literal_components(pattern);
    let mut files = BTreeSet::new();
    let mut directories = 0;
    for path in paths {
        let path = path.map_err(|error| {
            format!("cannot read {} for {pattern}: {}", error.path().display(), error.error())
        })?;
        let below = path.components().skip(literal);
        let hidden = below.filter_map(|part| hides(&part.as_os_str().to_string_lossy()));
        if hidden.into_iter().any(|mark| !wanted.contains(&mark)) {
            continue;
        }
        if path.is_dir() {
            directories += 1;
        } else {
            files.insert(path);
        }
    }
    if !files.is_empty() {
        return files.into_iter().map(InputFile::look).collect();
    }
    let found = match directories {
        0 => "nothing".to_owned(),
        _ => format!("no file, only directories ({directories}); put /* behind it for their files"),
    };
    Err(format!("the input pattern {pattern} matches {found}"))
}

/// How a name says that it is hidden, if it does.
fn hides(name: &str) -> Option<char> {
    name.chars().next().filter(|first| matches!(first, '.' | '_'))
}

/// Marks of hidden names that a pattern asks for by itself.
fn wanted_hidden(pattern: &str) -> Vec<char> {
    pattern.split('/').skip(literal_components(pattern)).filter_map(hides).collect()
}

/// How many components stand before the first that is a pattern, the root among them.
fn literal_components(pattern: &str) -> usize {
    let has_no_pattern = |part: &&str| !part.contains(['*', '?', '[']);
    pattern.split('/').take_while(has_no_pattern).count()
}

#[cfg(test)]
mod tests;
