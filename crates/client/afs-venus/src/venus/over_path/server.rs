//! The calls of a file server with a data path, beside those that it has without.

use std::sync::Arc;
use std::time::Duration;

use afs_datapath::capability::{Access, ByteRange, Capability, Generation, Group, HolderId};
use afs_rpc::{CallError, EnvExt, EnvRef, ServerCall, Table};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{self, StatusReply, VolSync};
use afs_wire::ids::{Fid, Uniquifier, VnodeId};
use afs_wire::xdr::Encode;
use parking_lot::Mutex;

use super::conduct::Calls;
use super::drive::{DRIVE, Drive, EPOCH};
use super::file::{File, Shared, calls};

/// A server with a drive.
pub fn with_drive(file: &Shared, drive: &Arc<Drive>, env: EnvRef) -> Table<Mutex<File>> {
    let (told, giving, committing) = (drive.clone(), drive.clone(), drive.clone());
    calls(file.clone())
        .streamed(|file: Shared, call, request: fs::StoreRanges| async move {
            stored(&file, call, request).await.unwrap_or_default()
        })
        .call(move |_, _, _: fs::DataPath| {
            let reply = told.reply();
            async move { Ok::<_, AbortCode>(reply) }
        })
        .call(move |_, _, request: fs::GetCapability| {
            let (conduct, env) = (*giving.calls.lock(), env.clone());
            async move {
                if conduct == Calls::Delays {
                    env.sleep(Duration::from_secs(12)).await;
                }
                let outcome = |request: &fs::CapabilityRequest| match conduct {
                    Calls::Denies | Calls::Delays => fs::CapabilityOutcome::refused(Errno::EACCES.to_uae()),
                    _ => fs::CapabilityOutcome::given(capability(request, conduct)),
                };
                let outcomes = fs::CapabilityOutcomes::first_of(request.wanted.iter().map(outcome));
                Ok::<_, AbortCode>(fs::GetCapabilityReply { outcomes })
            }
        })
        .streamed(move |file: Shared, call: ServerCall, request: fs::Commit| {
            let done = commit(&file, &committing, &request);
            async move {
                match done {
                    Ok(reply) => drop(call.reply(&reply).await),
                    Err(code) => call.abort(code),
                }
            }
        })
}

fn capability(request: &fs::CapabilityRequest, conduct: Calls) -> fs::DriveCapability {
    let of = |vnode| Fid::new(request.fid.volume, VnodeId(vnode), Uniquifier(1));
    let is_other_file = conduct == Calls::OtherFile;
    let is_read = (request.access == fs::CapabilityAccess::READ) != (conduct == Calls::OtherUse);
    let access = if is_read { Access::READ } else { Access::WRITE };
    let capability = Capability {
        drive: DRIVE,
        epoch: EPOCH,
        group: if is_other_file { Group::File(of(4)) } else { Group::Directory(of(1)) },
        access,
        range: ByteRange::ALL,
        expires: u64::MAX,
        generation: Generation(0),
        holder: HolderId(1),
    };
    fs::DriveCapability {
        arguments: fs::CapabilityArguments::truncated(&capability.to_bytes()),
        secret: fs::CapabilitySecret([3; 32]),
        seconds: 300,
    }
}

fn commit(file: &Shared, drive: &Drive, request: &fs::Commit) -> Result<StatusReply, AbortCode> {
    if *drive.calls.lock() == Calls::NoCommit {
        return Err(AbortCode::RXGEN_OPCODE);
    }
    let ticket = u128::from_be_bytes(request.staged.0);
    let pieces = drive.take(ticket).ok_or(Errno::ESTALE.to_uae())?;
    let mut file = file.lock();
    if !file.store(request.expected.0, request.file_length, &pieces) {
        return Err(Errno::EAGAIN.to_uae());
    }
    grow(&mut file, request.grown_to);
    Ok(StatusReply { status: file.status(request.fid), sync: VolSync::default() })
}

fn grow(file: &mut File, to: u64) {
    let length = file.bytes.len().max(to as usize);
    file.bytes.resize(length, 0);
}

/// StoreRanges.
async fn stored(file: &Shared, mut call: ServerCall, request: fs::StoreRanges) -> Result<(), CallError> {
    let head = call.read_exact(request.ranges as usize * fs::STORE_RANGE_LEN).await?;
    let number = |bytes: &[u8]| bytes.iter().fold(0u64, |value, byte| value << 8 | u64::from(*byte));
    let mut pieces = Vec::new();
    for range in head.chunks(fs::STORE_RANGE_LEN) {
        let (at, len) = (number(&range[..8]), number(&range[8..]));
        pieces.push((at, call.read_exact(len as usize).await?.to_vec()));
    }
    let status = {
        let mut file = file.lock();
        if !file.store(request.expected.0, request.file_length, &pieces) {
            drop(file);
            call.abort(Errno::EAGAIN.to_uae());
            return Ok(());
        }
        grow(&mut file, request.grown_to);
        file.status(request.fid)
    };
    call.reply(&StatusReply { status, sync: VolSync::default() }).await
}
