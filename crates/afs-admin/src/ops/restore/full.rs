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
        loop {
            let Some(piece) = source.next().await? else { return Err(CUT.into()) };
            let mut rest: &[u8] = &piece;
            let event = reader.next(&mut rest).map_err(|error| error.to_string())?;
            read.push_back(piece.clone());
            match event {
                None => {}
                Some(Event::Dump(header)) if header.since().0 != 0 => return Err(INCREMENTAL.into()),
                Some(_) => return Ok(Self { source, read }),
            }
        }
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

const CUT: &str = "the dump ends in the middle of its head";
const INCREMENTAL: &str = "the dump is an incremental one, which has only what changed since a time; \
     -overwrite full needs a full one, -overwrite incremental applies this one to the volume";
