use super::*;

const ATTEMPTS: &str = "restart-strategy.fixed-delay.attempts";
const PORT: &str = "jobmanager.rpc.port";

/// Flags with a file of this text, if any, and these settings.
struct Given {
    directory: tempfile::TempDir,
    flags: DataFlags,
}

impl Given {
    fn new(file: &str, settings: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(FILE_NAME);
        std::fs::write(&path, file).unwrap();
        let settings = settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let config = (!file.is_empty()).then_some(path);
        let flags = DataFlags { config, data_dir: None, settings: settings.collect() };
        Self { directory, flags }
    }

    fn load(&self, variables: &[(&str, &str)]) -> Result<Configuration, String> {
        let variables = variables.iter().map(|(name, value)| (name.into(), value.into()));
        Configuration::of(&self.flags, variables).map_err(|error| error.to_string())
    }
}

fn load(
    file: &str,
    variables: &[(&str, &str)],
    settings: &[(&str, &str)],
) -> Result<Configuration, String> {
    Given::new(file, settings).load(variables)
}

#[test]
fn what_is_nearer_to_the_command_line_wins() {
    let variable = ("REGROW_RESTART_STRATEGY_FIXED_DELAY_ATTEMPTS", "5");
    let file = "restart-strategy:\n  fixed-delay.attempts: 4\n";
    for (file, variables, settings, expected) in [
        ("", &[][..], &[][..], 3),
        (file, &[], &[], 4),
        (file, &[variable], &[], 5),
        (file, &[variable], &[(ATTEMPTS, "6"), (ATTEMPTS, "7")], 7),
    ] {
        let configuration = load(file, variables, settings).unwrap();
        assert_eq!(configuration.options().unwrap().restart_attempts, expected);
    }
}

#[test]
fn the_data_directory_is_that_of_the_flag_then_the_setting() {
    let mut given = Given::new("regrow: {data-dir: /x}\n", &[]);
    let variables = [("REGROW_DATA_DIR", "/y")];
    assert_eq!(given.load(&[]).unwrap().directory(), PathBuf::from("/x"));
    assert_eq!(given.load(&variables).unwrap().directory(), PathBuf::from("/y"));
    given.flags.data_dir = Some(PathBuf::from("/z"));
    assert_eq!(given.load(&variables).unwrap().directory(), PathBuf::from("/z"));
    assert_eq!(load("", &[], &[]).unwrap().directory(), data_directory_default());
}

#[test]
fn a_data_directory_that_cannot_be_one_is_refused() {
    let mut given = Given::new("", &[]);
    for (path, reason) in [("/dev/null", "no directory"), ("/dev/null/below", "no directory")] {
        given.flags.data_dir = Some(PathBuf::from(path));
        let error = given.load(&[]).unwrap_err();
        let named = error.contains(path) && error.contains("--data-dir");
        assert!(named && error.contains(reason), "{error}");
    }
    given.flags.data_dir = Some(given.directory.path().join("new/below"));
    assert!(given.load(&[]).is_ok());
}

#[test]
fn a_directory_of_settings_is_read_unless_a_file_is_named() {
    let mut given = Given::new(&format!("{PORT}: 7000\n"), &[]);
    let named = given.flags.config.take();
    let directory = given.directory.path().to_str().unwrap().to_owned();
    let port = |configuration: &Configuration| configuration.value(PORT).map(str::to_owned);
    let variables = [(DIRECTORY_VARIABLE, &*directory)];
    assert_eq!(port(&given.load(&variables).unwrap()).as_deref(), Some("7000"));
    let nowhere = [(DIRECTORY_VARIABLE, "/no/such/place")];
    let error = given.load(&nowhere).unwrap_err();
    assert!(error.contains("/no/such/place") && error.contains("-c"), "{error}");
    given.flags.config = named;
    assert_eq!(port(&given.load(&nowhere).unwrap()).as_deref(), Some("7000"));
    assert!(port(&load("", &[(DIRECTORY_VARIABLE, "")], &[]).unwrap()).is_none());
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let error = load("\njobmanager:\n  rpc.prt: 1\n", &[], &[]).unwrap_err();
    assert!(error.contains("config.yaml:3: ") && error.contains(PORT), "{error}");
    let error = load("heartbeat.interval: soon\n", &[], &[]).unwrap_err();
    assert!(error.contains("config.yaml:1: ") && error.contains("30 s"), "{error}");
    let error = load("a: b\n", &[], &[(PORT, "1")]).unwrap_err();
    assert!(error.contains("config.yaml:1: ") && error.contains("\"a\""), "{error}");
    let error = load(&format!("{PORT}: 70000\n"), &[], &[]).unwrap_err();
    assert!(error.contains("config.yaml:1: ") && error.contains("6123-6130"), "{error}");
    let error = load("", &[("REGROW_JOBMANAGER_RPC_PORT", "x")], &[]).unwrap_err();
    assert!(error.starts_with("REGROW_JOBMANAGER_RPC_PORT: "), "{error}");
    let error = load("", &[], &[("restart-strategy.fixed-delay.atempts", "1")]).unwrap_err();
    assert!(error.starts_with("there is no option") && error.contains(ATTEMPTS), "{error}");
}

#[test]
fn a_slip_in_the_name_of_a_variable_is_told_and_strange_ones_are_left_alone() {
    let error = load("", &[("REGROW_JOBMANAGER_RPC_PROT", "1")], &[]).unwrap_err();
    assert!(error.contains("REGROW_JOBMANAGER_RPC_PORT"), "{error}");
    let error = load("", &[("REGROW_LOGS", "info")], &[]).unwrap_err();
    assert!(error.contains("REGROW_LOG?"), "{error}");
    let strange = [("REGROW_SERVICE_HOST", "10.0.0.1"), ("REGROW_LOG", "info"), ("HOME", "/")];
    assert!(load("", &strange, &[]).is_ok());
}

#[test]
fn each_option_has_a_variable_of_its_own() {
    let mut names: Vec<String> = all_options().iter().map(|option| variable(option.key)).collect();
    assert!(names.contains(&"REGROW_TASKMANAGER_NUMBER_OF_TASK_SLOTS".to_owned()), "{names:?}");
    assert!(names.contains(&"REGROW_DATA_DIR".to_owned()), "{names:?}");
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn a_run_goes_on_as_recorded_but_for_the_command_line() {
    let recorded = [(ATTEMPTS.to_owned(), "8".to_owned())];
    let file = format!("{ATTEMPTS}: 4\nheartbeat.interval: 1 s\n");
    let of_resumed = |settings: &[(&str, &str)]| {
        load(&file, &[], settings).unwrap().options_of_resumed(&recorded).unwrap()
    };
    let options = of_resumed(&[]);
    assert_eq!(options, Options { restart_attempts: 8, ..Options::default() });
    assert_eq!(of_resumed(&[(ATTEMPTS, "9")]).restart_attempts, 9);
}
