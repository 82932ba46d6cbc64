//! Settings of a process of a cluster, beside those of its jobs.

use std::{
    net::{IpAddr, Ipv4Addr, ToSocketAddrs as _},
    ops::RangeInclusive,
    time::Duration,
};

use regrow_actors::cluster::{DataPlace, ShuffleServiceKind};
use regrow_runtime::{ConfigOption, Options, ValueKind, parse_duration};

use super::{configuration::Configuration, error::CliError, run_flags::data_directory_option};
use crate::run_request::{SLOTS_MAX, slots_default};

/// The setting that says how many tasks a `TaskManager` runs at once.
pub(crate) const SLOTS: &str = "taskmanager.numberOfTaskSlots";

const SLOTS_KIND: ValueKind = ValueKind::Count { min: 1, max: SLOTS_MAX };

const PORT: &str = "jobmanager.rpc.port";
const ADDRESSES: &str = "jobmanager.rpc.addresses";
const BIND_HOST: &str = "jobmanager.bind-host";
const DATA_PORT: &str = "taskmanager.data.port";
const DATA_BIND_HOST: &str = "taskmanager.bind-host";
const DATA_HOST: &str = "taskmanager.host";
const CLUSTER_ID: &str = "high-availability.cluster-id";
const TYPE: &str = "high-availability.type";
const SHUFFLE_SERVICE: &str = "shuffle-service.type";
const LEADER_TIMEOUT: &str = "client.leader-timeout";

/// Settings of a process of a cluster.
#[derive(Clone, Debug)]
pub(crate) struct ProcessSettings {
    /// Where a `JobManager` listens.
    pub(crate) host: IpAddr,
    pub(crate) ports: RangeInclusive<u16>,
    /// Where `JobManager`s are; empty to look into the data directory.
    pub(crate) leaders: Vec<String>,
    pub(crate) slots: u32,
    /// Who keeps what a `TaskManager` writes.
    pub(crate) shuffle_service: ShuffleServiceKind,
    pub(crate) cluster_id: String,
    /// How long a client looks for a leader.
    pub(crate) leader_timeout: Duration,
    /// Settings of jobs and of all processes.
    pub(crate) options: Options,
}

/// The settings of processes, as the table of options has them.
pub(crate) fn process_options() -> Vec<ConfigOption> {
    vec![
        data_directory_option(),
        flinks(
            PORT,
            "6123",
            ValueKind::Ports,
            "port, or range of ports, that a JobManager listens on",
        ),
        ours(
            ADDRESSES,
            "as the data directory says",
            ValueKind::Text,
            "host:port of each JobManager, with commas between; where the leader is looked for",
        ),
        flinks(
            BIND_HOST,
            "127.0.0.1",
            ValueKind::IpAddress,
            "address that a JobManager listens on",
        ),
        flinks(
            DATA_PORT,
            "0",
            ValueKind::Ports,
            "port, or range of ports, on which a worker serves its partitions; 0 is any",
        ),
        flinks(
            DATA_BIND_HOST,
            "127.0.0.1",
            ValueKind::IpAddress,
            "address that a worker listens on",
        ),
        flinks(
            DATA_HOST,
            "as taskmanager.bind-host",
            ValueKind::Text,
            "name or address under which other hosts reach a worker",
        ),
        flinks(SLOTS, "number of cores", SLOTS_KIND, "how many tasks a TaskManager runs at once"),
        ours(
            SHUFFLE_SERVICE,
            "taskmanager",
            ValueKind::Choice(&["taskmanager", "stand-alone"]),
            "who keeps what tasks write: taskmanager is each one its own, stand-alone is a \
             shuffle-service with the same data directory, which survives its TaskManagers",
        ),
        flinks(CLUSTER_ID, "default", ValueKind::Text, "name of the cluster; others are refused"),
        flinks(
            TYPE,
            "local",
            ValueKind::Choice(&["local"]),
            "how it is decided who leads: local is by a lock in the data directory of one host",
        ),
        ours(LEADER_TIMEOUT, "1 min", ValueKind::Duration, "how long a client looks for a leader"),
    ]
}

/// An option that Flink has, too.
fn flinks(
    key: &'static str,
    default: &str,
    kind: ValueKind,
    meaning: &'static str,
) -> ConfigOption {
    ConfigOption { key, aliases: &[], default: default.to_owned(), kind, meaning, flink: true }
}

/// An option that Flink does not have.
fn ours(key: &'static str, default: &str, kind: ValueKind, meaning: &'static str) -> ConfigOption {
    ConfigOption { flink: false, ..flinks(key, default, kind, meaning) }
}

impl ProcessSettings {
    /// What `configuration` says.
    pub(crate) fn of(configuration: &Configuration) -> Result<Self, CliError> {
        let kind = |text: &str| text.eq_ignore_ascii_case("local").then_some(());
        parsed(configuration, TYPE, "local", kind)?;
        // Of no use but to a worker, and wrong everywhere.
        data_bind_host(configuration)?;
        data_ports(configuration)?;
        Ok(Self {
            host: bind_host(configuration, BIND_HOST)?,
            ports: parsed(configuration, PORT, &ValueKind::Ports.allowed(), ports)?
                .unwrap_or(6123..=6123),
            leaders: parsed(configuration, ADDRESSES, "host:port,host:port", addresses)?
                .unwrap_or_default(),
            slots: parsed(configuration, SLOTS, &SLOTS_KIND.allowed(), slots)?
                .unwrap_or_else(slots_default),
            shuffle_service: parsed(
                configuration,
                SHUFFLE_SERVICE,
                "taskmanager or stand-alone",
                shuffle_service,
            )?
            .unwrap_or_default(),
            cluster_id: configuration.value(CLUSTER_ID).unwrap_or("default").to_owned(),
            leader_timeout: parsed(
                configuration,
                LEADER_TIMEOUT,
                &ValueKind::Duration.allowed(),
                parse_duration,
            )?
            .unwrap_or(Duration::from_mins(1)),
            options: configuration.options()?,
        })
    }
}

