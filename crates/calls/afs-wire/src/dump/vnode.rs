//! The status of a vnode, which precedes its data.

use super::Problem;
use super::item::number;
use super::tags::{CHANGE_NANOS_TAG, CHANGE_TIME_TAG, CLIENT_NANOS_TAG, SERVER_NANOS_TAG};
use crate::acl::Acl;
use crate::fs::FileKind;
use crate::ids::{FileTime, Mode, UnixSeconds, ViceId, VnodeId};

/// A vnode's status in a dump.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VnodeFields {
    /// File, directory or link; [`FileKind::Invalid`] if the dump lacks it.
    pub kind: FileKind,
    /// Number of its names.
    pub link_count: u16,
    /// The lower half of its data version.
    pub data_version: u32,
    /// Modification time as shown to users.
    pub client_mod_time: FileTime,
    /// The user who changed the data last.
    pub author: ViceId,
    /// Its owner.
    pub owner: ViceId,
    /// Unix group number.
    pub group: u32,
    /// Permission bits, the lower 12.
    pub mode: Mode,
    /// The directory it is in; 0 for the root.
    pub parent: VnodeId,
    /// Last change by the server's clock; determines the contents of incremental dumps.
    pub server_mod_time: FileTime,
    /// Time of the last change as shown to users, if the dump has one.
    pub change_time: Option<FileTime>,
    /// Access list, of directories.
    pub acl: Option<Acl>,
}

impl VnodeFields {
    pub(super) fn set(&mut self, vnode: VnodeId, tag: u8, item: &[u8]) -> Result<(), Problem> {
        let value = number(item);
        match tag {
            b't' => self.kind = kind(vnode, value as u8)?,
            b'l' => self.link_count = value as u16,
            b'v' => self.data_version = value,
            b'm' => self.client_mod_time = FileTime::new(UnixSeconds(value), self.client_mod_time.nanos()),
            CLIENT_NANOS_TAG => self.client_mod_time = FileTime::new(self.client_mod_time.seconds(), value),
            b'a' => self.author = ViceId(value as i32),
            b'o' => self.owner = ViceId(value as i32),
            b'g' => self.group = value,
            b'b' => self.mode = Mode(value & Mode::ALL),
            b'p' => self.parent = VnodeId(value),
            b's' => self.server_mod_time = FileTime::new(UnixSeconds(value), self.server_mod_time.nanos()),
            SERVER_NANOS_TAG => self.server_mod_time = FileTime::new(self.server_mod_time.seconds(), value),
            CHANGE_TIME_TAG => {
                self.change_time =
                    Some(FileTime::new(UnixSeconds(value), self.change_time.map_or(0, FileTime::nanos)));
            }
            CHANGE_NANOS_TAG => {
                let seconds = self.change_time.map(FileTime::seconds).unwrap_or_default();
                self.change_time = Some(FileTime::new(seconds, value));
            }
            b'A' => self.acl = Some(acl(vnode, item)?),
            // The last use is reserved and never written.
            _ => {}
        }
        Ok(())
    }
}

fn kind(vnode: VnodeId, kind: u8) -> Result<FileKind, Problem> {
    match kind {
        1 => Ok(FileKind::File),
        2 => Ok(FileKind::Directory),
        3 => Ok(FileKind::Symlink),
        kind => Err(Problem::Kind { vnode: vnode.0, kind }),
    }
}

fn acl(vnode: VnodeId, item: &[u8]) -> Result<Acl, Problem> {
    let block = item.first_chunk().ok_or(Problem::Cut)?;
    Acl::from_block(block).map_err(|reason| Problem::Acl { vnode: vnode.0, reason })
}
