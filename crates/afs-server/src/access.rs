//! Who may do what: the one place where that is decided.
//!
//! Rights come from the access list of a directory; a file or link has those of the directory it is in. On top of
//! them stand the owner's rights (who may insert may also finish what he inserted), the volume's owner and the
//! administrators (docs/protocol fileserver.md "5. Identity, rights bits, ACLs").

mod reason;

pub use reason::{Reason, Source, explain};

use afs_wire::acl::Acl;
use afs_wire::error::Errno;
use afs_wire::fs::{FileKind, SetStatus};
use afs_wire::ids::{Mode, Rights, ViceId};

use crate::subject::Subject;

/// What an administrator may do everywhere without being on the access list.
const IMPLICIT_RIGHTS: Rights = Rights::LOOKUP;
/// Bits of a mode that let people other than the owner read.
const READABLE: u32 = 0o500;
/// The bit of a mode that lets people write.
const WRITABLE: u32 = 0o200;
/// Bits of a mode that only administrators set.
const PRIVILEGED: u32 = 0o7000;

/// An object, as far as access to it goes.
#[derive(Clone, Copy, Debug)]
pub struct Object<'a> {
    /// File, directory or link.
    pub kind: FileKind,
    /// Whom it belongs to.
    pub owner: ViceId,
    /// Its permission bits.
    pub mode: Mode,
    /// The access list: its own if it is a directory, else that of the directory it is in.
    pub acl: &'a Acl,
    /// Whom the volume belongs to.
    pub volume_owner: ViceId,
}

/// What somebody wants to do with an object.
#[derive(Clone, Copy, Debug)]
pub enum Wish<'a> {
    /// Read its status.
    FetchStatus,
    /// Read its access list.
    FetchAcl,
    /// Read its data.
    FetchData,
    /// Write its data, and set its status on the way.
    StoreData(&'a SetStatus),
    /// Set its status.
    StoreStatus(&'a SetStatus),
    /// Replace its access list.
    StoreAcl,
    /// Enter a name into it.
    Insert,
    /// Enter a mount point into it.
    InsertMountPoint,
    /// Remove a name from it.
    Delete,
    /// Lock it with other readers.
    ReadLock,
    /// Lock it alone.
    WriteLock,
}

/// The rights of a caller on an object, as its status reports them.
pub fn rights(subject: &Subject, object: &Object<'_>) -> Rights {
    let mut rights = listed(subject, object.acl);
    if subject.is_administrator() {
        rights |= IMPLICIT_RIGHTS;
    }
    if object.kind == FileKind::Directory {
        return rights;
    }
    if owns(subject, object) { rights | Rights::ADMINISTER } else { rights & !Rights::ADMINISTER }
}

/// The rights of anybody on the caller's host, as a status reports them.
pub fn anonymous_rights(subject: &Subject, acl: &Acl) -> Rights {
    acl.rights(&[ViceId::ANYUSER]) | listed_for(acl, |id| subject.host_is(id))
}

/// Decides, in the order and with the codes of docs/protocol fileserver.md "5.4 Checks per operation".
pub fn check(subject: &Subject, object: &Object<'_>, wish: Wish<'_>) -> Result<(), Errno> {
    let asker = Asker { subject, object, rights: rights(subject, object) };
    let is_file = object.kind == FileKind::File;
    match wish {
        Wish::FetchStatus => match object.kind {
            FileKind::Directory => Ok(()),
            FileKind::File => allow(asker.may_see_file()),
            _ => allow(asker.has(Rights::LOOKUP) || asker.is_volume_owner() || asker.is_administrator()),
        },
        Wish::FetchAcl if is_file => allow(asker.may_see_file()),
        Wish::FetchAcl => {
            allow(asker.has(Rights::LOOKUP) || asker.is_volume_owner() || asker.is_administrator())
        }
        Wish::FetchData if is_file => allow(asker.may_read_file()),
        Wish::FetchData => allow(asker.has(Rights::LOOKUP) || asker.is_volume_owner()),
        Wish::StoreData(set) => asker.check_store(set),
        Wish::StoreStatus(set) => asker.check_set(set),
        Wish::StoreAcl if object.kind != FileKind::Directory => Err(Errno::ENOTDIR),
        Wish::StoreAcl => {
            allow(asker.has(Rights::ADMINISTER) || asker.is_volume_owner() || asker.is_administrator())
        }
        Wish::Insert => allow(asker.has(Rights::INSERT)),
        Wish::InsertMountPoint => {
            allow(asker.has(Rights::INSERT) && (asker.has(Rights::ADMINISTER) || asker.is_administrator()))
        }
        Wish::Delete => allow(asker.has(Rights::DELETE)),
        Wish::ReadLock => allow(asker.has(Rights::LOCK) || asker.has(Rights::WRITE) || asker.is_depositor()),
        Wish::WriteLock => allow(asker.has(Rights::WRITE) || asker.is_depositor()),
    }
}

/// The mode an object gets: only administrators set more than the nine ordinary bits
/// (docs/protocol fileserver.md "6. Vnodes, modes, versions").
pub fn settable_mode(subject: &Subject, mode: Mode) -> Mode {
    let settable = if subject.is_administrator() { Mode::ALL } else { Mode::PERMISSIONS };
    Mode(mode.0 & settable)
}

/// What the list gives. Host and caller are counted apart: what is taken from the caller is not taken from its host.
fn listed(subject: &Subject, acl: &Acl) -> Rights {
    listed_for(acl, |id| subject.is(id)) | listed_for(acl, |id| subject.host_is(id))
}

fn listed_for(acl: &Acl, is: impl Fn(ViceId) -> bool) -> Rights {
    let of = |entries: &[(ViceId, Rights)]| {
        let matching = entries.iter().filter(|(id, _)| is(*id));
        matching.fold(Rights::NONE, |rights, (_, more)| rights | *more)
    };
    of(&acl.positive) & !of(&acl.negative)
}

fn owns(subject: &Subject, object: &Object<'_>) -> bool {
    subject.id() == object.owner
}

fn allow(allowed: bool) -> Result<(), Errno> {
    if allowed { Ok(()) } else { Err(Errno::EACCES) }
}

struct Asker<'a> {
    subject: &'a Subject,
    object: &'a Object<'a>,
    rights: Rights,
}

