//! DataPath, GetCapability and StatusAndCapability, calls of our own: what clients need besides the data path itself
//! (docs/protocol/extensions.md "The data path").

use std::sync::Arc;

use afs_datapath::capability::{Access, Group};
use afs_rpc::Table;
use afs_volume::DataRoute;
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{
    self, CapabilityAccess, CapabilityOutcome, CapabilityOutcomes, CapabilityRequest, CapabilityRequests,
    OWN_DRIVE,
};
use afs_wire::ids::{Fid, Rights};

use super::object::{Found, is_file, object};
use super::server::FileServer;
use crate::access::reach::{self, Reach};
use crate::call_context::CallContext;

pub(super) fn add(table: Table<FileServer>) -> Table<FileServer> {
    let table = super::call(table, |server: Arc<FileServer>, _, _: fs::DataPath| async move {
        server.data_path.offered().ok_or(AbortCode::RXGEN_OPCODE)
    });
    let table = super::call(table, |server: Arc<FileServer>, context, call: fs::GetCapability| async move {
        server.get_capabilities(&context, &call.wanted).await
    });
    super::call(table, |server: Arc<FileServer>, context, call: fs::StatusAndCapability| async move {
        server.status_and_capability(&context, &call).await
    })
}

/// What a capability is to permit.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    read: bool,
    write: bool,
}

impl Wanted {
    pub(super) fn of(access: CapabilityAccess) -> Result<Self, AbortCode> {
        let (read, write) =
            (access.contains(CapabilityAccess::READ), access.contains(CapabilityAccess::WRITE));
        let unknown = access.0 & !(CapabilityAccess::READ.0 | CapabilityAccess::WRITE.0) != 0;
        if unknown || !(read || write) {
            return Err(Errno::EINVAL.to_uae());
        }
        Ok(Wanted { read, write })
    }

    /// How far the caller's rights to all of it reach.
    pub(super) fn reach(self, context: &CallContext, found: &Found) -> Result<Reach, AbortCode> {
        let (subject, object) = (&context.subject, object(&found.header, &found.record, &found.acl));
        if found.record.is_directory() {
            return Ok(reach::of_files(subject, &object, self.rights())?);
        }
        let read = self.read.then(|| reach::of_reading(subject, &object)).transpose()?;
        let write = self.write.then(|| reach::of_writing(subject, &object)).transpose()?;
        let both = match (read, write) {
            (Some(read), Some(write)) => read.and(write),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => return Err(Errno::EINVAL.to_uae()),
        };
        let mode = found.record.mode;
        let is_closed = self.read && !reach::is_readable(mode) || self.write && !reach::is_writable(mode);
        // One right is the owner's, whatever the mode, and the other is not: two capabilities express that.
        if is_closed && !both.any_mode { Err(Errno::EACCES.to_uae()) } else { Ok(both) }
    }

    /// The rights in a directory that permit all of it.
    fn rights(self) -> Rights {
        let bits = [(self.read, Rights::READ), (self.write, Rights::WRITE)];
        let given = bits.into_iter().filter(|(given, _)| *given);
        given.fold(Rights::NONE, |all, (_, bit)| all | bit)
    }

    fn access(self, reach: Reach) -> Access {
        let bits =
            [(self.read, Access::READ), (self.write, Access::WRITE), (reach.any_mode, Access::ANY_MODE)];
        let given = bits.into_iter().filter(|(given, _)| *given);
        given.fold(Access::default(), |all, (_, bit)| all | bit)
    }
}

impl FileServer {
    async fn get_capabilities(
        &self,
        context: &CallContext,
        wanted: &CapabilityRequests,
    ) -> Result<fs::GetCapabilityReply, AbortCode> {
        if wanted.is_empty() {
            return Err(Errno::EINVAL.to_uae());
        }
        self.recall_many(context, wanted.iter().map(|request| request.fid)).await;
        let mut outcomes = Vec::with_capacity(wanted.len());
        for request in wanted {
            let outcome = self.outcome(context, request).await;
            self.audit_capability(context, request.fid, outcome.error);
            outcomes.push(outcome);
        }
        Ok(fs::GetCapabilityReply { outcomes: CapabilityOutcomes::first_of(outcomes) })
    }

