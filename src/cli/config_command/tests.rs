use std::fmt::Write as _;

use expect_test::expect_file;

use super::*;
use crate::cli::configuration::Origin;

/// What `docs/configuration.md` says before its table.
const INTRODUCTION: &str = "\
# Configuration

Keys, values and units are Flink's where Flink has them (marked ✓): durations such as `30 s`, `3 min` or `500 ms`, sizes such as `64 kb` or `1 mb` in steps of 1024.
A setting comes from, in the order in which later ones win:

1. the default;
2. a file: that of `-c FILE`, or else `config.yaml` in the directory that the environment variable `REGROW_CONF_DIR` names. Without either, no file is read;
3. the environment: the variable in the table; an empty one says nothing;
4. `-D key=value`, as often as needed; the last one of a key counts;
5. a flag that says the same: `--data-dir`, `--slots`.

`regrow config` shows the value of each option and where it came from, for the same `-c`, `-D` and environment as any other command; `--json` for programs. A run that goes on with `run --resume` keeps the settings it began with, but for those that `-D` gives.
A key that does not exist is an error that names the nearest one, also in a file that has more than the command needs; a value that is not allowed is an error with file and line.

A file is YAML, with keys nested, with dots, or both:

```yaml
jobmanager:
  rpc.port: 6123-6130
  rpc.addresses: [host-a:6123, host-b:6123]
taskmanager.numberOfTaskSlots: 4
restart-strategy:
  fixed-delay: {attempts: 5, delay: 2 s}
```

Further variables: `REGROW_LOG` asks for the program's log on standard error, such as `info` or `regrow_actors=debug`.
";

/// The document of all options.
fn document() -> String {
    let mut text = INTRODUCTION.to_owned();
    text.push_str("\n| key | default | unit | Flink | meaning | environment |\n");
    text.push_str("|---|---|---|---|---|---|\n");
    for option in all_options() {
        let mut meaning = option.meaning.to_owned();
        for alias in option.aliases {
            write!(meaning, "; also `{alias}`").unwrap();
        }
        let flink = if option.flink { "✓" } else { "" };
        let (key, default, unit) = (option.key, &option.default, option.kind);
        let variable = variable(key);
        writeln!(text, "| `{key}` | `{default}` | {unit} | {flink} | {meaning} | `{variable}` |")
            .unwrap();
    }
    text
}

/// When options changed, `UPDATE_EXPECT=1 cargo test -p regrow --lib the_document_of_options` writes
/// the document anew.
#[test]
fn the_document_of_options_is_that_of_the_program() {
    expect_file!["../../../docs/configuration.md"].assert_eq(&document());
}

#[test]
fn an_option_is_shown_with_its_value_and_where_that_came_from() {
    let options = all_options();
    let option = options.iter().find(|option| option.key == "jobmanager.rpc.port").unwrap();
    let origin = Origin::File { path: "/etc/regrow/config.yaml".into(), line: 3 };
    let setting = Setting { key: option.key.to_owned(), value: "7000".to_owned(), origin };
    let shown = text(option, Some(&setting));
    assert!(shown.contains("value: 7000 (from /etc/regrow/config.yaml:3)"), "{shown}");
    assert!(!text(option, None).contains("value"));
    let line: Value = serde_json::from_str(&json_line(option, Some(&setting))).unwrap();
    assert_eq!((&line["value"], &line["source"]), (&json!("7000"), &json!("file")));
    assert_eq!(line["place"], "/etc/regrow/config.yaml:3");
    let line: Value = serde_json::from_str(&json_line(option, None)).unwrap();
    assert_eq!((&line["value"], &line["source"]), (&json!("6123"), &json!("default")));
}
