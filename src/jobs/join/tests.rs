//! A left join whose right file changes before the job is resumed.

use std::fs;

use regrow_protocol::{JobVertexId, TaskFailure};
use tempfile::TempDir;

use super::{Join, JoinType, build};
use crate::test_job::TestJob;

/// The vertex that counts the columns of the right file, and the one that joins.
const COUNT: JobVertexId = JobVertexId(2);
const JOIN: JobVertexId = JobVertexId(3);

const RIGHT: &str = "name,rank,about\na,1,x\n";

/// Joins, and does something before `vertex`, at which a process begins that knows of the files
/// nothing but what is data.
fn join(vertex: JobVertexId, before: impl FnOnce(&TempDir)) -> Result<Vec<String>, TaskFailure> {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("left.csv"), "id,site\n1,a\n2,b\n3,c\n4,d\n").unwrap();
    fs::write(directory.path().join("right.csv"), RIGHT).unwrap();
    let arguments = Join {
        left: directory.path().join("left.csv"),
        right: directory.path().join("right.csv"),
        left_key: "site".into(),
        right_key: "name".into(),
        kind: JoinType::Left,
        header: true,
        output: "/out".into(),
    };
    let job = TestJob::new(1 << 20, |env| build(env, arguments.clone()).unwrap());
    let mut lines = job.lines_resumed_at(vertex, |env| {
        before(&directory);
        build(env, arguments).unwrap();
    })?;
    lines.sort();
    Ok(lines)
}

fn write_right(directory: &TempDir, text: &str) {
    fs::write(directory.path().join("right.csv"), text).unwrap();
}

#[test]
fn p3_3_rows_are_as_wide_as_the_file_was_when_it_was_read() {
    let expected = ["1,a,a,1,x", "2,b,,,", "3,c,,,", "4,d,,,"];
    assert_eq!(join(JOIN, |_| {}).unwrap(), expected);
    let wider = |directory: &TempDir| write_right(directory, "name,rank,about,more\na,1,x,y\n");
    assert_eq!(join(JOIN, wider).unwrap(), expected);
    let empty = |directory: &TempDir| write_right(directory, "");
    assert_eq!(join(JOIN, empty).unwrap(), expected);
    let gone = |directory: &TempDir| fs::remove_file(directory.path().join("right.csv")).unwrap();
    assert_eq!(join(JOIN, gone).unwrap(), expected);
}

#[test]
fn p3_3_a_file_that_changed_between_its_two_listings_is_refused() {
    let error = join(COUNT, |directory| write_right(directory, "name,rank\na,1\n")).unwrap_err();
    let error = error.to_string();
    assert!(error.contains("right.csv changed while it was listed"), "{error}");
    assert!(error.contains("it had 2 columns, and has rows of 3"), "{error}");
}
