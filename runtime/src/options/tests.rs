use std::collections::BTreeSet;

use expect_test::expect;
use proptest::prelude::*;

use super::*;

const MAX: &str = "execution.batch.adaptive.auto-parallelism.max-parallelism";

fn error(key: &str, value: &str) -> String {
    Options::from_settings([(key, value)]).unwrap_err().to_string()
}

#[test]
fn the_defaults_are_those_that_are_documented() {
    let table: Vec<String> = Options::table()
        .iter()
        .map(|option| format!("{} = {} ({})\n", option.key, option.default, option.kind))
        .collect();
    expect![[r"
        execution.batch.job-recovery.enabled = true (true or false)
        execution.batch.job-recovery.operator-coordinator-snapshot.min-pause = 3 min (duration)
        execution.batch.job-recovery.previous-worker.recovery.timeout = 30 s (duration)
        job-event.store.type = sled (sled or file or memory)
        job-event.store.write-buffer.size = 1 mb (size)
        job-event.store.write-buffer.flush-interval = 1 s (duration)
        job-event.store.unavailable-timeout = 10 min (duration)
        taskmanager.registration.timeout = 5 min (duration)
        taskmanager.reconnect-grace = 5 s (duration)
        taskmanager.drain-timeout = 10 s (duration)
        heartbeat.interval = 10 s (duration)
        heartbeat.timeout = 50 s (duration)
        taskmanager.memory.task.size = 128 mb (size)
        execution.batch.adaptive.auto-parallelism.min-parallelism = 1 (number)
        execution.batch.adaptive.auto-parallelism.max-parallelism = 128 (number)
        execution.batch.adaptive.auto-parallelism.avg-data-volume-per-task = 16 mb (size)
        execution.batch.adaptive.auto-parallelism.default-source-parallelism = input bytes / avg-data-volume-per-task, from 1 to 1024 (number)
        restart-strategy.fixed-delay.attempts = 3 (number)
        restart-strategy.fixed-delay.delay = 1 s (duration)
        restart-strategy.type = fixed-delay (fixed-delay or none)
    "]].assert_eq(&table.concat());
}

#[test]
fn no_settings_are_the_defaults() {
    assert_eq!(Options::from_settings([]), Ok(Options::default()));
    assert_eq!(Options::default().to_settings(), []);
}

#[test]
fn each_default_can_be_set() {
    for option in Options::table() {
        let derived = option.key.ends_with("default-source-parallelism");
        let value = if derived { "1" } else { option.default.as_str() };
        let options = Options::from_settings([(option.key, value)]).unwrap();
        let source_parallelism = derived.then_some(1);
        assert_eq!(options, Options { source_parallelism, ..Options::default() });
    }
}

#[test]
fn no_two_options_have_a_name_in_common() {
    let mut names = BTreeSet::new();
    for option in Options::table() {
        for name in option.aliases.iter().chain([&option.key]) {
            assert!(names.insert(*name), "{name}");
        }
    }
}

#[test]
fn settings_are_read_in_flinks_forms() {
    let options = Options::from_settings([
        ("execution.batch.job-recovery.enabled", "FALSE"),
        ("job-event.store.write-buffer.size", "64 kb"),
        ("job-event.store.write-buffer.flush-interval", "0"),
        ("job-event.store.type", "file"),
        ("restart-strategy.fixed-delay.delay", " 3 min "),
        (MAX, "7"),
    ])
    .unwrap();
    let expected = Options {
        recovery_enabled: false,
        write_buffer_bytes: 65_536,
        flush_interval: Duration::ZERO,
        store: StoreKind::File,
        restart_delay: Duration::from_mins(3),
        max_parallelism: 7,
        ..Options::default()
    };
    assert_eq!(options, expected);
}

#[test]
fn an_alias_is_the_same_option_and_the_last_value_counts() {
    let settings = [
        ("execution.batch.job-recovery.operator-coordinator-snapshot.min-pause", "1 s"),
        ("execution.batch.job-recovery.snapshot.min-pause", "0"),
    ];
    let options = Options::from_settings(settings).unwrap();
    assert_eq!(options.snapshot_min_pause, Duration::ZERO);
    let options = Options::from_settings(settings.into_iter().rev()).unwrap();
    assert_eq!(options.snapshot_min_pause, Duration::from_secs(1));
}

#[test]
fn without_a_restart_strategy_the_first_failure_counts() {
    let attempts = ("restart-strategy.fixed-delay.attempts", "9");
    let strategy = |name| ("restart-strategy.type", name);
    for (settings, expected) in [
        ([strategy("none"), attempts], 0),
        ([attempts, strategy("none")], 0),
        ([attempts, strategy("fixed-delay")], 9),
    ] {
        assert_eq!(Options::from_settings(settings).unwrap().restart_attempts, expected);
    }
}

#[test]
fn partitions_may_be_kept_for_ever() {
    let options = Options::from_settings([("taskmanager.registration.timeout", "unlimited")]);
    let options = options.unwrap();
    assert_eq!(options.registration_timeout, Options::UNLIMITED);
    assert!(error("taskmanager.reconnect-grace", "unlimited").contains("use a time"));
}

#[test]
fn an_unknown_key_names_the_nearest() {
    assert_eq!(
        error("taskmanager.registration.time-out", "1 s"),
        "there is no option \"taskmanager.registration.time-out\" (did you mean \
         `taskmanager.registration.timeout`?); `config` lists all"
    );
    assert!(error("max-parallelism", "1").contains(&format!("did you mean `{MAX}`?")));
    assert_eq!(error("colour", "red"), "there is no option \"colour\"; `config` lists all");
}

#[test]
fn a_bad_value_names_key_value_and_what_is_allowed() {
    for (key, value, expected) in [
        (MAX, "0", format!("cannot set {MAX} to \"0\": use a whole number from 1 to 100000")),
        (
            "taskmanager.reconnect-grace",
            "5",
            "cannot set taskmanager.reconnect-grace to \"5\": use a time with its unit, such as \
             `30 s`, `3 min` or `500 ms`"
                .to_owned(),
        ),
        (
            "job-event.store.type",
            "redis",
            "cannot set job-event.store.type to \"redis\": use one of `sled`, `file`, `memory`"
                .to_owned(),
        ),
    ] {
        assert_eq!(error(key, value), expected);
    }
    for (key, value) in [
        ("execution.batch.adaptive.auto-parallelism.default-source-parallelism", "0"),
        ("execution.batch.adaptive.auto-parallelism.min-parallelism", "+1"),
        ("execution.batch.adaptive.auto-parallelism.avg-data-volume-per-task", "0"),
        ("execution.batch.job-recovery.enabled", "yes"),
        ("restart-strategy.fixed-delay.attempts", "-1"),
        ("restart-strategy.type", "exponential-delay"),
    ] {
        assert!(error(key, value).starts_with(&format!("cannot set {key} to {value:?}: use ")));
    }
}

#[test]
fn bounds_that_contradict_each_other_are_refused() {
    let error = error("execution.batch.adaptive.auto-parallelism.min-parallelism", "129");
    assert!(error.contains("is 129, above max-parallelism which is 128"), "{error}");
}

#[test]
fn options_of_the_caller_are_legal_and_suggested() {
    let others = [ConfigOption {
        key: "taskmanager.numberOfTaskSlots",
        aliases: &["slots"],
        default: "1".to_owned(),
        kind: ValueKind::Count { min: 1, max: 1024 },
        meaning: "slots",
        flink: true,
    }];
    let read = |key| Options::from_settings_beside([(key, "4")], &others);
    assert_eq!(read("taskmanager.numberOfTaskSlots"), Ok(Options::default()));
    assert_eq!(read("slots"), Ok(Options::default()));
    let error = read("numberOfTaskSlots").unwrap_err().to_string();
    assert!(error.contains("did you mean `taskmanager.numberOfTaskSlots`?"), "{error}");
}

proptest! {
    #[test]
    fn options_survive_their_settings(
        numbers in proptest::array::uniform4(1_u32..100),
        times in proptest::array::uniform4(0_u64..1 << 40),
        size in 1_u64..1 << 40,
        flags in any::<(bool, bool, bool)>(),
    ) {
        let [low, more, source, restarts] = numbers;
        let [pause, grace, retention, delay] = times.map(Duration::from_millis);
        let options = Options {
            recovery_enabled: flags.0,
            source_parallelism: flags.1.then_some(source),
            restart_attempts: if flags.2 { restarts } else { 0 },
            registration_timeout: if flags.2 { retention } else { Options::UNLIMITED },
            store: if flags.1 { StoreKind::Memory } else { StoreKind::File },
            min_parallelism: low,
            max_parallelism: low + more,
            snapshot_min_pause: pause,
            reconnect_grace: grace,
            restart_delay: delay,
            task_memory_bytes: size,
            ..Options::default()
        };
        let settings = options.to_settings();
        let settings = settings.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        prop_assert_eq!(Options::from_settings(settings), Ok(options));
    }
}
