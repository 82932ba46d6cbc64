//! Documents in sled: a framed value under its key, with a revision that its witness knows.

use regrow_protocol::Epoch;

use super::{
    SledStore,
    keys::{document_witness, tree},
    witness::Testimony,
};
use crate::{StoreError, Table, document};

impl SledStore {
    pub(super) fn get_document(
        &mut self,
        table: Table,
        key: &str,
    ) -> Result<Option<document::Document>, StoreError> {
        document::check_key(key)?;
        let witnessed = self.witness.of(&document_witness(table, key)).unwrap_or_default().number;
        let path = self.home.path().to_owned();
        let stored = self.database()?.get(tree(table), key.as_bytes())?;
        let name = document::table_name(table);
        let stored = stored.map(|bytes| document::decode(name, key.as_bytes(), &bytes)).transpose();
        let document = stored.map_err(|flaw| flaw.into_error(&path, table, key))?;
        let revision = document.as_ref().map_or(0, |document| document.revision);
        if revision < witnessed {
            let reason = format!("revision {witnessed} was stored, {revision} is there");
            return Err(document::damaged(&path, table, key, &reason));
        }
        Ok(document)
    }

    pub(super) fn try_put(
        &mut self,
        table: Table,
        key: &str,
        document: &[u8],
    ) -> Result<(), StoreError> {
        document::check_key(key)?;
        let witness_key = document_witness(table, key);
        let witnessed = self.witness.of(&witness_key).unwrap_or_default().number;
        let name = document::table_name(table);
        let database = self.database()?;
        let stored = database.get(tree(table), key.as_bytes())?;
        // One that cannot be read is replaced as well.
        let stored = stored.and_then(|bytes| document::decode(name, key.as_bytes(), &bytes).ok());
        let revision = stored.map_or(0, |document| document.revision).max(witnessed) + 1;
        let bytes = document::encode(name, key.as_bytes(), revision, document)?;
        database.insert(tree(table), key.as_bytes(), bytes)?;
        database.sync()?;
        self.witness.note(&witness_key, Testimony { epoch: Epoch::default(), number: revision });
        Ok(())
    }

    pub(super) fn try_remove(&mut self, table: Table, key: &str) -> Result<(), StoreError> {
        document::check_key(key)?;
        self.witness.forget(&document_witness(table, key))?;
        let database = self.database()?;
        database.remove(tree(table), &[key.as_bytes().to_vec()])?;
        database.sync()
    }
}