    /// A caller without a right to the files has asked for their status all the same: that is no refusal of which the audit log tells.
    async fn status_and_capability(
        &self,
        context: &CallContext,
        call: &fs::StatusAndCapability,
    ) -> Result<fs::StatusAndCapabilityReply, AbortCode> {
        let fs::BulkStatusReply { statuses, callbacks, sync } =
            self.inline_bulk_status(context, &call.fids).await?;
        let outcome = self.outcome(context, &call.wanted).await;
        if outcome.error == AbortCode::OK {
            self.audit_capability(context, call.wanted.fid, outcome.error);
        }
        Ok(fs::StatusAndCapabilityReply { statuses, callbacks, sync, outcome })
    }

    async fn outcome(&self, context: &CallContext, request: &CapabilityRequest) -> CapabilityOutcome {
        let CapabilityRequest { fid, access, drive } = *request;
        let given = match Wanted::of(access) {
            Ok(wanted) if drive == OWN_DRIVE => {
                self.capability(context, fid, wanted).await.map(CapabilityOutcome::given)
            }
            Ok(_) if access == CapabilityAccess::READ => self.again(context, (fid, drive)).await,
            Ok(_) => Err(Errno::EINVAL.to_uae()),
            Err(code) => Err(code),
        };
        given.unwrap_or_else(|code| CapabilityOutcome::refused(context.code(code)))
    }

    /// The rights are looked at twice: the first look finds the group that they reach, whose generation must be
    /// known before the look that decides, so that a change after it revokes the capability.
    async fn capability(
        &self,
        context: &CallContext,
        fid: Fid,
        wanted: Wanted,
    ) -> Result<fs::DriveCapability, AbortCode> {
        self.data_path.offered().ok_or(AbortCode::RXGEN_OPCODE)?;
        let found = self.find_for(context, fid, wanted).await?;
        if found.header.route == DataRoute::Calls {
            // Looked at only for callers who have the right, and answered as to those who have not: whoever is refused uses calls.
            return Err(Errno::EACCES.to_uae());
        }
        let group = group(fid, &found, wanted.reach(context, &found)?);
        let grant = self.data_path.prepare(&self.env, context, group, directory(fid, &found));
        let grant = grant.ok_or(Errno::EACCES.to_uae())?;
        let found = self.find_for(context, fid, wanted).await?;
        let reach = wanted.reach(context, &found)?;
        if self::group(fid, &found, reach) != group {
            // The rights are changing; the client asks again, or uses calls.
            return Err(AbortCode::VBUSY);
        }
        self.data_path.seal(grant, wanted.access(reach))
    }

    /// A file whose bytes may travel by the data path, to be read or to be changed; or a directory of such files.
    pub(super) async fn find_for(
        &self,
        context: &CallContext,
        fid: Fid,
        wanted: Wanted,
    ) -> Result<Found, AbortCode> {
        let found = match wanted.write {
            true => self.find_to_change(context, fid).await?,
            false => self.find(context, fid).await?,
        };
        if !is_file(&found.record) && !found.record.is_directory() {
            return Err(Errno::EISDIR.to_uae());
        }
        if found.past.is_some() {
            // Rights in an earlier state follow the lists of another volume, whose changes revoke no capability for this one.
            return Err(Errno::EACCES.to_uae());
        }
        self.check_protection(found.header.name.as_str())?;
        Ok(found)
    }

    /// Whether the data path protects bytes as a volume requires: with TLS it does, so that the connection on
    /// which the capability is given decides; without, it does where nothing is required.
    fn check_protection(&self, volume: &str) -> Result<(), AbortCode> {
        match self.data_path.may_be_clear() && !self.guard.policy().is_open_to_all(volume) {
            true => Err(Errno::EACCES.to_uae()),
            false => Ok(()),
        }
    }
}

/// The objects that rights of such a reach cover.
pub(super) fn group(fid: Fid, found: &Found, reach: Reach) -> Group {
    if reach.directory { Group::Directory(directory(fid, found)) } else { Group::File(fid) }
}

/// The directory whose access list decides.
fn directory(fid: Fid, found: &Found) -> Fid {
    if found.record.is_directory() { fid } else { found.directory(fid.volume) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_is_reading_writing_or_both() {
        for bits in [0, 4, 5, 7, u32::MAX] {
            assert_eq!(Wanted::of(CapabilityAccess(bits)).err(), Some(Errno::EINVAL.to_uae()), "{bits}");
        }
        for (bits, read, write) in [(1, true, false), (2, false, true), (3, true, true)] {
            let wanted = Wanted::of(CapabilityAccess(bits)).ok().map(|wanted| (wanted.read, wanted.write));
            assert_eq!(wanted, Some((read, write)));
        }
    }
}
