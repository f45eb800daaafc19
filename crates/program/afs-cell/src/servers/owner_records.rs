//! Audit records of what an owner of a cell changes at the control socket other than by calls: imports, and drives.

use crate::control::{ControlReply, ControlRequest};
use crate::drives::DriveRequest;
use crate::servers::import::ImportRequest;
use afs_rpc::{Credential, Identity, Person, Principal, Protection};
use afs_server::audit::{Audit, CallKind};
use afs_wire::error::AbortCode;
use std::net::SocketAddr;
use std::sync::Arc;

/// What a request changes.
pub(super) struct OwnerChange {
    name: &'static str,
    object: String,
}

impl OwnerChange {
    /// None of a request that only reads, of a call, which its service records, and of what is no request.
    pub(super) fn of(request: &ControlRequest) -> Option<Self> {
        let (name, object) = match request {
            ControlRequest::Import(json) => import(&serde_json::from_slice(json).ok()?)?,
            ControlRequest::Drives(json) => serde_json::from_slice::<DriveRequest>(json).ok()?.change()?,
            _ => return None,
        };
        Some(Self { name, object })
    }

    /// Records it as a change by this person, who comes from the address of the owner's calls, in the name of the cell.
    pub(super) fn record(self, audit: &Audit, person: Person, from: SocketAddr, reply: &ControlReply) {
        let credential = Credential::new(Principal::CellKey, Protection::default());
        let identity = Identity::Proven(Arc::new(Credential { person: Some(person), ..credential }));
        let outcome = match reply {
            ControlReply::Done(_) => AbortCode::OK,
            ControlReply::Aborted(code) => AbortCode(*code),
            ControlReply::Refused(_) => AbortCode::VIO,
        };
        let object = self.object.as_bytes().into();
        audit.record_of((&identity, from), self.name, CallKind::Change, object, outcome);
    }
}

fn import(request: &ImportRequest) -> Option<(&'static str, String)> {
    let files: Vec<_> = [&request.vldb, &request.prdb].into_iter().flatten().collect();
    let names: Vec<_> = files.iter().map(|path| path.display().to_string()).collect();
    (!request.dry_run).then(|| ("Import", names.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_reads_is_no_change_and_no_secret_is_part_of_a_record() {
        let drives = |json: &str| OwnerChange::of(&ControlRequest::Drives(json.into()));
        assert!(drives("\"list\"").is_none() && drives("{\"drained\":{\"name\":\"big\"}}").is_none());
        assert!(drives("{").is_none() && OwnerChange::of(&ControlRequest::Statistics).is_none());
        let add = r#"{"add":{"name":"big","address":"192.0.2.7:7020","join_key":"secret"}}"#;
        let change = drives(add).unwrap();
        assert_eq!((change.name, change.object.as_str()), ("DriveAdd", "big at 192.0.2.7:7020"));

        let import = |dry_run: bool| {
            let json =
                format!(r#"{{"vldb":"/a/vldb.DB0","prdb":null,"dry_run":{dry_run},"collisions":"refuse"}}"#);
            OwnerChange::of(&ControlRequest::Import(json.into()))
        };
        assert!(import(true).is_none());
        assert_eq!(import(false).unwrap().object, "/a/vldb.DB0");
    }
}
