//! Fake file service: statuses derived from the fid, data from a pattern.

#![allow(dead_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use afs_rpc::sync::Notify;
use afs_rpc::{CallError, Connection, EnvExt, EnvRef, Identity, ServerCall, Table};
use afs_wire::error::AbortCode;
use afs_wire::fs;
use afs_wire::ids::{DataVersion, Fid, Uniquifier, VnodeId, VolumeId};
use afs_wire::rpc::{Opcode, ServiceId};
use afs_wire::xdr::{ByteString, Encode};
use bytes::Bytes;

/// Vnodes from here on do not exist.
pub const ABSENT: u32 = 1_000_000;
/// The status of this vnode takes ten seconds.
pub const SLOW: u32 = 777;
/// A request for the status of this vnode panics.
pub const BROKEN: u32 = 778;
/// A fetch of this vnode is aborted in the middle; a store to it is refused after the first bytes.
pub const FRAGILE: u32 = 779;
/// A fetch of this vnode never finishes: the server stops writing.
pub const STUCK: u32 = 780;
/// Bytes moved at a time.
pub const PIECE: usize = 1 << 20;

pub struct Fake {
    pub env: EnvRef,
    /// Calls being served, and the largest number at one time.
    pub running: AtomicUsize,
    pub most: AtomicUsize,
    pub stored: AtomicU64,
    pub changed: Notify,
}

impl Fake {
    pub fn new(env: EnvRef) -> Arc<Self> {
        let zero = AtomicUsize::new(0);
        let most = AtomicUsize::new(0);
        Arc::new(Self { env, running: zero, most, stored: AtomicU64::new(0), changed: Notify::new() })
    }

    pub fn service(self: &Arc<Self>) -> Arc<Table<Fake>> {
        Arc::new(
            Table::new(ServiceId::FILE, self.clone())
                .call(|fake: Arc<Self>, caller: afs_rpc::Caller, ask: fs::FetchStatus| async move {
                    fake.status(ask.fid, caller.identity).await
                })
                .call(|_: Arc<Self>, _, ask: fs::StoreAcl| async move {
                    let status = fs::Status { length: ask.acl.as_bytes().len() as u64, ..Default::default() };
                    Ok::<_, AbortCode>(fs::StatusReply { status, sync: Default::default() })
                })
                .streamed(|_: Arc<Self>, call, ask: fs::FetchData64| async move {
                    // The client may be gone.
                    let _ = fetch(call, ask).await;
                })
                .streamed(|fake: Arc<Self>, call, ask: fs::StoreData64| async move {
                    let _ = fake.store(call, ask).await;
                })
                .refuse(Opcode(199), AbortCode::VBUSY),
        )
    }

    async fn status(
        self: Arc<Self>,
        fid: Fid,
        identity: Identity,
    ) -> Result<fs::FetchStatusReply, AbortCode> {
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(running, Ordering::SeqCst);
        let _end = End(&self.running);
        match fid.vnode.0 {
            BROKEN => panic!("as the test wants it"),
            SLOW => self.env.sleep(Duration::from_secs(10)).await,
            vnode if vnode >= ABSENT => return Err(AbortCode::VNOVNODE),
            _ => {}
        }
        let link_count = if identity == Identity::Local { 2 } else { 1 };
        let status = fs::Status {
            kind: fs::FileKind::File,
            link_count,
            length: fid.vnode.0.into(),
            data_version: DataVersion(fid.unique.0.into()),
            ..Default::default()
        };
        Ok(fs::FetchStatusReply { status, callback: fs::CallBack::default(), sync: fs::VolSync::default() })
    }

    async fn store(&self, mut call: ServerCall, ask: fs::StoreData64) -> Result<(), CallError> {
        let mut at = 0;
        while at < ask.length {
            let want = usize::try_from(ask.length - at).unwrap().min(PIECE);
            let Some(data) = call.read_some(want).await? else {
                call.abort(AbortCode::RXGEN_SS_UNMARSHAL);
                return Ok(());
            };
            if ask.fid.vnode.0 == FRAGILE {
                call.abort(AbortCode::VDISKFULL);
                return Ok(());
            }
            if !matches_pattern(ask.position + at, &data) {
                call.abort(AbortCode::VSALVAGE);
                return Ok(());
            }
            at += data.len() as u64;
            self.stored.fetch_add(data.len() as u64, Ordering::SeqCst);
            self.changed.notify_waiters();
        }
        if !call.read_to_end(0).await?.is_empty() {
            return Ok(());
        }
        let status = fs::Status { length: ask.position + at, ..Default::default() };
        call.reply(&fs::StatusReply { status, sync: Default::default() }).await
    }
}

