//! Interface of ordered rows, which the databases need from their store.
//!
//! The rules of the databases are written against these traits, so the embedded store, a shared one and a
//! plain map in tests all run the same code.

use crate::LocationError;
use crate::journal::rows as journal;
use crate::login::rows as login;
use crate::protection::rows as protection;

/// A key and its value.
pub type Row = (Vec<u8>, Vec<u8>);

/// Reading ordered rows.
pub trait Rows {
    /// The value of `key`, if there is one.
    fn get(&self, table: &'static str, key: &[u8]) -> Result<Option<Vec<u8>>, LocationError>;

    /// At most `limit` rows with `from <= key < until`, in ascending order of key.
    fn range(
        &self,
        table: &'static str,
        from: &[u8],
        until: &[u8],
        limit: usize,
    ) -> Result<Vec<Row>, LocationError>;
}

/// Changing rows, within one atomic transaction.
pub trait RowsMut: Rows {
    /// Sets the value of `key`.
    fn put(&mut self, table: &'static str, key: &[u8], value: &[u8]) -> Result<(), LocationError>;

    /// Removes `key`; an absent key is no error.
    fn delete(&mut self, table: &'static str, key: &[u8]) -> Result<(), LocationError>;
}

/// Entries of the location database by their row number.
pub(crate) const ENTRY: &str = "vl-entry";
/// Row number of an entry by its name.
pub(crate) const NAME: &str = "vl-name";
/// Row number of an entry by any of its three volume ids.
pub(crate) const VOLUME: &str = "vl-volume";
/// Servers by slot.
pub(crate) const SERVER: &str = "vl-server";
/// Slot of a server by address.
pub(crate) const ADDRESS: &str = "vl-address";
/// Slot of a server by its permanent name.
pub(crate) const UUID: &str = "vl-uuid";
/// Entries with a site at a server: slot and row number, no value.
pub(crate) const SITE: &str = "vl-site";
/// Counters.
pub(crate) const META: &str = "vl-meta";

/// Every table of the databases, for opening the store.
pub const TABLES: &[&str] = &[
    ENTRY,
    NAME,
    VOLUME,
    SERVER,
    ADDRESS,
    UUID,
    SITE,
    META,
    protection::ENTRY,
    protection::NAME,
    protection::MEMBER,
    protection::GROUP,
    protection::COUNT,
    protection::OWNED,
    protection::META,
    login::LOGIN,
    journal::OPERATION,
    journal::VOLUME,
    journal::META,
];

/// Decodes a big-endian number that this crate wrote.
pub(crate) fn number(value: &[u8]) -> Result<u32, LocationError> {
    let bytes: [u8; 4] = value.try_into().map_err(|_| crate::Refusal::Damaged)?;
    Ok(u32::from_be_bytes(bytes))
}

/// An ordered map as store.
#[derive(Clone, Default, Debug)]
pub struct MemoryRows {
    rows: std::collections::BTreeMap<(&'static str, Vec<u8>), Vec<u8>>,
}

impl Rows for MemoryRows {
    fn get(&self, table: &'static str, key: &[u8]) -> Result<Option<Vec<u8>>, LocationError> {
        Ok(self.rows.get(&(table, key.to_vec())).cloned())
    }

    fn range(
        &self,
        table: &'static str,
        from: &[u8],
        until: &[u8],
        limit: usize,
    ) -> Result<Vec<Row>, LocationError> {
        if from >= until {
            return Ok(Vec::new());
        }
        let bounds = (table, from.to_vec())..(table, until.to_vec());
        Ok(self
            .rows
            .range(bounds)
            .take(limit)
            .map(|((_, key), value)| (key.clone(), value.clone()))
            .collect())
    }
}

impl RowsMut for MemoryRows {
    fn put(&mut self, table: &'static str, key: &[u8], value: &[u8]) -> Result<(), LocationError> {
        self.rows.insert((table, key.to_vec()), value.to_vec());
        Ok(())
    }

    fn delete(&mut self, table: &'static str, key: &[u8]) -> Result<(), LocationError> {
        self.rows.remove(&(table, key.to_vec()));
        Ok(())
    }
}
