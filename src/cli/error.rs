//! How a command ends without success.

use thiserror::Error;

use crate::run_request::Refusal;

/// How a command ends without success; each variant is an exit code.
#[derive(Debug, Error)]
pub(crate) enum CliError {
    /// The job, or what was asked for, failed: exit code 1.
    #[error("{0}")]
    Failed(String),
    /// Wrong usage or configuration, before a job was accepted: exit code 2.
    #[error("{0}")]
    Usage(String),
    /// The job was cancelled: exit code 3.
    #[error("the job was cancelled")]
    Cancelled,
    /// No leader of the cluster was found: exit code 4.
    #[error("{0}")]
    Unreachable(String),
    /// The command line cannot be parsed, or asks for help.
    #[error(transparent)]
    Arguments(#[from] clap::Error),
}

impl CliError {
    /// The exit code of the contract.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Failed(_) => 1,
            Self::Usage(_) => 2,
            Self::Cancelled => 3,
            Self::Unreachable(_) => 4,
            Self::Arguments(error) => u8::try_from(error.exit_code()).unwrap_or(2),
        }
    }
}

impl From<Refusal> for CliError {
    fn from(Refusal(reason): Refusal) -> Self {
        Self::Usage(reason)
    }
}
