//! Read of a whole chunk from its object store, by an address that the file server signs for this one read.

use std::ops::Range;
use std::time::Duration;

use afs_datapath::capability::DriveId;
use afs_drive::ChunkRef;
use afs_rpc::{CallError, EnvExt};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{self, ChunkToFetch, CommandReply, Order};
use afs_wire::rpc::Request;
use afs_wire::xdr::Fixed;
use bytes::Bytes;

use super::super::fallback::Fallback;
use super::super::opening::CALL_MAX;
use super::read::Fetch;
use super::server_drives::ServerDrives;
use crate::objects::{ObjectError, ObjectReader};

impl ServerDrives {
    /// A range of a chunk that begins at a position of the file. The chunk is read as a whole, to be compared with its checksum.
    pub(super) async fn read_object(
        &self,
        fetch: &Fetch<'_>,
        (bucket, chunk, start): (DriveId, ChunkRef, u64),
        (range, most): (Range<u32>, Duration),
    ) -> Result<Bytes, Fallback> {
        let objects = self.common.objects.as_ref().ok_or(Fallback::Declined)?;
        if self.buckets.lock().is_pausing(bucket, self.now()) {
            return Err(Fallback::Paused);
        }
        let _permit = objects.reads.clone().try_acquire_owned().map_err(|_| Fallback::Full)?;
        let reply = self.get_address(fetch, (bucket, chunk, start)).await?;
        let reading = read(&*objects.reader, &reply, chunk);
        match self.common.env.timeout(most, reading).await.unwrap_or(Err(Fallback::Stalled)) {
            Ok(bytes) => {
                self.buckets.lock().succeeded(bucket, self.now());
                Ok(bytes.slice(range.start as usize..range.end as usize))
            }
            Err(why) => {
                if let Some(pause) = self.buckets.lock().failed(bucket, why, self.now()) {
                    let (reason, pause) = (why.name(), pause.as_secs());
                    tracing::warn!(reason, pause, "a bucket failed; its bytes are moved by the file server");
                }
                Err(why)
            }
        }
    }

    async fn get_address(
        &self,
        fetch: &Fetch<'_>,
        (bucket, chunk, position): (DriveId, ChunkRef, u64),
    ) -> Result<CommandReply, Fallback> {
        self.common.counters.call(fs::Command::NAME);
        let (_, fid, version) = fetch.key;
        let (drive, chunk) = (Fixed(bucket.0.to_be_bytes()), Fixed(chunk.to_bytes()));
        let order = Order::Address(ChunkToFetch { version, position, chunk });
        let request = fs::Command { fid, drive, order };
        match self.common.env.timeout(CALL_MAX, fetch.target.connection.call(&request)).await {
            Ok(Ok(reply)) => Ok(reply),
            Ok(Err(CallError::Abort(code))) => Err(refused(code)),
            _ => Err(Fallback::NoLayout),
        }
    }
}

/// The bytes of a chunk.
async fn read(reader: &dyn ObjectReader, reply: &CommandReply, chunk: ChunkRef) -> Result<Bytes, Fallback> {
    let end = reply.start.checked_add(reply.length.into()).filter(|_| reply.length == chunk.len);
    let end = end.ok_or(Fallback::Protocol)?;
    let address = std::str::from_utf8(reply.address.0.as_bytes()).map_err(|_| Fallback::Protocol)?;
    let bytes = reader.read(address, reply.start..end).await.map_err(failed)?;
    match bytes.len() == chunk.len as usize && crc32c::crc32c(&bytes) == chunk.crc {
        true => Ok(bytes),
        false => Err(Fallback::Damaged),
    }
}

/// The file server has given no address. The layout does not hold, or the rights.
fn refused(code: AbortCode) -> Fallback {
    if code == Errno::EACCES.to_uae() { Fallback::Refused } else { Fallback::Declined }
}

fn failed(error: ObjectError) -> Fallback {
    match error {
        ObjectError::Forbidden => Fallback::Forbidden,
        ObjectError::Unreachable => Fallback::Unreachable,
        ObjectError::Broken | ObjectError::Status(408 | 429 | 500..=599) => Fallback::Broken,
        ObjectError::Status(401 | 403) => Fallback::Refused,
        ObjectError::Status(400..) => Fallback::Declined,
        // A redirection, or more than was asked for.
        ObjectError::Status(_) | ObjectError::Length => Fallback::Protocol,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use afs_drive::ChunkId;
    use afs_wire::fs::ObjectAddress;
    use afs_wire::xdr::ByteString;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    const BYTES: &[u8] = b"the bytes of a chunk";

    /// Gives these bytes, whatever is asked for.
    struct Gives(&'static [u8]);

    impl ObjectReader for Gives {
        fn read(&self, _: &str, _: Range<u64>) -> afs_rpc::BoxFuture<'static, Result<Bytes, ObjectError>> {
            let bytes = Bytes::from_static(self.0);
            Box::pin(async move { Ok(bytes) })
        }
    }

    fn reply(start: u64, length: u32, address: &[u8]) -> CommandReply {
        CommandReply { address: ObjectAddress(ByteString::new(address).unwrap()), start, length, seconds: 9 }
    }

    fn read_of(given: &'static [u8], reply: &CommandReply) -> Result<Bytes, Fallback> {
        let len = BYTES.len() as u32;
        let chunk = ChunkRef { id: ChunkId::from_parts(1, 0), len, crc: crc32c::crc32c(BYTES) };
        let store = Gives(given);
        let mut reading = pin!(read(&store, reply, chunk));
        match reading.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(outcome) => outcome,
            Poll::Pending => panic!("nothing is waited for"),
        }
    }

    #[test]
    fn what_is_read_has_the_length_and_the_sum_of_the_chunk_whatever_the_server_and_the_store_say() {
        let len = BYTES.len() as u32;
        assert_eq!(read_of(BYTES, &reply(7, len, b"https://store/1")).unwrap(), BYTES);
        let wrong = [
            reply(7, len - 1, b""),
            reply(7, len + 1, b""),
            reply(u64::MAX, len, b""),
            reply(7, len, b"\xff"),
        ];
        for reply in wrong {
            assert_eq!(read_of(BYTES, &reply), Err(Fallback::Protocol), "{reply:?}");
        }
        for given in [&BYTES[1..], b"the bytes of a chunk and more", b"other bytes of chunk", b""] {
            assert_eq!(read_of(given, &reply(7, len, b"")), Err(Fallback::Damaged), "{given:?}");
        }
    }

    #[test]
    fn rights_that_are_refused_are_told_from_a_layout_that_does_not_hold() {
        assert_eq!(refused(Errno::EACCES.to_uae()), Fallback::Refused);
        assert_eq!(refused(Errno::ENXIO.to_uae()), Fallback::Declined);
    }
}
