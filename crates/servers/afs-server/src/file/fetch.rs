//! FetchData, in both widths (docs/protocol fileserver.md "4. Data framing on the split calls").

use std::sync::Arc;

use afs_rpc::{ServerCall, Table};
use afs_volume::DataReader;
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs;
use afs_wire::ids::Fid;
use afs_wire::xdr::Encode;
use bytes::Bytes;

use super::object::sync;
use super::server::FileServer;
use crate::access::Operation;
use crate::call_context::CallContext;
use crate::callbacks::Grant;
use crate::flow::{FileContent, Joined, Sink, Stopped, pour};

pub(super) fn add(table: Table<FileServer>) -> Table<FileServer> {
    let table =
        super::streamed(table, |server: Arc<FileServer>, context, call, request: fs::FetchData| async move {
            let count = |count: u64| (count as u32).to_bytes();
            let part =
                Part { fid: request.fid, position: request.position.into(), length: request.length.into() };
            server.fetch_data(call, &context, part, count).await
        });
    let table = super::call(table, |server: Arc<FileServer>, context, call: fs::GetGrowth| async move {
        server.get_growth(&context, call.fid).await
    });
    super::streamed(table, |server: Arc<FileServer>, context, call, request: fs::FetchData64| async move {
        let fs::FetchData64 { fid, position, length } = request;
        server.fetch_data(call, &context, Part { fid, position, length }, |count: u64| count.to_bytes()).await
    })
}

#[derive(Clone, Copy)]
pub(super) struct Part {
    pub(super) fid: Fid,
    pub(super) position: i64,
    pub(super) length: i64,
}

impl FileServer {
    async fn fetch_data(
        &self,
        mut call: ServerCall,
        context: &CallContext,
        part: Part,
        count: impl Fn(u64) -> Vec<u8>,
    ) -> Result<(), (ServerCall, AbortCode)> {
        let (data, tail) = match self.open_data(context, part).await {
            Ok(opened) => opened,
            Err(code) => return Err((call, code)),
        };
        let head = count(data.remaining());
        match self.send_data(&mut call, data, head, &tail).await {
            Ok(()) => drop(call.finish().await),
            // A failure after the first byte ends the call.
            Err(Stopped::Volume(error)) => return Err((call, self.code(part.fid, &error))),
            // The client is gone; no one is left to reply to.
            Err(Stopped::Sink(_)) => {}
        }
        Ok(())
    }

    /// Makes all checks before it grants a promise and opens the data: a refused call sends nothing.
    pub(super) async fn open_data(
        &self,
        context: &CallContext,
        part: Part,
    ) -> Result<(DataReader, fs::FetchDataReply), AbortCode> {
        let found = self.find(context, part.fid).await?;
        found.check(&context.subject, Operation::FetchData)?;
        let (position, length) = part.bounds()?;
        let callback = self.promise(context, part.fid, &found.header, Grant::Single).await;
        // Found again: a change of rights since found no promise of this caller to break.
        let found = self.found(found.served, found.header, part.fid).await?;
        found.check(&context.subject, Operation::FetchData)?;
        let opened = self.read(&found.served.volume, move |volume| volume.data(part.fid, position, length));
        let data = opened.await.map_err(|error| self.code(part.fid, &error))?;
        let status = self.status_of(&context.subject, &found, data.record());
        Ok((data, fs::FetchDataReply { status, callback, sync: sync(&found.header) }))
    }

    /// Since which version a file has only grown. A client that has that version needs the rest alone.
    async fn get_growth(&self, context: &CallContext, fid: Fid) -> Result<fs::GetGrowthReply, AbortCode> {
        let found = self.find(context, fid).await?;
        found.check(&context.subject, Operation::FetchData)?;
        let version = found.record.data_version;
        Ok(fs::GetGrowthReply { version, since: found.served.volume.grown_since(fid, version) })
    }

    /// Sends count, bytes and status as the window permits.
    pub(super) async fn send_data<S: Sink>(
        &self,
        sink: &mut S,
        data: DataReader,
        head: Vec<u8>,
        tail: &fs::FetchDataReply,
    ) -> Result<(), Stopped<S::Error>> {
        self.statistics.count_fetched_data(data.remaining());
        // The count is sent with the first bytes where that saves a packet.
        let mut joined = Joined::new(sink);
        joined.put(Bytes::from(head)).await.map_err(Stopped::Sink)?;
        pour(&mut FileContent::new(self.env.clone(), data), &mut joined).await?;
        joined.put(Bytes::from(tail.to_bytes())).await.map_err(Stopped::Sink)?;
        joined.flush().await.map_err(Stopped::Sink)
    }
}

impl Part {
    /// Position and length as unsigned numbers; the end must be a valid position too.
    fn bounds(self) -> Result<(u64, u64), AbortCode> {
        let (Ok(position), Ok(length)) = (u64::try_from(self.position), u64::try_from(self.length)) else {
            return Err(Errno::EFBIG.to_uae());
        };
        if self.position.checked_add(self.length).is_none_or(|end| end == i64::MAX) {
            return Err(Errno::EFBIG.to_uae());
        }
        Ok((position, length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_must_lie_within_63_bits() {
        let part = |position, length| Part { fid: Fid::default(), position, length }.bounds();
        let too_big = Err(Errno::EFBIG.to_uae());
        assert_eq!(part(5, 7), Ok((5, 7)));
        assert_eq!(part(0, i64::MAX - 1), Ok((0, i64::MAX as u64 - 1)));
        for (position, length) in [(-1, 0), (0, -1), (0, i64::MAX), (1, i64::MAX - 1), (i64::MAX, 0)] {
            assert_eq!(part(position, length), too_big, "{position} {length}");
        }
    }
}
