//! Calls on names, status and access lists.

use super::{AclText, CallBack, Capabilities, Name, PathText, SERVICE, SetStatus, Status, VolSync};
use crate::ids::{Fid, ViceId};
use crate::rpc::Nothing;
use crate::xdr::BoundedVec;
use std::net::Ipv4Addr;

calls! {
    service SERVICE;

    /// Reads an access list. On a file or link: that of its parent directory.
    131 "FetchACL" FetchAcl { fid: Fid } -> FetchAclReply { acl: AclText, status: Status, sync: VolSync };

    /// Reads an object's status and requests a promise.
    132 "FetchStatus" FetchStatus { fid: Fid }
        -> FetchStatusReply { status: Status, callback: CallBack, sync: VolSync };

    /// Replaces a directory's access list, by its old number; the same as [`StoreAcl`].
    134 "OldStoreACL" OldStoreAcl { fid: Fid, acl: AclText } -> StatusReply;

    /// Changes an object's status.
    135 "StoreStatus" StoreStatus { fid: Fid, status: SetStatus } -> StatusReply;

    /// Removes a file, link or mount point. The status in the reply is the directory's.
    136 "RemoveFile" RemoveFile { dir: Fid, name: Name }
        -> RemoveReply { dir_status: Status, sync: VolSync };

    /// Makes an empty file.
    137 "CreateFile" CreateFile { dir: Fid, name: Name, status: SetStatus }
        -> CreateReply { fid: Fid, status: Status, dir_status: Status, callback: CallBack, sync: VolSync };

    /// Renames an entry, replacing an existing target.
    138 "Rename" Rename { old_dir: Fid, old_name: Name, new_dir: Fid, new_name: Name }
        -> RenameReply { old_dir_status: Status, new_dir_status: Status, sync: VolSync };

    /// Creates a symbolic link or (when the mode has no x bit) a mount point. The reply has no promise.
    139 "Symlink" Symlink { dir: Fid, name: Name, contents: PathText, status: SetStatus }
        -> SymlinkReply { fid: Fid, status: Status, dir_status: Status, sync: VolSync };

    /// Gives a file another name in its directory.
    140 "Link" Link { dir: Fid, name: Name, existing: Fid }
        -> LinkReply { status: Status, dir_status: Status, sync: VolSync };

    /// Makes a directory.
    141 "MakeDir" MakeDir { dir: Fid, name: Name, status: SetStatus } -> CreateReply;

    /// Removes an empty directory. The status in the reply is the parent's.
    142 "RemoveDir" RemoveDir { dir: Fid, name: Name } -> RemoveReply;

    /// Names the root volume; never used, servers refuse it.
    151 "GetRootVolume" GetRootVolume {} -> GetRootVolumeReply { name: Name };

    /// Checks a token; never used, servers refuse it.
    152 "CheckToken" CheckToken { id: ViceId, token: AclText } -> Nothing;

    /// Reads the server's clock.
    153 "GetTime" GetTime {} -> GetTimeReply { seconds: u32, microseconds: u32 };

    /// Looks a name up in a directory. Clients do that themselves; servers refuse it.
    161 "Lookup" Lookup { dir: Fid, name: Name } -> CreateReply;

    /// Drops the server's cached groups of users. For server administrators.
    162 "FlushCPS" FlushCps { ids: BoundedVec<i32, 10>, addresses: BoundedVec<i32, 10>, spare: i32 }
        -> FlushCpsReply { spare2: i32, spare3: i32 };

    /// Makes a link for a DFS translator; servers refuse it.
    163 "DFSSymlink" DfsSymlink { dir: Fid, name: Name, contents: PathText, status: SetStatus } -> CreateReply;

    /// Replaces a directory's access list.
    164 "StoreACL" StoreAcl { fid: Fid, acl: AclText } -> StatusReply;

    /// Gives up every promise the caller has from this server.
    65539 "GiveUpAllCallBacks" GiveUpAllCallBacks {} -> Nothing;

    /// Reads the server's capabilities; also used as a probe.
    65540 "GetCapabilities" GetCapabilities {} -> GetCapabilitiesReply { capabilities: Capabilities };

    /// Meant to choose the address for callbacks; servers refuse it.
    65541 "CallBackRxConnAddr" CallBackRxConnAddr { address: Ipv4Addr } -> Nothing;
}

xdr_struct! {
    /// Results of calls that change one object: its new status.
    pub struct StatusReply {
        /// The object's status after the call.
        pub status: Status,
        /// The volume's creation time.
        pub sync: VolSync,
    }
}
