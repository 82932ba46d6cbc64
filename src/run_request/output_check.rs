//! Refuses a new job whose output would harm what is there, before it is accepted.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use regrow_runtime::SinkSpec;

use super::Refusal;
use crate::sources::InputPath;

/// Checks that the directories of `sinks` are free, unless they may be overwritten. It spares a user
/// a job that was accepted only to fail; what happens later is judged when the job begins.
pub(crate) fn check_free(sinks: &[SinkSpec]) -> Result<(), Refusal> {
    for sink in sinks.iter().filter(|sink| !sink.overwrite) {
        let found = first_visible(Path::new(&sink.directory)).map_err(|error| {
            Refusal(format!("cannot list the output directory {}: {error}", sink.directory))
        })?;
        if let Some(found) = found {
            return Err(Refusal(format!(
                "the output directory {} is not empty: it holds {found:?}; choose another directory, \
                 or pass --overwrite to replace its part files",
                sink.directory
            )));
        }
    }
    Ok(())
}

/// Checks that no sink overwrites what the job reads: its part files would replace the input, and
/// those without a successor would be removed.
pub(crate) fn check_inputs_stay(inputs: &[InputPath], sinks: &[SinkSpec]) -> Result<(), Refusal> {
    for sink in sinks.iter().filter(|sink| sink.overwrite) {
        // What is not there can neither be read nor replaced.
        let Ok(directory) = fs::canonicalize(&sink.directory) else { continue };
        let holds = |input: &PathBuf| {
            fs::canonicalize(input)
                .is_ok_and(|input| input == directory || input.parent() == Some(&*directory))
        };
        if let Some(input) = inputs.iter().flat_map(InputPath::found).find(holds) {
            return Err(Refusal(format!(
                "the output directory {} holds the input {}, which --overwrite would replace; \
                 choose another directory for the output",
                sink.directory,
                input.display()
            )));
        }
    }
    Ok(())
}

/// The first entry of a directory, by name, that is not hidden; none if there is no directory.
fn first_visible(directory: &Path) -> io::Result<Option<String>> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut first: Option<String> = None;
    for entry in entries {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !name.starts_with('.') && first.as_ref().is_none_or(|first| name < *first) {
            first = Some(name);
        }
    }
    Ok(first)
}

#[cfg(test)]
mod tests {
    use regrow_protocol::JobVertexId;

    use super::*;

    #[test]
    fn only_what_is_visible_and_may_not_be_replaced_is_in_the_way() {
        let directory = tempfile::tempdir().unwrap();
        let sink = |overwrite| SinkSpec {
            vertex: JobVertexId(0),
            directory: directory.path().to_str().unwrap().to_owned(),
            overwrite,
        };
        fs::write(directory.path().join(".hidden"), "").unwrap();
        assert!(check_free(&[sink(false)]).is_ok());
        fs::write(directory.path().join("part-00000.csv"), "").unwrap();
        assert!(check_free(&[sink(true)]).is_ok());
        let error = check_free(&[sink(false)]).unwrap_err().to_string();
        assert!(error.contains("part-00000.csv") && error.contains("--overwrite"), "{error}");
        let missing = SinkSpec { directory: "/no/such/output".to_owned(), ..sink(false) };
        assert!(check_free(&[missing]).is_ok());
    }

    #[test]
    fn an_input_is_never_overwritten_by_the_output() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::create_dir_all(path("data/below")).unwrap();
        fs::write(path("data/part-00000.csv"), "").unwrap();
        std::os::unix::fs::symlink(path("data"), path("link")).unwrap();
        let check = |input: &str, output: &str, overwrite| {
            let output = path(output).to_str().unwrap().to_owned();
            let sink = SinkSpec { vertex: JobVertexId(0), directory: output, overwrite };
            check_inputs_stay(&[InputPath::new(directory.path(), Path::new(input))], &[sink])
        };
        for input in ["data", "link", "data/part-00000.csv", "d*/*.csv", "**/part-*"] {
            let error = check(input, "data", true).unwrap_err().to_string();
            assert!(error.contains("--overwrite"), "{error}");
            assert!(check(input, "data", false).is_ok());
        }
        assert!(check("data", "link", true).is_err());
        assert!(check("data", "data/below", true).is_ok());
        assert!(check("data", "new", true).is_ok());
    }
}
