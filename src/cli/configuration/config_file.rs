//! Files of settings: YAML with Flink's keys, nested or with dots.
//!
//! ```yaml
//! jobmanager:
//!   rpc.port: 6123
//! taskmanager.numberOfTaskSlots: 4
//! jobmanager.rpc.addresses: [host-a:6123, host-b:6123]
//! ```
//! Values are taken as they are written, whatever type YAML gives them; lists are joined by commas.

use std::{
    collections::BTreeMap,
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
};

use saphyr_parser::{Event, Marker, Parser, ScalarStyle};

use super::{super::error::CliError, Origin, Setting};

/// Longest file that is read: a file of settings has a few lines.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// How deep keys may be nested.
const DEPTH_MAX: usize = 32;

/// Reads a file of settings.
///
/// # Errors
/// When it cannot be read, is no YAML, or not of this form: the text names file and line.
pub(super) fn read(path: &Path) -> Result<Vec<Setting>, CliError> {
    let text = content(path).map_err(|reason| {
        CliError::Usage(format!("cannot read the settings in {}: {reason}", path.display()))
    })?;
    Reader { path: path.to_owned(), settings: Vec::new(), open: Vec::new() }.read(&text)
}

fn content(path: &Path) -> Result<String, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut text = String::new();
    file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(|error| error.to_string())?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("it is longer than {FILE_BYTES_MAX} bytes; is it the right file?"));
    }
    Ok(text)
}

/// Where in the file we are.
enum Open {
    /// In a mapping, before a key.
    Mapping { prefix: String },
    /// In a mapping, behind a key.
    Value { key: String },
    /// In a list.
    List { items: Vec<String>, line: usize },
}

struct Reader {
    path: PathBuf,
    settings: Vec<Setting>,
    open: Vec<Open>,
}

impl Reader {
    fn read(mut self, text: &str) -> Result<Vec<Setting>, CliError> {
        let mut is_first = true;
        for event in Parser::new_from_str(text) {
            let (event, span) = event.map_err(|error| {
                self.wrong(error.marker(), &format!("no YAML: {}", error.info()))
            })?;
            match event {
                Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
                Event::DocumentStart(_) if std::mem::take(&mut is_first) => {}
                Event::DocumentStart(_) => {
                    return Err(self.wrong(&span.start, "a second document; one is read"));
                }
                Event::Alias(_) => {
                    return Err(self.wrong(&span.start, "an alias; write the value itself"));
                }
                Event::Scalar(text, style, _, _) => self.scalar(&text, style, &span.start)?,
                Event::SequenceStart(..) => self.list(&span.start)?,
                Event::SequenceEnd => self.end_list(),
                Event::MappingStart(..) => self.mapping(&span.start)?,
                Event::MappingEnd => self.end_mapping(),
            }
        }
        self.check_repetitions()?;
        Ok(self.settings)
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, at: &Marker) -> Result<(), CliError> {
        let empty = style == ScalarStyle::Plain && matches!(text, "" | "~" | "null");
        match self.open.last_mut() {
            // A file of comments alone.
            None if empty => Ok(()),
            None => Err(self.wrong(at, &format!("{text:?} is no setting: write KEY: VALUE"))),
            Some(Open::Mapping { prefix }) => {
                let key = format!("{prefix}{}", text.trim());
                self.open.push(Open::Value { key });
                Ok(())
            }
            Some(Open::Value { key }) if empty => {
                let text = format!("{key} has no value; write one, or leave the line out");
                Err(self.wrong(at, &text))
            }
            Some(Open::Value { .. }) => {
                self.set(text.trim().to_owned(), at.line());
                Ok(())
            }
            Some(Open::List { items, .. }) => {
                items.push(text.trim().to_owned());
                Ok(())
            }
        }
    }

    /// Ends the value of the key that is open.
    fn set(&mut self, value: String, line: usize) {
        if let Some(Open::Value { key }) = self.open.pop() {
            let origin = Origin::File { path: self.path.clone(), line };
            self.settings.push(Setting { key, value, origin });
        }
    }

    fn list(&mut self, at: &Marker) -> Result<(), CliError> {
        if !matches!(self.open.last(), Some(Open::Value { .. })) {
            return Err(self.wrong(at, "a list where a setting is to stand: write KEY: VALUE"));
        }
        self.open.push(Open::List { items: Vec::new(), line: at.line() });
        Ok(())
    }

    fn end_list(&mut self) {
        if let Some(Open::List { items, line }) = self.open.pop() {
            self.set(items.join(","), line);
        }
    }

