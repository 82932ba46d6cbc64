//! The roles of a cluster: processes that find each other over TCP.
//!
//! Invariants:
//! - A connection is a way to say things, never a fact about a job: what was lost with it is said
//!   again when its worker registers.
//! - A closed connection is a loss only after `taskmanager.reconnect-grace`.
//! - Sockets are read and written on one thread of their own; actors only queue and hear.

mod acceptor;
mod client_connection;
mod client_messages;
mod client_session;
mod cluster_client;
mod cluster_error;
mod cluster_identity;
mod data_port;
mod dialer;
mod event_page;
mod gate;
mod heard_queue;
mod io_thread;
mod job_manager;
mod leader_lock;
mod leader_places;
mod leader_search;
mod leadership;
mod led_store;
mod master_link;
mod pages;
mod remote_worker;
mod shuffle_service_role;
mod task_manager;
mod worker_dialer;
mod worker_process;
mod worker_setup;

pub use self::{
    client_messages::JobSummary,
    cluster_client::{ClusterClient, ClusterSubmission, FollowUpdate, Followed, TellLooking, Wish},
    cluster_error::ClusterError,
    cluster_identity::ClusterIdentity,
    data_port::DataPlace,
    event_page::{EventPage, EventPlace},
    job_manager::{JobManager, JobManagerNews},
    leader_lock::{ClusterPlace, Unled},
    leader_search::StillLooking,
    leadership::LeadershipLoss,
    pages::{ReportPage, ReportPlace},
    shuffle_service_role::{ShuffleServiceNews, ShuffleServiceRole},
    task_manager::{ShuffleServiceKind, TaskManager, TaskManagerNews},
    worker_setup::WorkerSetup,
};
pub(crate) use self::{
    client_session::JobsListed,
    event_page::{EventQuestion, PAGE_BYTES_MAX, Reading},
    gate::{WorkerDisconnected, WorkerLeaving},
    worker_dialer::DialWorkers,
};