/// Where a worker of this host serves its partitions. Asks for the address of the host by its name,
/// which only the host itself need know.
pub(crate) fn data_place(configuration: &Configuration) -> Result<DataPlace, CliError> {
    Ok(DataPlace {
        bind_host: data_bind_host(configuration)?,
        ports: data_ports(configuration)?,
        host: parsed(configuration, DATA_HOST, "a name or an IP address of this host", resolved)?,
    })
}

fn data_bind_host(configuration: &Configuration) -> Result<IpAddr, CliError> {
    bind_host(configuration, DATA_BIND_HOST)
}

fn data_ports(configuration: &Configuration) -> Result<RangeInclusive<u16>, CliError> {
    let found = parsed(configuration, DATA_PORT, &ValueKind::Ports.allowed(), ports)?;
    Ok(found.unwrap_or(0..=0))
}

fn bind_host(configuration: &Configuration, key: &str) -> Result<IpAddr, CliError> {
    let address = |text: &str| text.parse().ok();
    let found = parsed(configuration, key, &ValueKind::IpAddress.allowed(), address)?;
    Ok(found.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)))
}

/// The address of a host by its name.
fn resolved(host: &str) -> Option<IpAddr> {
    let mut addresses = (host, 0).to_socket_addrs().ok()?;
    addresses.next().map(|address| address.ip())
}

fn parsed<T>(
    configuration: &Configuration,
    key: &str,
    allowed: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, CliError> {
    let read = |text: &str| parse(text).ok_or_else(|| configuration.wrong(key, allowed));
    configuration.value(key).map(read).transpose()
}

fn ports(text: &str) -> Option<RangeInclusive<u16>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    (first <= last).then_some(first..=last)
}

fn addresses(text: &str) -> Option<Vec<String>> {
    let all = text.split(',').map(str::trim).filter(|address| !address.is_empty());
    let checked = all.map(|address| {
        let (host, port) = address.rsplit_once(':')?;
        (!host.is_empty() && port.parse::<u16>().is_ok()).then(|| address.to_owned())
    });
    checked.collect()
}

fn slots(text: &str) -> Option<u32> {
    text.parse().ok().filter(|slots| (1..=SLOTS_MAX).contains(slots))
}

fn shuffle_service(text: &str) -> Option<ShuffleServiceKind> {
    match text.to_ascii_lowercase().as_str() {
        "taskmanager" => Some(ShuffleServiceKind::TaskManager),
        "stand-alone" => Some(ShuffleServiceKind::StandAlone),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::run_flags::DataFlags;

    fn of(settings: &[(&str, &str)]) -> Result<ProcessSettings, CliError> {
        let settings = settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let flags = DataFlags { settings: settings.collect(), ..DataFlags::default() };
        ProcessSettings::of(&Configuration::load(&flags)?)
    }

    #[test]
    fn settings_of_processes_and_of_jobs_stand_side_by_side() {
        let settings = of(&[
            (PORT, "7000-7010"),
            (ADDRESSES, "a:1, b:2"),
            (SLOTS, "3"),
            ("heartbeat.interval", "5 s"),
        ])
        .unwrap();
        assert_eq!((settings.ports, settings.slots), (7000..=7010, 3));
        assert_eq!(settings.leaders, ["a:1", "b:2"]);
        assert_eq!(settings.options.heartbeat_interval, Duration::from_secs(5));
    }

    #[test]
    fn what_is_wrong_is_named_with_what_is_allowed() {
        for (key, value) in [
            (PORT, "70000"),
            (PORT, "9-7"),
            (ADDRESSES, "nowhere"),
            (SLOTS, "0"),
            (BIND_HOST, "here"),
            (DATA_BIND_HOST, "here"),
            (DATA_PORT, "-1"),
            (TYPE, "zookeeper"),
            (LEADER_TIMEOUT, "soon"),
        ] {
            let error = of(&[(key, value)]).unwrap_err().to_string();
            assert!(error.contains(key) && error.contains(value), "{error}");
        }
        let error = of(&[("jobmanager.rpc.prt", "1")]).unwrap_err().to_string();
        assert!(error.contains(PORT), "{error}");
    }

    #[test]
    fn only_the_host_of_a_worker_need_know_its_name() {
        let settings = vec![(DATA_HOST.to_owned(), "no such host".to_owned())];
        let flags = DataFlags { settings, ..DataFlags::default() };
        let configuration = Configuration::load(&flags).unwrap();
        assert!(ProcessSettings::of(&configuration).is_ok());
        let error = data_place(&configuration).unwrap_err().to_string();
        assert!(error.contains(DATA_HOST) && error.contains("no such host"), "{error}");
    }
}
