//! The file of the server, and the calls that every file server has: status and data.

use std::net::Ipv4Addr;
use std::sync::Arc;

use afs_rpc::{CallError, ServerCall, Table};
use afs_wire::error::AbortCode;
use afs_wire::fs::{self, CallBack, FileKind, Status, StatusReply, VolSync};
use afs_wire::ids::{DataVersion, Fid, Mode, Rights, Uniquifier, VnodeId};
use afs_wire::rpc::ServiceId;
use afs_wire::xdr::{BoundedVec, Encode};
use bytes::Bytes;
use parking_lot::Mutex;

pub const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 1);
/// In place of a version: any version.
const ANY_VERSION: u64 = u64::MAX;

/// The file of the server.
pub struct File {
    pub bytes: Vec<u8>,
    pub version: u64,
}

pub type Shared = Arc<Mutex<File>>;

impl File {
    pub fn status(&self, fid: Fid) -> Status {
        let kind = if fid.is_directory() { FileKind::Directory } else { FileKind::File };
        Status {
            kind,
            link_count: 1,
            length: self.bytes.len() as u64,
            data_version: DataVersion(self.version),
            caller_access: Rights::ALL,
            anonymous_access: Rights::ALL,
            mode: Mode(0o644),
            parent: VnodeId(1),
            parent_unique: Uniquifier(1),
            ..Status::default()
        }
    }

    pub fn store(&mut self, expected: u64, file_length: u64, pieces: &[(u64, Vec<u8>)]) -> bool {
        if expected != ANY_VERSION && expected != self.version {
            return false;
        }
        self.bytes.truncate(file_length as usize);
        for (at, bytes) in pieces {
            let end = *at as usize + bytes.len();
            self.bytes.resize(self.bytes.len().max(end), 0);
            self.bytes[*at as usize..end].copy_from_slice(bytes);
        }
        self.version += 1;
        true
    }
}

/// The server's calls.
pub fn calls(file: Shared) -> Table<Mutex<File>> {
    Table::new(ServiceId::FILE, file)
        .call(|_, _, _: fs::GetCapabilities| async move {
            Ok::<_, AbortCode>(fs::GetCapabilitiesReply { capabilities: BoundedVec::new() })
        })
        .call(|file: Shared, _, request: fs::FetchStatus| async move {
            let status = file.lock().status(request.fid);
            let (callback, sync) = (CallBack::shared(1000), VolSync::default());
            Ok::<_, AbortCode>(fs::FetchStatusReply { status, callback, sync })
        })
        .streamed(|file: Shared, call, request: fs::FetchData64| async move {
            fetched(&file, call, request).await.unwrap_or_default()
        })
        .streamed(|file: Shared, call, request: fs::StoreData64| async move {
            stored(&file, call, request).await.unwrap_or_default()
        })
}

async fn fetched(file: &Shared, mut call: ServerCall, request: fs::FetchData64) -> Result<(), CallError> {
    let (bytes, status) = {
        let file = file.lock();
        let from = (request.position as usize).min(file.bytes.len());
        let end = (from + request.length as usize).min(file.bytes.len());
        (Bytes::copy_from_slice(&file.bytes[from..end]), file.status(request.fid))
    };
    call.write(Bytes::from((bytes.len() as u64).to_bytes())).await?;
    call.write(bytes).await?;
    let (callback, sync) = (CallBack::shared(1000), VolSync::default());
    call.reply(&fs::FetchDataReply { status, callback, sync }).await
}

async fn stored(file: &Shared, mut call: ServerCall, request: fs::StoreData64) -> Result<(), CallError> {
    let bytes = call.read_exact(request.length as usize).await?;
    let status = {
        let mut file = file.lock();
        file.store(ANY_VERSION, request.file_length, &[(request.position, bytes.to_vec())]);
        file.status(request.fid)
    };
    call.reply(&StatusReply { status, sync: VolSync::default() }).await
}
