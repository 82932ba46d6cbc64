//! Makes all rows of a left join equally wide.

use std::path::PathBuf;

use regrow_actors::task::{Task, TaskContext};
use regrow_protocol::{TaskDeployment, TaskFailure};
use regrow_runtime::Determinacy;
use serde::{Deserialize, Serialize};

use super::fields::Fields;
use crate::{
    chain::{Chain, ChainStart, Consume},
    exchange::read_input,
    record::Record,
};

/// A row of a left join, before it is padded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Joined {
    fields: Fields,
    /// How many of the fields came from the right; none of a left row without a partner.
    right_columns: Option<usize>,
}

impl Joined {
    /// A left row and its partner, if it has one.
    pub(super) fn new(left: &Fields, right: Option<&Fields>) -> Self {
        let fields = right.map_or_else(|| left.clone(), |right| left.joined(right));
        Self { fields, right_columns: right.map(Fields::len) }
    }
}

/// Pads left rows without a partner by as many fields as the right side has columns. How many these
/// are is read from an input, that is, decided once for all tasks and kept like other data: the
/// file may be another one by now.
pub(super) struct Pad<C> {
    rows: C,
    /// The input that tells how many columns there are.
    input: usize,
    /// The file of the right side, for people.
    path: PathBuf,
}

impl<C> Pad<C> {
    /// Pads `rows`, whose vertex gets the number of columns of `path` from input number `input`.
    pub(super) const fn new(rows: C, input: usize, path: PathBuf) -> Self {
        Self { rows, input, path }
    }
}

impl<C: Chain<Item = Joined>> Chain for Pad<C> {
    type Item = Fields;

    fn task<E: Consume<Fields>>(
        &self,
        deployment: &TaskDeployment,
        end: E,
    ) -> Result<Box<dyn Task>, TaskFailure> {
        let (input, path) = (self.input, self.path.clone());
        self.rows.task(deployment, Padding { input, path, columns: None, end })
    }

    fn describe(&self, names: &mut Vec<&'static str>) {
        self.rows.describe(names);
        names.push("pad");
    }

    fn start(&self) -> ChainStart<'_> {
        self.rows.start()
    }

    fn determinacy(&self) -> Determinacy {
        self.rows.determinacy()
    }
}

struct Padding<E> {
    input: usize,
    path: PathBuf,
    /// Known from the first row on.
    columns: Option<usize>,
    end: E,
}

impl<E> Padding<E> {
    #[cold]
    fn read_columns(&self, context: &mut dyn TaskContext) -> Result<usize, TaskFailure> {
        let mut columns = None;
        read_input(self.input, context, |rest, _| {
            columns = Some(*u64::read(rest, &mut None)?);
            Ok(())
        })?;
        columns.and_then(|columns| usize::try_from(columns).ok()).ok_or_else(|| {
            let path = self.path.display();
            TaskFailure::task(format!("nothing tells how many columns {path} has"))
        })
    }

    #[cold]
    fn changed(&self, columns: usize, found: usize) -> TaskFailure {
        TaskFailure::unrecoverable(format!(
            "{} changed while it was listed: it had {columns} columns, and has rows of {found}; let \
             the input stay as it is while a job reads it, and run the job again under another id",
            self.path.display()
        ))
    }
}

impl<E: Consume<Fields>> Consume<Joined> for Padding<E> {
    #[inline]
    fn consume(&mut self, row: &Joined, context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        let columns = if let Some(columns) = self.columns {
            columns
        } else {
            let columns = self.read_columns(context)?;
            *self.columns.insert(columns)
        };
        match row.right_columns {
            None => self.end.consume(&row.fields.padded(columns), context),
            Some(found) if found == columns => self.end.consume(&row.fields, context),
            Some(found) => Err(self.changed(columns, found)),
        }
    }

    fn finish(&mut self, context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        self.end.finish(context)
    }
}