impl Asker<'_> {
    fn has(&self, rights: Rights) -> bool {
        self.rights.0 & rights.0 == rights.0
    }

    fn is_administrator(&self) -> bool {
        self.subject.is_administrator()
    }

    /// A volume may belong to a group, all of whose members then own it.
    fn is_volume_owner(&self) -> bool {
        let owner = self.object.volume_owner;
        if owner.is_group() { self.subject.is(owner) } else { self.subject.id() == owner }
    }

    /// Who may only insert may still work on what he inserted: that is what a drop box needs. Anonymous depositors
    /// are all one here.
    fn is_depositor(&self) -> bool {
        owns(self.subject, self.object) && self.has(Rights::INSERT)
    }

    /// Nobody in particular cannot prove that a file is his.
    fn is_named_depositor(&self) -> bool {
        self.is_depositor() && !self.subject.is_anonymous()
    }

    fn may_see_file(&self) -> bool {
        self.has(Rights::READ) || self.is_named_depositor() || self.is_administrator()
    }

    fn may_read_file(&self) -> bool {
        let readable = self.object.mode.0 & READABLE != 0;
        (self.has(Rights::READ) || self.is_named_depositor())
            && (readable || owns(self.subject, self.object) || self.is_administrator())
    }

    fn check_store(&self, set: &SetStatus) -> Result<(), Errno> {
        if self.is_depositor() && self.object.kind == FileKind::File {
            return self.check_new_owner(set);
        }
        allow(self.has(Rights::WRITE))?;
        allow(self.object.mode.0 & WRITABLE != 0 || self.is_administrator())?;
        self.check_new_owner(set)?;
        self.check_new_mode(set)
    }

    fn check_set(&self, set: &SetStatus) -> Result<(), Errno> {
        if self.is_depositor() && self.object.kind == FileKind::File {
            return self.check_new_owner(set);
        }
        if self.is_administrator() {
            return Ok(());
        }
        self.check_new_owner(set)?;
        self.check_new_mode(set)?;
        match self.object.kind {
            FileKind::Directory => allow(self.has(Rights::DELETE) || self.has(Rights::INSERT)),
            _ => allow(self.has(Rights::WRITE)),
        }
    }

    fn check_new_owner(&self, set: &SetStatus) -> Result<(), Errno> {
        let changes = set.owner.is_some() || set.group.is_some();
        if changes && !self.is_administrator() { Err(Errno::EPERM) } else { Ok(()) }
    }

    fn check_new_mode(&self, set: &SetStatus) -> Result<(), Errno> {
        let privileged = set.mode.is_some_and(|mode| mode.0 & PRIVILEGED != 0);
        allow(!privileged || self.is_administrator())
    }
}

#[cfg(test)]
mod tests;
