//! Copy of the databases of a single server into a shared store.

use afs_kv::{Kv, Snapshot};

use super::rows::{Freshness, SharedDatabase, Sharing};
use super::store::TRANSACTION_BYTES_MAX;
use crate::store::Store;
use crate::{LocationError, Row, Rows, RowsMut, TABLES};
use std::sync::Arc;

/// Most rows and bytes of one transaction of a copy.
const ROWS_MAX: usize = 400;
const BYTES_MAX: usize = TRANSACTION_BYTES_MAX / 4;
/// Row that is present while a copy is not finished.
const UNFINISHED: (&str, &[u8]) = ("vl-meta", b"copying");

/// State of a shared store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Empty.
    Empty,
    /// A part of the databases.
    Unfinished,
    /// The complete databases.
    Full,
}

/// The state of a shared store.
///
/// # Errors
/// The store does not reply.
pub async fn is_empty(sharing: &Arc<Sharing>) -> Result<State, LocationError> {
    let locations = sharing.rows(SharedDatabase::Locations, Freshness::Confirmed);
    let (table, key) = UNFINISHED;
    let unfinished: bool =
        locations.read(move |rows| Ok::<_, LocationError>(rows.get(table, key)?.is_some())).await?;
    let any = SharedDatabase::ALL
        .into_iter()
        .any(|database| sharing.rows(database, Freshness::Followed).version() > 0);
    Ok(match (unfinished, any) {
        (true, _) => State::Unfinished,
        (false, true) => State::Full,
        (false, false) => State::Empty,
    })
}

/// Copies all rows. Rows left by an earlier copy of the same databases are overwritten.
///
/// # Errors
/// The source cannot be read, or the shared store does not reply. Copy again then.
pub async fn copy(from: &Kv, to: &Arc<Sharing>) -> Result<(), LocationError> {
    let mark = |rows: &mut dyn RowsMut| rows.put(UNFINISHED.0, UNFINISHED.1, &[1]);
    let locations = to.rows(SharedDatabase::Locations, Freshness::Confirmed);
    locations.change::<(), LocationError>(mark).await?;
    let snapshot = from.snapshot();
    for table in TABLES.iter().copied() {
        copy_table(&snapshot, table, to).await?;
    }
    let unmark = |rows: &mut dyn RowsMut| rows.delete(UNFINISHED.0, UNFINISHED.1);
    locations.change::<(), LocationError>(unmark).await
}

async fn copy_table(from: &Snapshot, table: &'static str, to: &Arc<Sharing>) -> Result<(), LocationError> {
    let rows = to.rows(SharedDatabase::of_table(table), Freshness::Confirmed);
    let mut next = Vec::new();
    loop {
        let part = part(Rows::range(from, table, &next, &[0xff; 1024], ROWS_MAX)?);
        let Some((last, _)) = part.last() else { return Ok(()) };
        next = [last, &[0][..]].concat();
        let write = move |rows: &mut dyn RowsMut| -> Result<(), LocationError> {
            part.iter().try_for_each(|(key, value)| rows.put(table, key, value))
        };
        rows.change(write).await?;
    }
}

/// As many rows as fit into a transaction; at least one.
fn part(mut rows: Vec<Row>) -> Vec<Row> {
    let mut bytes = 0;
    let fits = rows.iter().take_while(|(key, value)| {
        bytes += key.len() + value.len();
        bytes <= BYTES_MAX
    });
    let count = fits.count().max(1);
    rows.truncate(count);
    rows
}
