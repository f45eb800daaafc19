//! Table of all calls with their kind and object for the audit log, one line each.

use afs_wire::rpc::Request;
use afs_wire::{fs, vl, vol};

use super::record::{AuditName, AuditObject, CallKind};

/// A call that can be audited.
pub(crate) trait Described: Request {
    /// Its kind.
    const KIND: CallKind;

    /// The object it names.
    fn object(&self) -> AuditObject;
}

/// `Kind: Request |call| object;` for each call.
macro_rules! described {
    ($($kind:ident: $request:ty |$call:pat_param| $object:expr;)*) => { $(
        impl $crate::audit::Described for $request {
            const KIND: $crate::audit::CallKind = $crate::audit::CallKind::$kind;

            fn object(&self) -> $crate::audit::AuditObject {
                let $call = self;
                ($object).into()
            }
        }
    )* };
}

pub(crate) use described;

described! {
    Read: fs::FetchData |call| call.fid;
    Read: fs::FetchData64 |call| call.fid;
    Read: fs::FetchAcl |call| call.fid;
    Read: fs::FetchStatus |call| call.fid;
    Read: fs::BulkStatus |call| call.fids.first().copied().unwrap_or_default();
    Read: fs::InlineBulkStatus |call| call.fids.first().copied().unwrap_or_default();
    Change: fs::StoreData |call| call.fid;
    Change: fs::StoreData64 |call| call.fid;
    Change: fs::StoreRanges |call| call.fid;
    List: fs::ChangeList |call| call.volume;
    Change: fs::TakeLease |call| call.dir;
    Read: fs::ReturnLease |call| call.dir;
    Change: fs::LendMore |call| call.dir;
    Change: fs::StoreAcl |call| call.fid;
    Change: fs::OldStoreAcl |call| call.fid;
    Change: fs::StoreStatus |call| call.fid;
    Change: fs::RemoveFile |call| (call.dir, &*call.name);
    Change: fs::CreateFile |call| (call.dir, &*call.name);
    Change: fs::Rename |call| AuditObject::Moved([
        (call.old_dir, AuditName::new(&call.old_name)),
        (call.new_dir, AuditName::new(&call.new_name)),
    ]);
    Change: fs::RenameNew |call| AuditObject::Moved([
        (call.old_dir, AuditName::new(&call.old_name)),
        (call.new_dir, AuditName::new(&call.new_name)),
    ]);
    Change: fs::Symlink |call| (call.dir, &*call.name);
    Change: fs::Link |call| (call.dir, &*call.name);
    Change: fs::MakeDir |call| (call.dir, &*call.name);
    Change: fs::RemoveDir |call| (call.dir, &*call.name);
    Read: fs::SetLock |call| call.fid;
    Read: fs::ExtendLock |call| call.fid;
    Read: fs::ReleaseLock |call| call.fid;
    Read: fs::ChangeLock |call| call.fid;
    Read: fs::OldSetLock |call| call.fid;
    Read: fs::OldExtendLock |call| call.fid;
    Read: fs::OldReleaseLock |call| call.fid;
    Read: fs::GiveUpCallBacks |call| call.fids.first().copied().unwrap_or_default();
    Read: fs::GiveUpAllCallBacks |_| ();
    Read: fs::GetVolumeStatus |call| call.volume;
    Change: fs::StoreVolumeStatus |call| call.volume;
    Probe: fs::GetTime |_| ();
    Probe: fs::GetCapabilities |_| ();
    Read: fs::FlushCps |_| ();
    Read: fs::ListSnapshots |call| call.volume;
    Read: fs::DataPath |_| ();
    // Each object of these two is recorded by itself.
    Read: fs::GetCapability |_| ();
    Read: fs::GetLayout |_| ();
    Read: fs::Command |call| call.fid;
    Read: fs::GetGrowth |call| call.fid;
    Read: fs::GetRoom |call| call.fid;
    Read: fs::EndRoom |_| ();
    Change: fs::Commit |call| call.fid;
    Read: fs::StatusAndCapability |call| call.wanted.fid;
}

