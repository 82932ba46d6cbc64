//! Wrong usage: exit code 2, and a message that says what to do.

#[expect(
    clippy::expect_used,
    clippy::panic,
    dead_code,
    reason = "a helper of tests, which share it"
)]
#[path = "support/sandbox.rs"]
mod sandbox;

use sandbox::Sandbox;

/// A command line and a word that its error must hold.
const WRONG: [(&str, &str); 20] = [
    ("", "Usage"),
    ("fly", "fly"),
    ("run", "wordcount"),
    ("run wordcont --input a --output b", "wordcount"),
    ("run wordcount --output b", "--input"),
    ("run wordcount --imput a --output b", "--input"),
    ("run stages", "--stage"),
    ("run stages --stage twenty", "20x2s"),
    ("run stages --stage 1x1s --fail stage=7,subtask=0,attempt=0", "stage 7"),
    ("run stages --stage 1x1s --slots 0", "slots"),
    ("run stages --stage 1x1s --kill-jobmaster-at soon", "100%"),
    ("run stages --stage 1x1s --job-id a/b", "A-Z"),
    ("run stages --stage 1x1s --overwrite", "--overwrite"),
    (
        "run stages --stage 1x1s -D restart-strategy.fixed-delay.atempts=1",
        "restart-strategy.fixed-delay.attempts",
    ),
    ("run stages --stage 1x1s -c missing.yaml", "missing.yaml"),
    ("list -D jobmanager.rpc.prt=1", "jobmanager.rpc.port"),
    ("generate text --output no/such/directory/file", "no/such/directory"),
    ("run --resume", "no interrupted run"),
    ("events unknown", "unknown"),
    ("store verify nothing-here", "nothing-here"),
];

#[test]
fn wrong_usage_exits_2_and_says_what_to_do() {
    let sandbox = Sandbox::new();
    for (line, word) in WRONG {
        let answer = sandbox.regrow(line);
        assert_eq!(answer.code, Some(2), "regrow {line}: {answer:?}");
        assert!(answer.err.contains(word), "regrow {line}: {}", answer.err);
        assert_eq!(answer.out, "", "regrow {line}");
    }
}

#[test]
fn an_output_that_can_never_be_published_is_refused_before_any_task() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("in"), "a b a").unwrap();
    std::fs::create_dir_all(sandbox.path("holds/part-00000.csv")).unwrap();
    std::fs::create_dir(sandbox.path("links")).unwrap();
    std::os::unix::fs::symlink(sandbox.path("in"), sandbox.path("links/part-00000.csv")).unwrap();
    std::fs::write(sandbox.path("file"), "mine").unwrap();
    for (output, word) in [
        ("holds --overwrite", "holds/part-00000.csv, which is a directory"),
        ("links --overwrite", "links/part-00000.csv, which is a link"),
        ("file", "file is a file and no directory; name a directory"),
        ("file --overwrite", "file is a file and no directory; name a directory"),
        ("file/below", "file is a file and no directory; name a directory"),
    ] {
        let line = format!("run wordcount --input in --ledger ledger --output {output}");
        let answer = sandbox.regrow(&line);
        assert_eq!(answer.code, Some(2), "regrow {line}: {answer:?}");
        assert!(answer.err.contains(word), "regrow {line}: {}", answer.err);
    }
    assert!(!sandbox.path("ledger").exists(), "no task ran");
}

#[test]
fn help_and_config_exit_0_on_standard_output() {
    let sandbox = Sandbox::new();
    assert!(sandbox.fine("run stages --help").out.contains("--kill-jobmaster-at"));
    assert!(sandbox.fine("config").out.contains("job-event.store.write-buffer.size"));
    std::fs::write(sandbox.path("file.yaml"), "jobmanager:\n  rpc.port: 7000\n").unwrap();
    let port = sandbox.fine("config jobmanager.rpc.port -c file.yaml --json").json();
    assert_eq!((&port["value"], &port["place"]), (&"7000".into(), &"file.yaml:2".into()));
    let line = "REGROW_JOBMANAGER_RPC_PORT=7001 config jobmanager.rpc.port -c file.yaml --json";
    let port = sandbox.fine(line).json();
    assert_eq!((&port["value"], &port["source"]), (&"7001".into(), &"environment".into()));
    let options = sandbox.fine("config --json").json_lines();
    assert!(
        options.iter().all(|option| option["key"].is_string() && option["meaning"].is_string())
    );
}

#[test]
fn generated_text_is_the_same_for_the_same_seed() {
    let sandbox = Sandbox::new();
    for output in ["a", "b"] {
        sandbox.fine(&format!("generate text --bytes 300kb --seed 7 --output {output}"));
    }
    let text = |name: &str| std::fs::read(sandbox.path(name)).unwrap();
    assert_eq!(text("a"), text("b"));
    assert!(text("a").len() >= 300 << 10);
}
