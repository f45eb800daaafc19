//! Status of an object that is made under a lease: that of the last one that the server made for the same user in the same directory.
//!
//! Owner, group and rights of a new object are what the server derives from its caller and from the directory; a client does not
//! know its own number in the cell. All of that is the same for each new object of one user there.

use afs_wire::fs::{FileKind, Status};
use afs_wire::ids::{DataVersion, Fid, FileTime, Mode};

use crate::identity::TokenId;

/// The statuses of the last new file and directory.
#[derive(Clone, Default)]
pub(crate) struct Models {
    file: Option<(TokenId, Status)>,
    directory: Option<(TokenId, Status)>,
}

impl Models {
    /// The status of a new object, which is empty, made by the user of a token.
    pub fn learn(&mut self, token: TokenId, status: &Status) {
        match status.kind {
            FileKind::File if status.length == 0 => self.file = Some((token, *status)),
            FileKind::Directory => self.directory = Some((token, *status)),
            FileKind::File | FileKind::Symlink | FileKind::Invalid => {}
        }
    }

    /// Of a directory that the user of a token has just made: what is made there has its owner, its group and the rights of its access list.
    pub fn of_new_directory(token: TokenId, status: &Status) -> Self {
        let file = Status {
            kind: FileKind::File,
            link_count: 1,
            length: 0,
            data_version: DataVersion(0),
            ..*status
        };
        Models { file: Some((token, file)), directory: Some((token, *status)) }
    }

    /// The status of a new object for the user of a token, if one is known to be like it.
    pub fn new_object(&self, token: TokenId, new: &NewObject) -> Option<Status> {
        let model = if new.kind == FileKind::Directory { self.directory } else { self.file };
        let (_, model) = model.filter(|(of, _)| *of == token)?;
        // The parent in the status of a directory is itself.
        let parent = if new.kind == FileKind::Directory { new.fid } else { new.dir };
        Some(Status {
            kind: new.kind,
            length: if new.kind == FileKind::Directory { model.length } else { new.length },
            mode: new.mode,
            parent: parent.vnode,
            parent_unique: parent.unique,
            client_mod_time: new.time,
            server_mod_time: model.server_mod_time.min(new.time),
            ..model
        })
    }
}

/// An object that is made.
pub(crate) struct NewObject {
    pub kind: FileKind,
    pub fid: Fid,
    pub dir: Fid,
    /// Bytes, except of a directory.
    pub length: u64,
    pub mode: Mode,
    pub time: FileTime,
}
