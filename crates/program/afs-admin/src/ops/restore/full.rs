//! Dump source that is checked to be a full dump.

use std::collections::VecDeque;

use afs_rpc::BoxFuture;
use afs_wire::dump::{DumpReader, Event};
use bytes::Bytes;

use crate::ops::DumpSource;

/// A source whose head was examined. An incremental dump would leave a mixture where a full one is expected,
/// and a stream that is no dump would be noticed after the old volume is deleted.
pub(super) struct FullDump<'a> {
    source: &'a mut dyn DumpSource,
    /// Bytes read to examine the head, not requested yet.
    read: VecDeque<Bytes>,
}

impl<'a> FullDump<'a> {
    /// Reads the head: some hundred bytes.
    ///
    /// # Errors
    /// It is not the head of a full dump: an error message.
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
                    // Unknown tags may come before.
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

    fn rewind(&mut self) -> BoxFuture<'_, Result<bool, String>> {
        Box::pin(async move {
            let can = self.source.rewind().await?;
            if can {
                self.read.clear();
            }
            Ok(can)
        })
    }
}

/// Bytes within which a dump must have identified itself: many times the length of its head.
const HEAD_MAX: u64 = 64 << 10;
const ENDLESS: &str = "the dump does not say at its beginning what it is";
const CUT: &str = "the dump ends in the middle of its head";
const INCREMENTAL: &str = "the dump is an incremental one, which has only what changed since a time; \
     -overwrite full needs a full one, -overwrite incremental applies this one to the volume";