struct End<'a>(&'a AtomicUsize);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn fetch(mut call: ServerCall, ask: fs::FetchData64) -> Result<(), CallError> {
    let (mut at, length) = (ask.position as u64, ask.length as u64);
    let end = at + length;
    call.write(Bytes::from(length.to_bytes())).await?;
    while at < end {
        let n = usize::try_from(end - at).unwrap().min(PIECE);
        call.write(pattern(at, n)).await?;
        at += n as u64;
        if ask.fid.vnode.0 == FRAGILE {
            call.abort(AbortCode::VIO);
            return Ok(());
        }
        if ask.fid.vnode.0 == STUCK {
            std::future::pending::<()>().await;
        }
    }
    let status = fs::Status { length: end, ..Default::default() };
    call.reply(&fs::FetchDataReply { status, callback: Default::default(), sync: Default::default() }).await
}

fn pattern_byte(at: u64) -> u8 {
    (at ^ (at >> 8) ^ (at >> 16).wrapping_mul(7)) as u8
}

pub fn pattern(at: u64, len: usize) -> Bytes {
    (at..at + len as u64).map(pattern_byte).collect()
}

pub fn matches_pattern(at: u64, data: &[u8]) -> bool {
    data.iter().zip(at..).all(|(byte, at)| *byte == pattern_byte(at))
}

pub fn fid(vnode: u32, unique: u32) -> Fid {
    Fid { volume: VolumeId(1), vnode: VnodeId(vnode), unique: Uniquifier(unique) }
}

pub async fn ask_status(connection: &Connection, vnode: u32) -> Result<fs::Status, CallError> {
    let reply = connection.call(&fs::FetchStatus { fid: fid(vnode, 9) }).await?;
    Ok(reply.status)
}

/// Fetches and checks `length` bytes; returns the file length in the end of the reply.
pub async fn fetch_pattern(connection: &Connection, vnode: u32, length: u64) -> Result<u64, CallError> {
    let ask = fs::FetchData64 { fid: fid(vnode, 1), position: 0, length: length as i64 };
    let mut call = connection.open(&ask).await?;
    call.finish_request()?;
    let count = call.read_exact(8).await?;
    let count = u64::from_be_bytes(count.as_ref().try_into().unwrap());
    assert_eq!(count, length);
    let mut at = 0;
    while at < count {
        let want = usize::try_from(count - at).unwrap().min(PIECE);
        let Some(data) = call.read_some(want).await? else { return Err(CallError::Ended) };
        assert!(matches_pattern(at, &data), "at {at}");
        at += data.len() as u64;
    }
    Ok(call.finish::<fs::FetchData64>().await?.status.length)
}

/// The beginning of a request that stores `length` bytes.
pub fn store(vnode: u32, length: u64) -> fs::StoreData64 {
    let fid = fid(vnode, 1);
    fs::StoreData64 { fid, status: Default::default(), position: 0, length, file_length: length }
}

/// Stores `length` bytes; returns the server's count.
pub async fn store_pattern(connection: &Connection, vnode: u32, length: u64) -> Result<u64, CallError> {
    let mut call = connection.open(&store(vnode, length)).await?;
    let mut at = 0;
    while at < length {
        let n = usize::try_from(length - at).unwrap().min(PIECE);
        call.write(pattern(at, n)).await?;
        at += n as u64;
    }
    call.finish_request()?;
    Ok(call.finish::<fs::StoreData64>().await?.status.length)
}

/// A request whose access list does not fit into one packet.
pub fn large_request(bytes: usize) -> fs::StoreAcl {
    fs::StoreAcl { fid: fid(1, 1), acl: ByteString::new(vec![b'x'; bytes]).unwrap() }
}
