//! Explanation of a path: what this machine knows of it, gathered from the parts without asking any server.
//!
//! A user learns nothing that the user's programs could not see: a directory is followed only if the user has the right to look up
//! names in it, as the server has reported that, and of a file that the user may not read only the rights are told.

mod object;
mod path;
mod rights;
mod servers;

use afs_wire::ids::{Fid, Rights};

use crate::api::{ExplainedFid, Explanation, TokenOwner};
use crate::key::{Key, NodeTarget};
use crate::venus::Venus;
use crate::vnode::sees;

impl Venus {
    /// What this machine knows of a path from the root of the mount, for the user of these tokens. The path is followed as in
    /// [`Venus::walk`], but by cached directories alone, and symbolic links are followed only within the mount.
    ///
    /// Makes no calls and waits for nothing, so that it tells of a server that does not answer as fast as of others.
    pub fn explain(&self, owner: TokenOwner, path: &[u8]) -> Explanation {
        self.as_user(Some(self.identity.known_owner(owner))).explained(path)
    }

    fn explained(&self, path: &[u8]) -> Explanation {
        let walked = self.walk_cached(path);
        let mut told = Explanation {
            known_path: String::from_utf8_lossy(&walked.names.join(&b'/')).into_owned(),
            unknown: walked.unknown,
            ..Explanation::default()
        };
        match walked.at {
            Some(NodeTarget::Object(key)) => self.explain_object(key, &mut told),
            Some(NodeTarget::Snapshots(cell, _) | NodeTarget::Unreached(cell, _)) => {
                told.cell = self.location.cell(cell).map(|cell| cell.name.to_string());
                told.kind = Some("directory of this mount, on no server".into());
            }
            Some(NodeTarget::Cells) => told.kind = Some("directory of this mount, on no server".into()),
            None => {}
        }
        told
    }

    fn explain_object(&self, key: Key, told: &mut Explanation) {
        told.cell = self.location.cell(key.cell).map(|cell| cell.name.to_string());
        let Fid { volume, vnode, unique } = key.fid;
        told.fid = Some(ExplainedFid { volume: volume.0, vnode: vnode.0, unique: unique.0 });
        let volume = self.location.volume_of(key);
        if let Some(volume) = &volume {
            told.volume = Some(self.volume_explained(volume));
            told.servers = self.servers_explained(volume);
        }
        let (Some(volume), Some(vnode)) = (volume, self.vnodes.peek(key)) else { return };
        let reported = self.reported_rights(&vnode);
        told.rights = Some(self.rights_explained(key.cell, reported));
        told.promise = Some(self.promise_explained(&vnode, &volume));
        let status = vnode.state().status;
        told.kind = status.as_ref().map(|status| object::kind_text(status).into());
        let rights = reported.known().unwrap_or(Rights::NONE);
        if let Some(status) = status.filter(|status| sees(status.kind, rights)) {
            self.explain_state(&vnode, &volume, &status, told);
        }
    }
}
