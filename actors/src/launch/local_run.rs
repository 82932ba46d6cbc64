//! Runs a job with all roles in this process.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use crossbeam_channel::{Receiver, Sender, unbounded};
use regrow_protocol::{DataDirectoryId, RunId, SubmissionId, TaskFailure, WorkerId};
use regrow_runtime::{JobSubmission, StoreKind, with_causes};
use regrow_store::StoreError;
use tokio::time::Instant;
use tracing::warn;

use super::{
    CancelHandle, InterruptedRun, LaunchError, LocalResult, LocalRun, RunUpdate, StandIn,
    StoreLoss, StoreLossKind, cluster_jobs,
    local_system::{LocalSystem, LocalSystemConfig},
};
use crate::{
    archive::Archive,
    dispatcher::{ClientUpdate, SubmitError},
    random_bits::random_bits,
    run_directory::{NotedRun, RunDirectory, RunFile, SetAside},
    store_runner::{OpenStore, StoreThread, open_store},
    user_code::guarded,
    worker::WorkerDirectories,
};

/// How often one process sets a damaged store aside: a new one that is damaged at once, too, says
/// more of the disk than of the store.
const DAMAGES_MAX: u32 = 1;

/// What a run begins with.
struct Beginning {
    kind: StoreKind,
    /// Whether no earlier process left anything to go on with.
    fresh: bool,
    noted: NotedRun,
}

/// What a caller waits for.
struct Heard {
    result: Result<LocalResult, LaunchError>,
    /// Whether the job was accepted, now or earlier.
    accepted: bool,
    /// Whether nothing of the run is needed any more.
    over: bool,
}

impl LocalRun {
    /// Runs the job to its end, on threads of its own, while the caller's thread waits and hears
    /// the updates. A run of the same job that was interrupted goes on; a job that had finished
    /// gives its result again.
    ///
    /// # Errors
    /// When the job cannot start or go on; whether it can be resumed is in the error.
    pub fn run(
        self,
        mut updates: impl FnMut(RunUpdate),
        cancel: CancelHandle,
    ) -> Result<LocalResult, LaunchError> {
        let began = Instant::now();
        let submission = self.submission()?;
        let directory = RunDirectory::lock(&self.data_directory, &self.job)?;
        if let Err(error) = self.check_cluster(&directory) {
            directory.release();
            return Err(error);
        }
        let mut beginning = self.begin(&directory, &submission, &mut updates)?;
        let mut damages = 0;
        loop {
            let heard = self.attempt(&beginning, &directory, (&submission, &cancel), |heard| {
                listen(heard, &mut updates, began)
            });
            let damage = heard.as_ref().ok().and_then(Heard::damage);
            let Some(reason) = damage.filter(|_| damages < DAMAGES_MAX && !beginning.fresh) else {
                return end(directory, beginning.fresh, heard);
            };
            damages += 1;
            let archive = Archive::new(&self.data_directory);
            let SetAside { path, removed } = directory.set_store_aside()?;
            if let Some(file) = directory.resumable()? {
                beginning.noted = directory.noted(file);
            }
            let how = StoreLossKind::Damaged { reason, aside: path, removed };
            lose_store(&mut beginning.noted, (&directory, &archive), how, &mut updates)?;
        }
    }

