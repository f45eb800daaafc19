//! Bytes that have to be a full dump.

use std::collections::VecDeque;

use afs_rpc::BoxFuture;
use afs_wire::dump::{DumpReader, Event};
use bytes::Bytes;

use crate::ops::DumpSource;

/// A source whose head was looked at. What has only what changed since a time would leave a mixture where a whole is asked
/// for, and what is no dump would be noticed when the old volume is gone.
pub(super) struct FullDump<'a> {
    source: &'a mut dyn DumpSource,
    /// Read to see the head; not yet asked for.
    read: VecDeque<Bytes>,
}

impl<'a> FullDump<'a> {
    /// Reads as far as the head goes: some hundred bytes.
    ///
    /// # Errors
    /// It is not the head of a full dump, in words.
    pub(super) async fn begin(source: &'a mut dyn DumpSource) -> Result<Self, String> {
        let (mut read, mut reader) = (VecDeque::new(), DumpReader::default());
        while reader.offset() < HEAD_MAX {
            let Some(piece) = source.next().await? else { return Err(CUT.into()) };
            read.push_back(piece.clone());
            let mut rest: &[u8] = &piece;
            while let Some(event) = reader.next(&mut rest).map_err(|error| error.to_string())? {
                match event {
                    Event::Dump(header) if header.since().0 != 0 => return Err(INCREMENTAL.into()),
                    Event::Dump(_) => return Ok(Self { source, read }),
                    // Tags that nobody knows may stand before.
                    _ => {}
                }
            }
        }
        Err(ENDLESS.into())
    }
}

impl DumpSource for FullDump<'_> {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Bytes>, String>> {
        match self.read.pop_front() {
            Some(piece) => Box::pin(std::future::ready(Ok(Some(piece)))),
            None => self.source.next(),
        }
    }

    fn size(&self) -> Option<u64> {
        self.source.size()
    }
}

/// Bytes in which a dump has to have said what it is: many times what its head can be.
const HEAD_MAX: u64 = 64 << 10;
const ENDLESS: &str = "the dump does not say at its beginning what it is";
const CUT: &str = "the dump ends in the middle of its head";
const INCREMENTAL: &str = "the dump is an incremental one, which has only what changed since a time; \
     -overwrite full needs a full one, -overwrite incremental applies this one to the volume";
