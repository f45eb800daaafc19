//! Audit log in files: one for each kind of record in the state directory, one record a line, in JSON.

use afs_own::Rotated;
use afs_server::audit::{AuditPart, AuditRecord, AuditSink};
use std::io;
use std::path::Path;

use parking_lot::Mutex;

/// Older files kept of each part; the oldest is removed.
const KEPT: u32 = 4;

/// Name and size of the files of a part, in bytes. Older files have a number after the name. What an attacker without an
/// account can cause has small files.
const fn file_of(part: AuditPart) -> (&'static str, u64) {
    match part {
        AuditPart::Changes => ("audit.log", 64 << 20),
        AuditPart::Refusals => ("audit-refused.log", 64 << 20),
        AuditPart::AnonymousRefusals => ("audit-anonymous.log", 16 << 20),
        AuditPart::Reads => ("audit-reads.log", 64 << 20),
    }
}

/// Writer of audit records to files that only the owner may read.
pub struct AuditLog([Mutex<Rotated>; AuditPart::ALL.len()]);

impl AuditLog {
    /// The audit log of a state directory. No file is created before the first record that belongs there.
    #[must_use]
    pub fn of(state: &Path) -> Self {
        Self::sized(state, |bytes_max| bytes_max)
    }

    fn sized(state: &Path, size: impl Fn(u64) -> u64) -> Self {
        Self(AuditPart::ALL.map(|part| {
            let (name, bytes_max) = file_of(part);
            Mutex::new(Rotated::new(state.join(name), size(bytes_max), KEPT))
        }))
    }
}

impl AuditSink for AuditLog {
    fn write(&self, records: &[AuditRecord]) -> io::Result<()> {
        let mut outcome = Ok(());
        for (part, file) in AuditPart::ALL.into_iter().zip(&self.0) {
            let of_part = records.iter().filter(|record| record.part() == part);
            let lines: String = of_part.map(|record| record.to_json() + "\n").collect();
            // The other files may work where one does not.
            if !lines.is_empty() {
                outcome = outcome.and(file.lock().append(lines.as_bytes()));
            }
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use afs_rpc::{Class, Credential, Identity, Level, Principal, Protection};
    use afs_server::audit::{AuditObject, AuditedCall, CallKind};
    use afs_wire::error::{AbortCode, Errno};
    use afs_wire::ids::{Fid, VolumeId};
    use std::fs;
    use std::sync::Arc;

    /// The files of a log are this much smaller than usual.
    const SMALLER: u64 = 1024;

    fn call(user: Option<&str>, kind: CallKind, code: AbortCode, n: u32) -> AuditRecord {
        let protection = Protection { class: Class::Rxgk, level: Level::Crypt };
        let proven = |name: &str| {
            let principal = Principal::local(name);
            Identity::Proven(Arc::new(Credential::new(principal, protection)))
        };
        let (time, object) = (Default::default(), AuditObject::Fid(Fid::root(VolumeId(n))));
        let (identity, peer) = (user.map_or(Identity::Anonymous, proven), ([10, 0, 0, 1], 7001).into());
        AuditRecord::Call(AuditedCall { time, identity, peer, call: "call", kind, object, code })
    }

    /// The lines of a file and of those that were set aside, and their bytes.
    fn kept(state: &Path, name: &str) -> (String, u64) {
        let older = (1..=KEPT + 1).rev().map(|n| format!("{name}.{n}"));
        let texts = older.chain([name.to_owned()]).map(|name| fs::read_to_string(state.join(name)));
        let text: String = texts.filter_map(Result::ok).collect();
        let bytes = text.len() as u64;
        (text, bytes)
    }

    #[test]
    fn a_flood_of_refusals_leaves_changes_and_refusals_of_users_whole_and_its_files_have_a_bound() {
        let state = tempfile::tempdir().unwrap();
        let log = AuditLog::sized(state.path(), |bytes_max| bytes_max / SMALLER);
        let refused = Errno::EACCES.to_uae();
        for n in 0..40 {
            let flood: Vec<_> = (0..500).map(|n| call(None, CallKind::Read, refused, n)).collect();
            flood.chunks(50).for_each(|records| log.write(records).unwrap());
            // A change that fails is none.
            log.write(&[call(None, CallKind::Change, AbortCode::VNOVOL, n)]).unwrap();
            log.write(&[call(Some("bob"), CallKind::Change, AbortCode::OK, n)]).unwrap();
            log.write(&[call(Some("bob"), CallKind::Read, refused, n)]).unwrap();
        }
        for (name, code) in [("audit.log", 0), ("audit-refused.log", refused.0)] {
            let lines: Vec<String> = kept(state.path(), name).0.lines().map(String::from).collect();
            assert_eq!(lines.len(), 40, "{name}");
            let of_change = |(n, line): (usize, &String)| {
                line.contains("\"bob\"") && line.ends_with(&format!("\"{n}.1.1\",\"code\":{code}}}"))
            };
            assert!(lines.iter().enumerate().all(of_change), "{lines:?}");
        }
        let (_, bytes) = kept(state.path(), "audit-anonymous.log");
        let bound = (16 << 20) / SMALLER * u64::from(KEPT + 1);
        assert!((bound / 2..=bound).contains(&bytes), "{bytes} of {bound}");
    }

    #[test]
    fn a_part_whose_file_cannot_be_written_keeps_no_other_from_its_own() {
        let state = tempfile::tempdir().unwrap();
        fs::create_dir(state.path().join("audit.log")).unwrap();
        let log = AuditLog::of(state.path());
        let records = [AuditPart::Changes, AuditPart::Refusals, AuditPart::Reads]
            .map(|part| AuditRecord::Lost(part, 1));
        let error = log.write(&records).unwrap_err();
        assert!(error.to_string().contains("audit.log"), "{error}");
        for name in ["audit-refused.log", "audit-reads.log"] {
            assert_eq!(kept(state.path(), name).0, "{\"lost\":1}\n");
        }
        assert_eq!(fs::read_dir(state.path()).unwrap().count(), 3, "no file without a record");
    }
}
