//! Chunks of the same drive: each request is compared with the capabilities that were given.

use std::sync::Arc;

use afs_datapath::capability::{Generation, StoreNumber};
use afs_datapath::frame::{ChunkReply, ChunkRequest, Content, DriveStatus};
use afs_datapath::session::{ChunkCall, Chunks, Failure, Opened, Pieces, Taken};
use afs_drive::{ChunkId, ChunkRef, Usage};
use afs_env::BoxFuture;
use bytes::Bytes;

use super::watched::{Files, Watched};

pub const STORE: StoreNumber = StoreNumber(3);

/// The one chunk that there is: its bytes.
pub fn chunk_bytes() -> Vec<u8> {
    (0..100_000u32).map(|at| (at ^ (at >> 7)) as u8).collect()
}

pub fn chunk() -> ChunkRef {
    let crc = Content::of(&chunk_bytes().into()).crc;
    ChunkRef { id: ChunkId::from_parts(1 << 32, 4096), len: 100_000, crc }
}

/// What a read of all of it gives: the checksums of its pieces, then its bytes.
pub fn chunk_reply() -> Vec<u8> {
    let bytes = chunk_bytes();
    let sums = bytes
        .chunks(64 << 10)
        .flat_map(|piece| Content::of(&Bytes::copy_from_slice(piece)).crc.to_be_bytes());
    sums.chain(bytes.iter().copied()).collect()
}

impl Watched {
    fn check_call(&self, call: &ChunkCall) {
        let is_permitted = match (&call.room, &call.what) {
            (Some(room), _) => self.issued.may_stage(call.store, room.tag),
            (None, ChunkRequest::Read { .. }) => {
                self.issued.may_manage(call.store) || self.issued.may_read_bound()
            }
            _ => self.issued.may_manage(call.store),
        };
        assert!(is_permitted, "{:?} of store {} by nothing that was given", call.what, call.store);
    }
}

impl Chunks for Files {
    fn perform(&self, call: ChunkCall, bytes: Taken) -> BoxFuture<'static, Result<ChunkReply, Failure>> {
        self.0.check_call(&call);
        self.0.reached.note("chunks begun");
        let me = self.0.clone();
        Box::pin(async move {
            let usage = Usage { free: 5, total: 9 };
            let came = me.drain(bytes, None, 512 << 10).await?;
            assert_eq!(came, call.what.incoming(), "a request ended with other bytes than announced");
            Ok(match call.what {
                ChunkRequest::Write { .. } | ChunkRequest::Stage { .. } | ChunkRequest::Send { .. } => {
                    ChunkReply::Written { chunk: chunk(), usage }
                }
                ChunkRequest::Status => ChunkReply::Status(DriveStatus::default()),
                ChunkRequest::Revoke { .. } => ChunkReply::Revoked { latest: Generation(1) },
                _ => ChunkReply::Done,
            })
        })
    }

    fn open(&self, call: ChunkCall) -> BoxFuture<'static, Result<Opened, Failure>> {
        self.0.check_call(&call);
        self.0.reached.note("chunks opened");
        let me = self.0.clone();
        Box::pin(async move {
            let ChunkRequest::Read { chunk: wanted, .. } = call.what else { return Err(Failure::Invalid) };
            if wanted != chunk() {
                return Err(Failure::NoObject);
            }
            let bytes = chunk_reply();
            let length = bytes.len() as u64;
            Ok(Opened { file_length: 0, length, pieces: Box::new(Whole { watched: me, bytes, at: 0 }) })
        })
    }
}

struct Whole {
    watched: Arc<Watched>,
    bytes: Vec<u8>,
    at: usize,
}

impl Pieces for Whole {
    fn next(&mut self, most: usize) -> BoxFuture<'_, Result<Bytes, Failure>> {
        let len = most.min(self.watched.manner().piece_max).min(self.bytes.len() - self.at);
        let piece = self.bytes[self.at..self.at + len].to_vec();
        self.at += len;
        Box::pin(async move { Ok(self.watched.counted(piece)) })
    }
}
