//! Fuzzing of files of cells and of replies of DNS.

use super::CellServDb;
use super::dns::message::{Kind, answer, question};

/// A file of cells.
pub(crate) const SAMPLE: &str = ">grand.central.org #GCO\n18.9.48.14 #grand.mit.edu\n[192.0.2.1] #clone\n";

/// The name that is asked for.
const NAME: &str = "example.org";

/// Parses bytes as a file. What comes of it is bounded, and each cell has a server.
pub(crate) fn file(bytes: &[u8]) -> bool {
    let parsed = CellServDb::parse(bytes);
    assert!(parsed.cells.len() <= 1024 && parsed.bad.len() <= 100);
    assert!(parsed.cells.iter().all(|cell| (1..=8).contains(&cell.servers.len())));
    !parsed.cells.is_empty()
}

/// A question, to which the changes are applied that make a reply.
pub(crate) fn sample() -> Vec<u8> {
    question(0, NAME, Kind::Afsdb).unwrap_or_default()
}

/// Parses bytes as a reply to each of the questions.
pub(crate) fn reply(bytes: &[u8]) {
    for kind in [Kind::Srv, Kind::Afsdb, Kind::Address] {
        let id = bytes.first_chunk().map_or(0, |two| u16::from_be_bytes(*two));
        let _ = answer(bytes, id, NAME, kind);
    }
}
