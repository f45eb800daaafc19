//! Ledger of the calls that a server carried out, by principal, from its audit log.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use afs_rpc::UnixTime;
use afs_server::AuditSink;
use afs_server::audit::{AuditObject, AuditRecord};
use afs_wire::ids::Fid;
use parking_lot::Mutex;

/// Count of each call for each principal, as the server identified it. It outlives the server.
#[derive(Clone, Default)]
pub struct Ledger(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    calls: BTreeMap<(String, &'static str), u64>,
    files: Vec<Fid>,
    entries: Vec<Entry>,
}

/// A name that was created or removed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The name.
    pub name: String,
    /// Whether it was created; otherwise it was removed.
    pub made: bool,
    /// Time of the server's wall clock.
    pub at: UnixTime,
}

impl Ledger {
    fn with<T>(&self, work: impl FnOnce(&mut Inner) -> T) -> T {
        work(&mut self.0.lock())
    }

    /// Count of the changes made in the name `who`, by call.
    #[must_use]
    pub fn changes_of(&self, who: &str) -> BTreeMap<&'static str, u64> {
        self.with(|inner| {
            let of = inner.calls.iter().filter(|((name, call), _)| name == who && is_change(call));
            of.map(|((_, call), count)| (*call, *count)).collect()
        })
    }

    /// Names that users created and removed, in order.
    #[must_use]
    pub fn entries(&self) -> Vec<Entry> {
        self.with(|inner| inner.entries.clone())
    }

    /// Files whose data was stored.
    #[must_use]
    pub fn files(&self) -> Vec<Fid> {
        self.with(|inner| inner.files.clone())
    }
}

impl AuditSink for Ledger {
    fn write(&self, records: &[AuditRecord]) -> io::Result<()> {
        self.with(|inner| {
            for record in records {
                let AuditRecord::Call(call) = record else { continue };
                let who = call.identity.principal().map_or_else(String::new, ToString::to_string);
                *inner.calls.entry((who, call.call)).or_default() += 1;
                let made = match call.call {
                    "CreateFile" | "MakeDir" | "Symlink" => Some(true),
                    "RemoveFile" | "RemoveDir" => Some(false),
                    _ => None,
                };
                if let (Some(made), AuditObject::Entry(_, name)) = (made, &call.object) {
                    inner.entries.push(Entry { name: name.as_str().to_owned(), made, at: call.time });
                }
                if let AuditObject::Fid(fid) = call.object
                    && STORES.contains(&call.call)
                    && !inner.files.contains(&fid)
                {
                    inner.files.push(fid);
                }
            }
        });
        Ok(())
    }
}

fn is_change(call: &str) -> bool {
    CHANGES.contains(&call)
}

/// Calls that store the data of a file.
const STORES: [&str; 3] = ["StoreData64", "StoreRanges", "Commit"];
/// Calls with effects that others see, by the protocol's names.
const CHANGES: [&str; 13] = [
    "StoreData",
    "StoreData64",
    "StoreRanges",
    "Commit",
    "StoreACL",
    "StoreStatus",
    "CreateFile",
    "MakeDir",
    "Symlink",
    "Link",
    "Rename",
    "RemoveFile",
    "RemoveDir",
];
