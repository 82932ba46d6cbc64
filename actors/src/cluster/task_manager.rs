//! The role of a `TaskManager`: runs tasks for whoever leads, and keeps what they wrote, or has a
//! stand-alone shuffle service of its host keep it.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use crossbeam_channel::{Receiver, select};
use regrow_protocol::{DataDirectoryId, Role, WorkerId};

use super::{
    ClusterError, StillLooking, WorkerSetup,
    worker_process::{WorkerNews, WorkerProcess},
};
use crate::{random_bits::random_bits, worker::WorkerDirectories};

/// How often a `TaskManager` looks for the shuffle service that it needs.
const SERVICE_LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// A `TaskManager`, before it runs.
pub struct TaskManager {
    /// What every worker is told.
    pub setup: WorkerSetup,
    /// Who keeps what its tasks write.
    pub shuffle_service: ShuffleServiceKind,
    /// How many attempts it runs at a time.
    pub slots: u32,
}

/// Who keeps what the tasks of a `TaskManager` write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ShuffleServiceKind {
    /// Itself: what it wrote can be read for as long as it lives, or once it is restarted.
    #[default]
    TaskManager,
    /// A stand-alone shuffle service that uses the same data directory.
    StandAlone,
}

/// What a `TaskManager` tells whoever started it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskManagerNews {
    /// There is no shuffle service yet; it waits for one.
    WaitsForShuffleService {
        /// Where one is looked for.
        directory: PathBuf,
    },
    /// It takes connections.
    Listening(SocketAddr),
    /// It found no leader for long; it goes on looking.
    NoLeader(StillLooking),
    /// It runs tasks.
    Runs {
        /// How many at a time.
        slots: u32,
    },
}

impl TaskManager {
    /// Runs until `stop` speaks, on threads of its own.
    ///
    /// # Errors
    /// When its directories cannot be used, or its actors died.
    pub fn run(
        self,
        stop: &Receiver<()>,
        mut news: impl FnMut(TaskManagerNews),
    ) -> Result<(), ClusterError> {
        let worker = WorkerId::from_bits(random_bits()?);
        let opened = match self.shuffle_service {
            ShuffleServiceKind::TaskManager => {
                let id = DataDirectoryId::from_bits(random_bits()?);
                WorkerDirectories::open(&self.setup.shuffle_directory(), &[id])
                    .map_err(ClusterError::DataDirectory)?
                    .pop()
            }
            ShuffleServiceKind::StandAlone => self.find_service(worker, stop, &mut news)?,
        };
        let Some(directories) = opened else { return Ok(()) };
        news(TaskManagerNews::Runs { slots: self.slots });
        WorkerProcess {
            setup: self.setup,
            worker,
            slots: self.slots,
            directories,
            role: Role::TaskManager,
        }
        .run(stop, |said| match said {
            WorkerNews::Listening(address) => news(TaskManagerNews::Listening(address)),
            WorkerNews::NoLeader(looking) => news(TaskManagerNews::NoLeader(looking)),
        })
    }

    /// Waits for a shuffle service; none if `stop` spoke first.
    fn find_service(
        &self,
        worker: WorkerId,
        stop: &Receiver<()>,
        news: &mut impl FnMut(TaskManagerNews),
    ) -> Result<Option<WorkerDirectories>, ClusterError> {
        let directory = self.setup.shuffle_directory();
        let mut told = false;
        loop {
            let joined =
                WorkerDirectories::join(&directory, worker).map_err(ClusterError::DataDirectory)?;
            if joined.is_some() {
                return Ok(joined);
            }
            if !told {
                news(TaskManagerNews::WaitsForShuffleService { directory: directory.clone() });
                told = true;
            }
            select! {
                recv(stop) -> _ => return Ok(None),
                default(SERVICE_LOOK_INTERVAL) => {}
            }
        }
    }
}
