//! Rules of the house that a machine can check: who may import whom, and how long a file may be.

#![expect(clippy::expect_used, reason = "what cargo and git print has a known form")]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

/// Lines that a source file may have, tests included.
const FILE_LINES_MAX: usize = 600;

/// The normal dependencies of each crate on others of this workspace.
const EDGES: [(&str, &[&str]); 6] = [
    ("regrow-protocol", &[]),
    ("regrow-runtime", &["regrow-protocol"]),
    ("regrow-shuffle", &["regrow-protocol"]),
    ("regrow-store", &["regrow-protocol"]),
    ("regrow-actors", &["regrow-protocol", "regrow-runtime", "regrow-shuffle", "regrow-store"]),
    ("regrow", &["regrow-actors", "regrow-protocol", "regrow-runtime", "regrow-store"]),
];

/// Who alone may name a library.
const OWNERS: [(&str, &str); 3] =
    [("actix", "regrow-actors"), ("actix-rt", "regrow-actors"), ("sled", "regrow-store")];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// (crate, its normal dependencies) as cargo sees them.
fn dependencies() -> Vec<(String, BTreeSet<String>)> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo prints metadata");
    let packages = metadata["packages"].as_array().expect("there are packages");
    let name = |value: &Value| value["name"].as_str().expect("a name").to_owned();
    packages
        .iter()
        .map(|package| {
            let all = package["dependencies"].as_array().expect("dependencies");
            let normal = all.iter().filter(|dependency| dependency["kind"].is_null());
            (name(package), normal.map(name).collect())
        })
        .collect()
}

#[test]
fn crates_import_only_what_the_design_allows() {
    for (package, dependencies) in dependencies() {
        let (_, allowed) = EDGES.iter().find(|(name, _)| *name == package).expect("a known crate");
        let ours: Vec<&String> =
            dependencies.iter().filter(|name| name.starts_with("regrow")).collect();
        assert_eq!(ours, *allowed, "{package}");
        for (library, owner) in OWNERS {
            assert!(
                package == owner || !dependencies.contains(library),
                "{package} imports {library}, which is {owner}'s"
            );
        }
        let pure = package == "regrow-runtime" || package == "regrow-protocol";
        assert!(!pure || !dependencies.contains("tokio"), "{package} is pure");
    }
}

#[test]
fn files_are_short_and_named_after_what_they_hold() {
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.rs"])
        .current_dir(root())
        .output();
    let listed = output.expect("git runs").stdout;
    let files: Vec<PathBuf> = String::from_utf8(listed)
        .expect("names are UTF-8")
        .split_terminator('\0')
        .map(PathBuf::from)
        .collect();
    assert!(files.len() > 50, "git lists the sources: {}", files.len());
    for file in files {
        let name = file.file_name().and_then(|name| name.to_str()).expect("a name");
        let vague = ["mod.rs", "utils.rs", "common.rs", "helpers.rs", "types.rs", "misc.rs"];
        assert!(!vague.contains(&name), "{} says nothing of its content", file.display());
        let Ok(text) = fs::read_to_string(root().join(&file)) else { continue };
        let lines = text.lines().count();
        assert!(lines <= FILE_LINES_MAX, "{} has {lines} lines", file.display());
    }
}
