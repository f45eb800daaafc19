//! Access decisions: the only place that decides what a caller may do with an object.
//!
//! Rights come from the access list of a directory; a file or link has those of its directory. Added to them
//! are the rights of a file's owner (a user who may insert may also finish the inserted file), of the
//! volume's owner and of administrators (docs/protocol fileserver.md "5. Identity, rights bits, ACLs").

pub(crate) mod reach;
mod reason;

pub use reason::{Reason, Source, explain};

use afs_wire::acl::Acl;
use afs_wire::error::Errno;
use afs_wire::fs::{FileKind, SetStatus};
use afs_wire::ids::{Mode, Rights, ViceId};

use crate::subject::Subject;

/// Rights that an administrator has everywhere, without an entry in the access list.
const IMPLICIT_RIGHTS: Rights = Rights::LOOKUP;
/// Mode bits that let users other than the owner read.
const READABLE: u32 = 0o500;
/// The mode bit that permits writing.
const WRITABLE: u32 = 0o200;
/// Mode bits that only administrators set.
const PRIVILEGED: u32 = 0o7000;

/// The attributes of an object that access depends on.
#[derive(Clone, Copy, Debug)]
pub struct Object<'a> {
    /// File, directory or link.
    pub kind: FileKind,
    /// Its owner.
    pub owner: ViceId,
    /// Its permission bits.
    pub mode: Mode,
    /// The access list: its own if it is a directory, else that of the directory it is in.
    pub acl: &'a Acl,
    /// The owner of its volume.
    pub volume_owner: ViceId,
}

/// The kind of access that is requested.
#[derive(Clone, Copy, Debug)]
pub enum Operation<'a> {
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
    /// Insert a name into the directory.
    Insert,
    /// Insert a mount point into the directory.
    InsertMountPoint,
    /// Remove a name from the directory.
    Delete,
    /// Take a shared lock.
    ReadLock,
    /// Take an exclusive lock.
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

/// The rights of an anonymous caller on the caller's host, as a status reports them.
pub fn anonymous_rights(subject: &Subject, acl: &Acl) -> Rights {
    acl.rights(&[ViceId::ANYUSER]) | listed_for(acl, |id| subject.host_is(id))
}

/// Decides, in the order and with the codes of docs/protocol fileserver.md "5.4 Checks per operation".
pub fn check(subject: &Subject, object: &Object<'_>, operation: Operation<'_>) -> Result<(), Errno> {
    let request = AccessRequest { subject, object, rights: rights(subject, object) };
    let is_file = object.kind == FileKind::File;
    match operation {
        Operation::FetchStatus => match object.kind {
            FileKind::Directory => Ok(()),
            FileKind::File => allow(request.may_see_file()),
            _ => {
                allow(request.has(Rights::LOOKUP) || request.is_volume_owner() || request.is_administrator())
            }
        },
        Operation::FetchAcl if is_file => allow(request.may_see_file()),
        Operation::FetchAcl => {
            allow(request.has(Rights::LOOKUP) || request.is_volume_owner() || request.is_administrator())
        }
        Operation::FetchData if is_file => allow(request.may_read_file()),
        Operation::FetchData => allow(request.has(Rights::LOOKUP) || request.is_volume_owner()),
        Operation::StoreData(set) => request.check_store(set),
        Operation::StoreStatus(set) => request.check_set(set),
        Operation::StoreAcl if object.kind != FileKind::Directory => Err(Errno::ENOTDIR),
        Operation::StoreAcl => {
            allow(request.has(Rights::ADMINISTER) || request.is_volume_owner() || request.is_administrator())
        }
        Operation::Insert => allow(request.has(Rights::INSERT)),
        Operation::InsertMountPoint => allow(
            request.has(Rights::INSERT) && (request.has(Rights::ADMINISTER) || request.is_administrator()),
        ),
        Operation::Delete => allow(request.has(Rights::DELETE)),
        Operation::ReadLock => {
            allow(request.has(Rights::LOCK) || request.has(Rights::WRITE) || request.is_depositor())
        }
        Operation::WriteLock => allow(request.has(Rights::WRITE) || request.is_depositor()),
    }
}

/// The mode that is stored: only administrators set bits beyond the nine ordinary ones (docs/protocol
/// fileserver.md "6. Vnodes, modes, versions").
pub fn settable_mode(subject: &Subject, mode: Mode) -> Mode {
    let settable = if subject.is_administrator() { Mode::ALL } else { Mode::PERMISSIONS };
    Mode(mode.0 & settable)
}

/// The rights that the list gives. Host and caller are evaluated separately: negative entries of the caller
/// do not reduce the rights of its host.
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

struct AccessRequest<'a> {
    subject: &'a Subject,
    object: &'a Object<'a>,
    rights: Rights,
}

impl AccessRequest<'_> {
    fn has(&self, rights: Rights) -> bool {
        self.rights.0 & rights.0 == rights.0
    }

    fn is_administrator(&self) -> bool {
        self.subject.is_administrator()
    }

    /// A volume may belong to a group; all members of the group then own it. One whose root directory was given to a user of a
    /// machine belongs to nobody, also where a group has the same number.
    fn is_volume_owner(&self) -> bool {
        let owner = self.object.volume_owner;
        if owner.machine_uid().is_some() {
            return false;
        }
        if owner.is_group() { self.subject.is(owner) } else { self.subject.id() == owner }
    }

    /// A caller that may insert but not write may still write to a file it inserted, as a drop box requires.
    /// All anonymous depositors count as one.
    fn is_depositor(&self) -> bool {
        owns(self.subject, self.object) && self.has(Rights::INSERT)
    }

    /// An anonymous caller cannot prove that a file is its own.
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
