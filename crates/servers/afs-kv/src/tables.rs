//! Table numbers: the byte that stands for each table name on the medium.

use bytes::Bytes;

/// The tables of a store, in the order of their numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tables(Vec<(String, u8)>);

impl Tables {
    pub(crate) fn new(numbers: Vec<(String, u8)>) -> Self {
        Self(numbers)
    }

    /// The stored key of `key` in `table`.
    ///
    /// Panics when the table was not named at open: an error of the program, not of its input.
    pub(crate) fn key(&self, table: &str, key: &[u8]) -> Bytes {
        let mut out = Vec::with_capacity(1 + key.len());
        out.push(self.number(table));
        out.extend_from_slice(key);
        out.into()
    }

    pub(crate) fn number(&self, table: &str) -> u8 {
        match self.0.iter().find(|(name, _)| name == table) {
            Some((_, number)) => *number,
            None => panic!("table {table} was not named when the store was opened"),
        }
    }
}
