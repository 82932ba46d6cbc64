//! The example of a source of a user's own: it reads all of it, whatever is killed.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

/// Builds the example as this test was built, and gives its path.
#[expect(clippy::expect_used, reason = "cargo runs this test, and puts programs where it says")]
fn example() -> PathBuf {
    let profile = Path::new(env!("CARGO_BIN_EXE_regrow")).parent().expect("a directory");
    let mut build = Command::new(env!("CARGO"));
    // With the features that the whole workspace asks for, or all of it would be built again.
    build.args(["build", "--quiet", "--offline", "--workspace", "--example", "custom_source"]);
    build.arg("--target-dir");
    build.arg(profile.parent().expect("a directory"));
    if profile.ends_with("release") {
        build.arg("--release");
    }
    build.current_dir(env!("CARGO_MANIFEST_DIR"));
    assert!(build.status().expect("cargo runs").success());
    profile.join("examples/custom_source")
}

/// An archive as `tar` makes it, as far as the example looks at it.
fn tar(files: &[(&str, &str)]) -> Vec<u8> {
    let mut archive = Vec::new();
    for (name, content) in files {
        let mut header = vec![0; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
        header[156] = b'0';
        archive.extend(header);
        archive.extend(content.as_bytes());
        archive.resize(archive.len().next_multiple_of(512), 0);
    }
    archive.resize(archive.len() + 1024, 0);
    archive
}

#[expect(clippy::expect_used, reason = "the example was built")]
fn run(directory: &Path, more: &[&str]) -> Output {
    let line = ["run", "tar", "texts.tar", "counts", "--slots", "2"];
    let mut run = Command::new(example());
    run.args(line).args(more).current_dir(directory).output().expect("the example runs")
}

#[test]
fn kills_of_its_coordinator_change_nothing_of_what_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let text = "a line of words\n".repeat(2_000);
    let names: Vec<String> = (0..40).map(|n| format!("text-{n}")).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (&**name, &*text)).collect();
    fs::write(directory.path().join("texts.tar"), tar(&files)).unwrap();
    let tasks = "execution.batch.adaptive.auto-parallelism.default-source-parallelism=8";
    let kills = ["-D", tasks, "--kill-jobmaster-at", "20%", "--kill-jobmaster-at", "60%:panic"];
    let output = run(directory.path(), &kills);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut lines: Vec<String> = fs::read_dir(directory.path().join("counts"))
        .unwrap()
        .map(|file| fs::read_to_string(file.unwrap().path()).unwrap())
        .flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    lines.sort();
    assert_eq!(lines, ["a,80000", "line,80000", "of,80000", "words,80000"]);
}

#[test]
fn p4_what_it_cannot_list_or_read_fails_the_job_with_its_words() {
    let directory = tempfile::tempdir().unwrap();
    let archive = tar(&[("text", "words\n")]);
    let mut latin = archive.clone();
    latin[512] = 0xff;
    for (content, expected) in [(&archive[..600], "cannot list"), (&latin, "UTF-8")] {
        fs::write(directory.path().join("texts.tar"), content).unwrap();
        let output = run(directory.path(), &[]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && said.contains(expected), "{said}");
    }
}