    fn mapping(&mut self, at: &Marker) -> Result<(), CliError> {
        if self.open.len() >= DEPTH_MAX {
            return Err(self.wrong(at, "keys are nested too deep"));
        }
        let prefix = match self.open.last() {
            None => String::new(),
            Some(Open::Value { key }) => format!("{key}."),
            Some(Open::Mapping { .. } | Open::List { .. }) => {
                return Err(self.wrong(at, "a mapping where a text is to stand"));
            }
        };
        self.open.push(Open::Mapping { prefix });
        Ok(())
    }

    fn end_mapping(&mut self) {
        self.open.pop();
        // The key that it was the value of.
        if matches!(self.open.last(), Some(Open::Value { .. })) {
            self.open.pop();
        }
    }

    /// Refuses a key that stands twice: the user means one of the two.
    fn check_repetitions(&self) -> Result<(), CliError> {
        let mut seen = BTreeMap::new();
        for Setting { key, origin, .. } in &self.settings {
            if let Some(first) = seen.insert(key, origin) {
                let text = format!("{key} is set a second time; it is set at {first} already");
                return Err(CliError::Usage(origin.before(&text)));
            }
        }
        Ok(())
    }

    fn wrong(&self, at: &Marker, text: &str) -> CliError {
        let origin = Origin::File { path: self.path.clone(), line: at.line() };
        CliError::Usage(origin.before(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Result<Vec<(String, String, usize)>, String> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config.yaml");
        std::fs::write(&path, text).unwrap();
        let settings = read(&path).map_err(|error| error.to_string())?;
        let line = |setting: Setting| {
            let Origin::File { line, .. } = setting.origin else { panic!("{setting:?}") };
            (setting.key, setting.value, line)
        };
        Ok(settings.into_iter().map(line).collect())
    }

    #[test]
    fn keys_may_be_nested_or_have_dots() {
        let text = "\
# a comment
jobmanager:
  rpc:
    port: 6123
    addresses: [a:1, b:2]
  bind-host: '0.0.0.0'
taskmanager.numberOfTaskSlots: 4
heartbeat: {interval: 5 s}
execution.batch:
  job-recovery.enabled: true
regrow.data-dir: >-
  /data/regrow
";
        let read = read_text(text).unwrap();
        let read: Vec<(&str, &str, usize)> =
            read.iter().map(|(key, value, line)| (&**key, &**value, *line)).collect();
        assert_eq!(
            read,
            [
                ("jobmanager.rpc.port", "6123", 4),
                ("jobmanager.rpc.addresses", "a:1,b:2", 5),
                ("jobmanager.bind-host", "0.0.0.0", 6),
                ("taskmanager.numberOfTaskSlots", "4", 7),
                ("heartbeat.interval", "5 s", 8),
                ("execution.batch.job-recovery.enabled", "true", 10),
                ("regrow.data-dir", "/data/regrow", 12),
            ]
        );
        assert_eq!(read_text("").unwrap(), []);
        assert_eq!(read_text("# nothing\n---\n").unwrap(), []);
    }

    #[test]
    fn what_is_no_setting_is_refused_with_its_line() {
        for (text, line, word) in [
            ("\njobmanager.rpc.port\n", 2, "KEY: VALUE"),
            ("- a\n", 1, "list"),
            ("a: b\n--- \nc: d\n", 2, "second document"),
            ("a: &x 1\nb: *x\n", 2, "alias"),
            ("a: 1\nb:\nc: 2\n", 2, "b has no value"),
            ("a.b: 1\na:\n  b: 2\n", 3, "a second time"),
            ("a: [b, {c: d}]\n", 1, "mapping"),
            ("a: \"open\n", 1, "no YAML"),
            ("a: 1\n\tb: 2\n", 1, "no YAML"),
        ] {
            let error = read_text(text).unwrap_err();
            assert!(error.contains(word), "{text:?}: {error}");
            assert!(error.contains(&format!("config.yaml:{line}: ")), "{text:?}: {error}");
        }
        let deep: String =
            (0..40).fold(String::new(), |text, depth| format!("{text}{}a:\n", " ".repeat(depth)));
        assert!(read_text(&deep).unwrap_err().contains("too deep"));
        let long = "#".repeat(usize::try_from(FILE_BYTES_MAX).unwrap() + 1);
        assert!(read_text(&long).unwrap_err().contains("longer than"));
        let missing = read(Path::new("/no/such/file.yaml")).unwrap_err().to_string();
        assert!(missing.contains("/no/such/file.yaml"), "{missing}");
    }
}
