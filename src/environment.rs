//! Where a job is put together.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use regrow_protocol::JobVertexId;
use regrow_runtime::{
    CoordinatorKind, Determinacy, Distribution, JobEdge, JobGraph, JobVertex, Parallelism, SinkSpec,
};

use crate::{chain::VertexOperator, sources::InputPath};

/// Where a job is put together. A builder gets one, and does no input or output: it runs again in
/// every process that works for the job, and must make the same job each time.
pub struct Environment {
    job: RefCell<BuiltJob>,
    working_directory: Option<PathBuf>,
    used_working_directory: Cell<bool>,
    overwrite: bool,
}

/// A job as its builder made it.
#[derive(Default)]
pub(crate) struct BuiltJob {
    /// What is scheduled.
    pub(crate) graph: JobGraph,
    /// What each vertex does, in the order of the graph.
    pub(crate) operators: Vec<Box<dyn VertexOperator>>,
    /// Files and directories that it reads.
    pub(crate) inputs: Vec<InputPath>,
    /// Names under which records are given back.
    pub(crate) collected: BTreeSet<String>,
    /// What is wrong with the job, if anything; the first such thing.
    pub(crate) defect: Option<String>,
}

/// A vertex to be added to a job.
pub(crate) struct NewVertex {
    pub(crate) name: String,
    pub(crate) parallelism: Parallelism,
    pub(crate) coordinator: Option<CoordinatorKind>,
    pub(crate) determinacy: Determinacy,
    /// What it reads, in the order of its input gates.
    pub(crate) inputs: Vec<VertexInput>,
    pub(crate) operator: Box<dyn VertexOperator>,
}

/// What a vertex reads of another one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VertexInput {
    pub(crate) producer: JobVertexId,
    pub(crate) distribution: Distribution,
}

impl Environment {
    /// Makes an empty one. Relative paths are taken from `working_directory`.
    pub(crate) fn new(working_directory: Option<PathBuf>, overwrite: bool) -> Self {
        Self {
            job: RefCell::default(),
            working_directory,
            used_working_directory: Cell::new(false),
            overwrite,
        }
    }

    /// What the job reads, as a user wrote it; it is noted with the job.
    pub(crate) fn input(&self, path: &Path) -> InputPath {
        let directory =
            if path.is_absolute() { PathBuf::from("/") } else { self.absolute(Path::new("")) };
        let input = InputPath::new(&directory, path);
        self.job.borrow_mut().inputs.push(input.clone());
        input
    }

    /// `path`, made absolute as it was when the job was submitted: a run may be resumed from
    /// another directory. For what a source of your own reads.
    pub fn absolute(&self, path: &Path) -> PathBuf {
        if path.is_absolute() {
            return path.to_owned();
        }
        self.used_working_directory.set(true);
        if let Some(directory) = &self.working_directory {
            return directory.join(path);
        }
        self.note_defect(format!(
            "the path {} is relative, and was not when the job was submitted: the job's builder is \
             not deterministic",
            path.display()
        ));
        path.to_owned()
    }

    pub(crate) fn add_vertex(&self, vertex: NewVertex) -> JobVertexId {
        let mut job = self.job.borrow_mut();
        let id = JobVertexId(index(job.graph.vertices.len()));
        job.graph.vertices.push(JobVertex {
            name: vertex.name,
            parallelism: vertex.parallelism,
            coordinator: vertex.coordinator,
            determinacy: vertex.determinacy,
        });
        for VertexInput { producer, distribution } in vertex.inputs {
            job.graph.edges.push(JobEdge { producer, consumer: id, distribution });
        }
        job.operators.push(vertex.operator);
        id
    }

    pub(crate) fn add_sink(&self, vertex: JobVertexId, directory: &Path) {
        let absolute = self.absolute(directory);
        let Some(directory) = absolute.to_str() else {
            self.note_defect(format!("the output path {} is not UTF-8", absolute.display()));
            return;
        };
        let sink = SinkSpec { vertex, directory: directory.to_owned(), overwrite: self.overwrite };
        self.job.borrow_mut().graph.sinks.push(sink);
    }

    pub(crate) fn note_defect(&self, defect: String) {
        self.job.borrow_mut().defect.get_or_insert(defect);
    }

    /// Notes that records are collected as `name`, which must be said once.
    pub(crate) fn note_collected(&self, name: &str) {
        if !self.job.borrow_mut().collected.insert(name.to_owned()) {
            self.note_defect(format!(
                "the job collects two data sets as {name:?}: give each its own name"
            ));
        }
    }

    /// Whether the job depends on the working directory.
    pub(crate) fn used_working_directory(&self) -> bool {
        self.used_working_directory.get()
    }

    pub(crate) fn into_job(self) -> BuiltJob {
        self.job.into_inner()
    }
}

/// A job has far fewer parts than 2^32: each is a call in its builder.
fn index(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
