//! Obsolete calls: each is refused with the code that clients know (docs/protocol fileserver.md "3.
//! Opcodes").

use afs_rpc::Table;
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs;
use afs_wire::rpc::{Opcode, Request};

use super::server::FileServer;

pub(super) fn add(table: Table<FileServer>) -> Table<FileServer> {
    let invalid = Errno::EINVAL.to_uae();
    let refused = [
        (fs::GetVolumeInfo::OPCODE, AbortCode::VNOVOL),
        (fs::NGetVolumeInfo::OPCODE, AbortCode::VNOVOL),
        (fs::GetRootVolume::OPCODE, AbortCode(122)),
        (fs::CheckToken::OPCODE, AbortCode(130)),
        (fs::Lookup::OPCODE, invalid),
        (fs::DfsSymlink::OPCODE, invalid),
        (fs::FsCmd::OPCODE, invalid),
        (fs::CallBackRxConnAddr::OPCODE, AbortCode(1)),
    ];
    refused.into_iter().fold(table, |table, (opcode, code)| table.refuse(Opcode(opcode), code))
}
