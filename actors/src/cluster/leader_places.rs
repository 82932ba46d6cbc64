//! Where whoever leads is looked for.

use std::path::PathBuf;

use super::leader_lock::LeaderPlace;

/// Where whoever leads is looked for.
#[derive(Clone, Debug)]
pub(crate) enum LeaderPlaces {
    /// At these addresses, `host:port`.
    Known(Vec<String>),
    /// Where the data directory says at the moment.
    Directory(PathBuf),
}

/// An address at which to look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// `host:port`.
    pub(crate) address: String,
    /// The same with who names it, for people.
    pub(crate) label: String,
}

impl LeaderPlaces {
    /// The addresses that are known, or else what the data directory says.
    pub(crate) fn of(known: Vec<String>, directory: PathBuf) -> Self {
        if known.is_empty() { Self::Directory(directory) } else { Self::Known(known) }
    }

    /// Where to look now.
    ///
    /// # Errors
    /// Which place names no address, and why not, for people.
    pub(crate) fn candidates(&self) -> Result<Vec<Candidate>, (String, String)> {
        match self {
            Self::Known(addresses) => {
                let known = |address: &String| Candidate {
                    address: address.clone(),
                    label: address.clone(),
                };
                Ok(addresses.iter().map(known).collect())
            }
            Self::Directory(directory) => {
                let shown = directory.display();
                match LeaderPlace::find(directory) {
                    Ok(LeaderPlace { address, .. }) => {
                        let label = format!("{address}, named in {shown}");
                        Ok(vec![Candidate { address, label }])
                    }
                    Err(reason) => Err((shown.to_string(), reason)),
                }
            }
        }
    }
}

impl Candidate {
    /// What a standby says of the leader.
    pub(crate) fn of_standby(address: String, standby: &str) -> Self {
        let label = format!("{address}, named by the standby at {standby}");
        Self { address, label }
    }
}
