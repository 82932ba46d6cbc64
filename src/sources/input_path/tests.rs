//! Which files an input names.

use super::*;

fn tree(files: &[&str]) -> tempfile::TempDir {
    let directory = tempfile::Builder::new().prefix("in[put]-").tempdir().unwrap();
    for file in files {
        let path = directory.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "text\n").unwrap();
    }
    directory
}

/// Names of the files that `written` stands for, relative to `directory`.
fn list(directory: &Path, written: &str) -> Result<Vec<String>, String> {
    let files = InputPath::new(directory, Path::new(written)).list()?;
    let name = |file: &InputFile| file.path.strip_prefix(directory).unwrap().to_owned();
    Ok(files.iter().map(|file| name(file).to_str().unwrap().to_owned()).collect())
}

#[test]
fn a_directory_stands_for_its_visible_files_in_order() {
    let tree = tree(&["b", "a", ".hidden", "_SUCCESS", ".staging/x"]);
    assert_eq!(list(tree.path(), "").unwrap(), ["a", "b"]);
    assert_eq!(list(tree.path(), "_SUCCESS").unwrap(), ["_SUCCESS"]);
}

#[test]
fn p4_a_directory_below_the_input_is_not_skipped_silently() {
    let tree = tree(&["a", "2024/b"]);
    let error = list(tree.path(), "").unwrap_err();
    assert!(error.contains("2024") && error.contains("/**/*"), "{error}");
    assert_eq!(list(tree.path(), "*").unwrap(), ["a"]);
    assert_eq!(list(tree.path(), "**/*").unwrap(), ["2024/b", "a"]);
}

#[test]
fn a_pattern_stands_for_the_files_that_match_in_order() {
    let tree = tree(&[
        "logs/2024-01/part-1.csv",
        "logs/2024-01/part-0.csv",
        "logs/2024-02/part-0.csv",
        "logs/2024-02/part-0.txt",
        "logs/2025-01/part-0.csv",
        "logs/2024-02/_part-9.csv",
        "logs/_tmp/part-0.csv",
        "logs/.tmp/part-0.csv",
    ]);
    let found = list(tree.path(), "logs/2024-*/part-*.csv").unwrap();
    assert_eq!(
        found,
        ["logs/2024-01/part-0.csv", "logs/2024-01/part-1.csv", "logs/2024-02/part-0.csv"]
    );
    assert_eq!(list(tree.path(), "logs/**/*.csv").unwrap().len(), 4);
    assert_eq!(list(tree.path(), "logs/_*/*").unwrap(), ["logs/_tmp/part-0.csv"]);
    assert_eq!(list(tree.path(), "logs/.t*/*").unwrap(), ["logs/.tmp/part-0.csv"]);
    assert_eq!(list(tree.path(), "logs/_tmp/*").unwrap(), ["logs/_tmp/part-0.csv"]);
    let absolute = format!("{}/logs/2025*/*", Pattern::escape(tree.path().to_str().unwrap()));
    assert_eq!(list(tree.path(), &absolute).unwrap(), ["logs/2025-01/part-0.csv"]);
}

#[test]
fn a_file_called_like_a_pattern_is_itself() {
    let tree = tree(&["a[1]*", "a1x"]);
    assert_eq!(list(tree.path(), "a[1]*").unwrap(), ["a[1]*"]);
}

#[test]
fn what_matches_nothing_or_is_no_pattern_is_named() {
    let tree = tree(&["logs/a"]);
    let error = |written| list(tree.path(), written).unwrap_err();
    assert!(error("*.csv").contains("matches nothing"), "{}", error("*.csv"));
    assert!(error("l*").contains("only directories (1)"), "{}", error("l*"));
    assert!(error("[a").contains("no pattern"), "{}", error("[a"));
    assert!(error("nowhere").contains("nowhere"), "{}", error("nowhere"));
    assert!(error("logs/a/b").contains("logs/a/b"), "{}", error("logs/a/b"));
}

#[test]
fn links_that_go_in_circles_or_nowhere_are_named() {
    let tree = tree(&["a"]);
    for (name, target) in [("loop", "loop"), ("dangling", "nowhere")] {
        std::os::unix::fs::symlink(target, tree.path().join(name)).unwrap();
        for written in [name, "", "*"] {
            let error = list(tree.path(), written).unwrap_err();
            assert!(error.contains(name), "{error}");
        }
        fs::remove_file(tree.path().join(name)).unwrap();
    }
}

#[test]
fn p4_what_has_no_known_length_is_not_read_as_empty() {
    let tree = tree(&["a"]);
    let socket = tree.path().join("socket");
    let _bound = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    for written in ["/dev/zero", "/proc/self/status", "socket", ""] {
        let error = list(tree.path(), written).unwrap_err();
        assert!(error.contains("length"), "{error}");
    }
}