described! {
    Change: vl::CreateEntry |call| call.entry.ids[0];
    Change: vl::CreateEntryN |call| call.entry.ids[0];
    Change: vl::DeleteEntry |call| call.volume;
    Change: vl::ReplaceEntry |call| call.volume;
    Change: vl::ReplaceEntryN |call| call.volume;
    Change: vl::ExchangeNames |call| call.one;
    Change: vl::UpdateEntry |call| call.volume;
    Change: vl::UpdateEntryByName |call| &*call.name;
    Change: vl::SetLock |call| call.volume;
    Change: vl::ReleaseLock |call| call.volume;
    Change: vl::GetNewVolumeId |_| ();
    Change: vl::ChangeAddr |_| ();
    Change: vl::RegisterAddrs |call| AuditObject::Server(call.uuid);
    Read: vl::GetEntryById |call| call.volume;
    Read: vl::GetEntryByIdN |call| call.volume;
    Read: vl::GetEntryByNameO |call| &*call.name;
    Read: vl::GetEntryByNameN |call| &*call.name;
    Read: vl::GetEntryByNameU |call| &*call.name;
    Read: vl::ListEntry |_| ();
    Read: vl::ListEntryN |_| ();
    Read: vl::ListAttributes |_| ();
    Read: vl::ListAttributesN |_| ();
    Read: vl::ListAttributesN2 |call| &*call.name;
    Read: vl::LinkedList |_| ();
    Read: vl::LinkedListN |_| ();
    Read: vl::GetAddrs |_| ();
    Read: vl::GetAddrsU |_| ();
    Read: vl::GetStats |_| ();
    Probe: vl::ProbeServer |_| ();
}

described! {
    Change: vol::CreateVolume |call| call.volume;
    Change: vol::DeleteVolume |call| call.transaction;
    Change: vol::NukeVolume |call| call.volume;
    Change: vol::TransCreate |call| call.volume;
    Change: vol::EndTrans |call| call.transaction;
    Change: vol::SetFlags |call| call.transaction;
    Change: vol::SetInfo |call| call.transaction;
    Change: vol::SetDate |call| call.transaction;
    Change: vol::SetIdsTypes |call| call.transaction;
    Change: vol::SetForwarding |call| call.transaction;
    Read: vol::GetFlags |call| call.transaction;
    Read: vol::GetName |call| call.transaction;
    Read: vol::GetStatus |call| call.transaction;
    Read: vol::SignalRestore |_| ();
    Read: vol::Monitor |_| ();
    Read: vol::ListVolumes |_| ();
    Read: vol::XListVolumes |_| ();
    Read: vol::ListOneVolume |call| call.volume;
    Read: vol::XListOneVolume |call| call.volume;
    Read: vol::ListPartitions |_| ();
    Read: vol::XListPartitions |_| ();
    Read: vol::PartitionInfo |_| ();
    Read: vol::PartitionInfo64 |_| ();
    Change: vol::Clone |call| call.volume;
    Change: vol::ReClone |call| call.clone;
    Change: vol::ConvertRoToRw |call| call.volume;
    Change: vol::Restore |call| call.transaction;
    Change: vol::Forward |call| call.transaction;
    Change: vol::ForwardMultiple |call| call.transaction;
    Read: vol::Dump |call| call.transaction;
    Read: vol::DumpV2 |call| call.transaction;
    Read: vol::GetSize |call| call.transaction;
    Read: vol::ListSnapshots |call| call.volume;
    Read: vol::FetchPart |call| call.fid.volume;
    Change: vol::ForwardDifference |call| call.transaction;
    Read: vol::DumpFormats |_| ();
    Read: vol::GetRoute |call| call.volume;
    Change: vol::SetRoute |call| call.transaction;
    Read: vol::GetPlacement |call| call.volume;
    Change: vol::SetPlacement |call| call.transaction;
    Read: vol::GetLending |call| call.volume;
    Change: vol::SetLending |call| call.transaction;
    Read: vol::GetPrivacy |call| call.volume;
    Change: vol::SetPrivacy |call| call.transaction;
    Read: vol::DumpByPath |call| call.transaction;
    Change: vol::RestoreByPath |call| call.transaction;
}
