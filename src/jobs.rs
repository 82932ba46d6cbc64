//! The jobs that a program offers, and those that come with Regrow.

pub(crate) mod join;
pub(crate) mod sort;
pub(crate) mod stages;
pub(crate) mod word_count;

use std::collections::BTreeMap;

use clap::Args;
use serde::{Serialize, de::DeserializeOwned};

use crate::{environment::Environment, nearest::nearest, registered_job::RegisteredJob};

/// The jobs of a program by name.
#[derive(Default)]
pub(crate) struct Jobs {
    by_name: BTreeMap<String, RegisteredJob>,
}

impl Jobs {
    /// The jobs that come with Regrow.
    pub(crate) fn built_in() -> Self {
        let mut jobs = Self::default();
        jobs.add("wordcount", word_count::build);
        jobs.add("join", join::build);
        jobs.add("sort", sort::build);
        jobs.add("stages", stages::build);
        jobs
    }

    /// Adds a job, in place of one of the same name.
    pub(crate) fn add<A, F>(&mut self, name: &str, builder: F)
    where
        A: Args + Serialize + DeserializeOwned,
        F: Fn(&Environment, A) -> Result<(), String> + Send + Sync + 'static,
    {
        self.insert(name, RegisteredJob::new(builder));
    }

    /// Adds a registered job, in place of one of the same name.
    pub(crate) fn insert(&mut self, name: &str, job: RegisteredJob) {
        self.by_name.insert(name.to_owned(), job);
    }

    /// The job called `name`, or what to say when there is none.
    pub(crate) fn find(&self, name: &str) -> Result<&RegisteredJob, String> {
        self.by_name.get(name).ok_or_else(|| {
            let names: Vec<&str> = self.by_name.keys().map(String::as_str).collect();
            let hint = nearest(name, names.iter().copied())
                .map_or_else(String::new, |near| format!("; did you mean {near}?"));
            format!("there is no job {name}; this program has: {}{hint}", names.join(", "))
        })
    }

    /// All of them, by name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &RegisteredJob)> {
        self.by_name.iter().map(|(name, job)| (name.as_str(), job))
    }
}
