//! What a change does that concerns a second object besides its directory: a hard link, and a rename into another directory of the
//! same lease.

use afs_wire::fs::{self, FileKind, Status};

use super::plan::{NAME_COST, Plan};
use crate::key::Key;
use crate::location::Volume;
use crate::promises::ChangeReply;
use crate::venus::Venus;
use crate::vnode::Vnode;

impl Venus {
    /// Only of a file that was made under the same lease: it has all its names in one directory (docs/protocol/fileserver.md "7. Operation
    /// semantics"), so that no other client changes their number.
    pub(super) fn plan_of_link(&self, dir: &Vnode, volume: &Volume, call: &fs::Link) -> Option<Plan> {
        let key = Key::new(dir.key.cell, call.existing);
        let file = self.vnodes.peek(key).filter(|_| self.are_of_one_lease(dir.key, key))?;
        let status = self.named_status(&file, volume)?;
        let is_here = (status.parent, status.parent_unique) == (dir.key.fid.vnode, dir.key.fid.unique);
        let linked = Status { link_count: status.link_count.checked_add(1)?, ..status };
        let may_be = is_here && status.kind == FileKind::File;
        self.with_names(dir, volume, |names| (may_be && names.takes(&call.name)).then_some(()))?;
        let plan = Plan::of_names(vec![dir.key, key], NAME_COST);
        Some(Plan { linked: Some((file, linked)), ..plan })
    }

    /// Only of what has one name: others could not follow. A directory has more, of which one is in itself and names the one above it.
    pub(super) fn plan_of_move(&self, dir: &Vnode, volume: &Volume, call: &fs::Rename) -> Option<Plan> {
        let into = self.vnodes.peek(Key::new(dir.key.cell, call.new_dir))?;
        if !self.are_of_one_lease(dir.key, into.key) {
            return None;
        }
        let moved = self.with_names(dir, volume, |names| names.find(&call.old_name)?)?;
        let file = self.vnodes.peek(moved)?;
        let status = self.named_status(&file, volume)?;
        let replaced = self.with_names(&into, volume, |names| {
            let replaced = names.find(&call.new_name)?;
            (replaced.is_some() || names.takes(&call.new_name)).then_some(replaced)
        })?;
        let is_plain = status.link_count == 1
            && replaced.is_none_or(|replaced| !replaced.fid.is_directory() && replaced != moved);
        let concerns = [dir.key, into.key, moved].into_iter().chain(replaced).collect();
        let plan = Plan { unlinked: replaced, into: Some(into), ..Plan::of_names(concerns, NAME_COST) };
        is_plain.then_some(plan)
    }

    /// Counts the names that are left of an object that was made under a lease: only this client changes them. Returns false if their
    /// number is not known.
    pub(in crate::venus) fn loses_name_under_lease(&self, object: &Vnode, volume: &Volume) -> bool {
        let Some(lease) = self.leases.of(object.key, self.now()) else { return false };
        let status = self.named_status(object, volume).filter(|status| status.link_count > 1);
        let Some(status) = status else { return false };
        let status = Status { link_count: status.link_count - 1, ..status };
        let change = ChangeReply { status: &status, sync: &lease.sync, serial: self.promises.serial() };
        self.promises.record_change(volume, object, &change);
        true
    }

    /// The status of an object that has a name, if it is promised.
    fn named_status(&self, object: &Vnode, volume: &Volume) -> Option<Status> {
        let status = object.fresh_status(volume, self.now())?;
        let state = object.state();
        (status.link_count > 0 && !state.is_gone && !state.file.is_orphan()).then_some(status)
    }
}