    /// Refuses to begin a run under an id that the cluster of the data directory has. Its leader
    /// looks at the lock of `directory` before it takes that id: one of both sees the other.
    fn check_cluster(&self, directory: &RunDirectory) -> Result<(), LaunchError> {
        match directory.resumable() {
            Ok(None) if self.named => cluster_jobs::check_free(&self.data_directory, &self.job),
            // What cannot be read is told when the run begins.
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Finds out whether there is something to go on with.
    fn begin(
        &self,
        directory: &RunDirectory,
        submission: &JobSubmission,
        updates: &mut impl FnMut(RunUpdate),
    ) -> Result<Beginning, LaunchError> {
        let Some(file) = directory.resumable()? else {
            directory.clear()?;
            let kind = self.options.store;
            let noted = directory.new_run(self.identity(), kind, submission);
            return Ok(Beginning { kind, fresh: true, noted });
        };
        self.check_interrupted(&file, directory, submission)?;
        let kind = file.store_kind();
        let mut noted = directory.noted(file);
        // A process that died in its first moments had no store yet, and nothing to lose.
        if directory.has_no_store() && (noted.run().is_none() || noted.remains()?.any) {
            let archive = Archive::new(&self.data_directory);
            let how = match kind {
                StoreKind::Memory => StoreLossKind::InMemory,
                StoreKind::Sled | StoreKind::File => StoreLossKind::Gone,
            };
            lose_store(&mut noted, (directory, &archive), how, updates)?;
        }
        Ok(Beginning { kind, fresh: false, noted })
    }

    /// Starts all roles and has the caller listen until they are done.
    fn attempt(
        &self,
        beginning: &Beginning,
        directory: &RunDirectory,
        (submission, cancel): (&JobSubmission, &CancelHandle),
        listen: impl FnOnce(&Receiver<ClientUpdate>) -> Heard,
    ) -> Result<Heard, LaunchError> {
        let (caller, heard) = unbounded();
        let store = start_store(beginning.kind, directory.store(), caller.clone())?;
        if beginning.fresh {
            beginning.noted.write()?;
        }
        let system = LocalSystem::start(LocalSystemConfig {
            submission: submission.clone(),
            options: self.options.clone(),
            kills: self.kills.clone(),
            slots: self.slots.max(1),
            workers: self.workers(&directory.shuffle())?,
            data_directory: self.data_directory.clone(),
            store: Arc::new(store),
            factory: Arc::clone(&self.factory),
            noted: beginning.noted.clone(),
            cancel: cancel.clone(),
            caller,
        })?;
        let heard = listen(&heard);
        drop(system);
        Ok(heard)
    }

    fn submission(&self) -> Result<JobSubmission, LaunchError> {
        let built = guarded(|| Ok(self.factory.build(&self.job_name, &self.arguments)));
        let graph = built
            .map_err(|panicked: TaskFailure| format!("the builder of the job {panicked}"))
            .flatten()
            .map_err(LaunchError::Job)?;
        Ok(JobSubmission {
            job: self.job.clone(),
            run: RunId::from_bits(random_bits()?),
            submission: SubmissionId::from_bits(random_bits()?),
            job_name: self.job_name.clone(),
            arguments: self.arguments.clone(),
            graph,
            ledger: self.ledger.as_ref().map(|path| path.to_string_lossy().into_owned()),
            settings: self.settings.clone(),
        })
    }

    fn identity(&self) -> InterruptedRun {
        InterruptedRun {
            job: self.job.clone(),
            job_name: self.job_name.clone(),
            arguments: self.arguments.clone(),
            settings: self.settings.clone(),
            ledger: self.ledger.clone(),
        }
    }

    /// Refuses another job under the id of an interrupted run.
    fn check_interrupted(
        &self,
        file: &RunFile,
        directory: &RunDirectory,
        submission: &JobSubmission,
    ) -> Result<(), LaunchError> {
        if !file.is_of(&self.job_name, &self.arguments) {
            let there = file.clone().into_run();
            return Err(refusal(SubmitError::other_job(
                self.job.clone(),
                (&there.job_name, &there.arguments),
                (&self.job_name, &self.arguments),
            )));
        }
        let graph = submission.graph.hash();
        if file.identity().is_some_and(|identity| identity.graph_hash != graph) {
            let directory = directory.path().to_owned();
            return Err(LaunchError::OtherGraph { job: self.job.clone(), directory });
        }
        Ok(())
    }

    fn workers(&self, shuffle: &Path) -> Result<Vec<(WorkerId, WorkerDirectories)>, LaunchError> {
        let count = self.task_managers.max(1);
        let mut ids = Vec::new();
        for _ in 0..count {
            ids.push(DataDirectoryId::from_bits(random_bits()?));
        }
        let directories = WorkerDirectories::open(shuffle, &ids)
            .map_err(|error| LaunchError::Workers(error.into()))?;
        let named = directories.into_iter();
        named.map(|directory| Ok((WorkerId::from_bits(random_bits()?), directory))).collect()
    }
}

impl Heard {
    /// What is wrong with the store, if that is why the job could not begin.
    fn damage(&self) -> Option<String> {
        match &self.result {
            Err(LaunchError::Store(error @ StoreError::Damaged { .. })) if !self.accepted => {
                Some(error.to_string())
            }
            Ok(_) | Err(_) => None,
        }
    }
}

/// What is left of a run whose store is lost.
fn stand_in(noted: &NotedRun, archive: &Archive) -> Result<StandIn, LaunchError> {
    // Admission says what is wrong with an archive that cannot be read.
    let ended = archive.read(noted.job()).ok().flatten();
    if ended.is_some_and(|ended| Some(ended.outcome.run) == noted.run()) {
        return Ok(StandIn::Archive);
    }
    let remains = noted.remains()?;
    if remains.publishing {
        return Ok(StandIn::Manifest);
    }
    Ok(StandIn::FinishRecords(remains.finish_records))
}

/// Tells that the store of a run is lost, and what stands in for it.
fn lose_store(
    noted: &mut NotedRun,
    (directory, archive): (&RunDirectory, &Archive),
    how: StoreLossKind,
    updates: &mut impl FnMut(RunUpdate),
) -> Result<(), LaunchError> {
    let loss = StoreLoss { path: directory.store(), how, stand_in: stand_in(noted, archive)? };
    noted.lacks(loss.to_string());
    updates(RunUpdate::StoreLost(loss));
    Ok(())
}

/// Opens the store on its thread, so that it overlaps with the rest of the start.
fn start_store(
    kind: StoreKind,
    path: PathBuf,
    caller: Sender<ClientUpdate>,
) -> Result<StoreThread, LaunchError> {
    let open: OpenStore = Box::new(move || open_store(kind, &path));
    let opened = move |opened: Result<(), _>| {
        if let Err(error) = opened {
            // A caller that is gone needs no news.
            drop(caller.send(ClientUpdate::Refused(SubmitError::Store(error))));
        }
    };
    StoreThread::start(open, opened).map_err(LaunchError::Thread)
}

/// Hears the updates until the last.
fn listen(
    heard: &Receiver<ClientUpdate>,
    updates: &mut impl FnMut(RunUpdate),
    began: Instant,
) -> Heard {
    let mut accepted = false;
    let mut ended = None;
    let failed = |error, accepted| Heard { result: Err(error), accepted, over: false };
    loop {
        match heard.recv() {
            Ok(ClientUpdate::Run(update)) => {
                accepted |= matches!(update, RunUpdate::Accepted { .. });
                updates(update);
            }
            Ok(ClientUpdate::Ended { outcome, joined }) => {
                let duration = began.elapsed();
                ended = Some(LocalResult { outcome: *outcome, duration, joined });
            }
            Ok(ClientUpdate::Refused(error)) => return failed(refusal(error), accepted),
            Ok(ClientUpdate::Closed) => {
                let gone = || LaunchError::Abandoned("it ended without a result".to_owned());
                return Heard { result: ended.ok_or_else(gone), accepted: true, over: true };
            }
            Ok(ClientUpdate::Abandoned { reason }) => {
                return failed(LaunchError::Abandoned(reason), accepted);
            }
            Err(_) => {
                let reason = "the actors of this process ended".to_owned();
                return failed(LaunchError::Abandoned(reason), accepted);
            }
        }
    }
}

fn refusal(error: SubmitError) -> LaunchError {
    match error {
        SubmitError::OtherJob { job, existing, requested } => {
            LaunchError::OtherJob { job, existing, requested }
        }
        SubmitError::Store(error) => LaunchError::Store(error),
        SubmitError::Directory(error) => *error,
        other @ (SubmitError::Document { .. }
        | SubmitError::NoSuchJob { .. }
        | SubmitError::Unrecovered { .. }
        | SubmitError::Busy { .. }
        | SubmitError::AnotherRun { .. }
        | SubmitError::Output(_)) => LaunchError::Submit(other),
    }
}

/// Removes the directory of a run that is over, or that was never accepted.
fn end(
    directory: RunDirectory,
    fresh: bool,
    heard: Result<Heard, LaunchError>,
) -> Result<LocalResult, LaunchError> {
    let (result, needed) = match heard {
        Ok(heard) => (heard.result, !heard.over && (heard.accepted || !fresh)),
        Err(error) => (Err(error), !fresh),
    };
    if !needed && let Err(error) = directory.remove() {
        warn!(error = %with_causes(&error), "something of the run is left");
    }
    match result {
        Err(LaunchError::Abandoned(reason)) if !needed => Err(LaunchError::NotAccepted(reason)),
        other => other,
    }
}
