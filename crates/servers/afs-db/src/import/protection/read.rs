//! Reader of `prdb.DB0`.

use std::collections::{BTreeMap, BTreeSet};

use afs_wire::ids::ViceId;

use super::chains::{self, Reached, Records};
use super::header::{self, Header};
use super::members::{self, Continuations};
use super::slot::{self, Record, Slot};
use crate::import::finding::Findings;
use crate::import::image::{Image, UbikVersion};
use crate::import::source::{ImportError, Source};
use crate::protection::{BAD_ID, Entry, NAME_MAX};

/// The content of a `prdb.DB0`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadProtection {
    /// Version of the database.
    pub version: UbikVersion,
    /// Users and groups, by id.
    pub entries: Vec<Entry>,
    /// Memberships (member, group), sorted. Both are among `entries`.
    pub memberships: Vec<(ViceId, ViceId)>,
    /// The largest user id ever assigned.
    pub max_user: ViceId,
    /// The smallest group id ever assigned.
    pub max_group: ViceId,
    /// Irregularities.
    pub findings: Findings,
}

/// Reads a `prdb.DB0` and, if there is one, the redo log `prdb.DBSYS1` beside it.
///
/// # Errors
/// The file cannot be read, or is no such database. Anything less is a finding.
pub fn read(source: &dyn Source, log: Option<&dyn Source>) -> Result<ReadProtection, ImportError> {
    let mut findings = Findings::default();
    let image = Image::open(source, log, &mut findings)?;
    let header = Header::read(&image, &mut findings)?;
    let (records, continuations) = scan(&image, &header, &mut findings)?;
    let reached = chains::walk(&header, &records, &mut findings);
    let entries = entries(&records, &reached, &mut findings);
    let memberships = members::memberships(&records, continuations, &entries, &mut findings);
    let entries = entries.into_values().map(|(_, entry)| entry).collect();
    let (max_user, max_group) = (header.max_user, header.max_group);
    Ok(ReadProtection { version: image.version, entries, memberships, max_user, max_group, findings })
}

/// The sequential scan.
fn scan(
    image: &Image<'_>,
    header: &Header,
    findings: &mut Findings,
) -> Result<(Records, Continuations), ImportError> {
    let (mut records, mut continuations) = (Records::new(), Continuations::new());
    let mut at = header::LEN;
    while header.end - at >= slot::LEN {
        match Slot::decode(&image.bytes(at)?) {
            Slot::Free => {}
            Slot::Entry(record) => {
                records.insert(at, *record);
            }
            Slot::Continuation(more) => {
                continuations.insert(at, more);
            }
            Slot::Unknown(kind) => {
                findings.damage(at, format!("an entry of unknown kind {kind} is left out"))
            }
        }
        at += slot::LEN;
    }
    if at != header.end {
        findings.damage(at, format!("there are {} bytes behind the last entry", header.end - at));
    }
    Ok((records, continuations))
}

/// Converts records to entries, by id. If two claim the same name or id, the one reachable by a chain of
/// names stays.
fn entries(records: &Records, reached: &Reached, findings: &mut Findings) -> BTreeMap<ViceId, (u32, Entry)> {
    let rank = |at: &u32| match (reached.by_name.contains(at), reached.by_id.contains(at)) {
        (true, true) => 0,
        (true, false) => 1,
        (false, true) => 2,
        (false, false) => 3,
    };
    let mut order: Vec<(u8, u32)> = records.keys().map(|at| (rank(at), *at)).collect();
    order.sort_unstable();
    let (mut kept, mut names) = (BTreeMap::new(), BTreeSet::new());
    for (rank, at) in order {
        let Some(entry) = records.get(&at).and_then(|record| entry(record, at, findings)) else { continue };
        let (id, name) = (entry.id, entry.name.clone());
        if kept.contains_key(&id) || names.contains(&name) {
            findings
                .damage(at, format!("{name} ({}) has a name or id of another entry, and is left out", id.0));
            continue;
        }
        if rank > 0 {
            findings.difference(at, format!("not every hash chain leads to {name} ({})", id.0));
        }
        names.insert(name);
        kept.insert(id, (at, entry));
    }
    kept
}

/// Converts a record to an entry, if it is valid.
fn entry(record: &Record, at: u32, findings: &mut Findings) -> Option<Entry> {
    let id = record.id;
    let fits = id.0 != 0 && id != BAD_ID && id.is_group() == record.group;
    let name = std::str::from_utf8(&record.name).ok().filter(|name| is_name(name));
    let Some(name) = name.filter(|_| fits) else {
        let name = String::from_utf8_lossy(&record.name);
        let why = if fits { "no access list can carry this name" } else { "its id and kind do not fit" };
        findings
            .damage(at, format!("{name:?} ({}) cannot be a user or group ({why}), and is left out", id.0));
        return None;
    };
    let lower = name.to_ascii_lowercase();
    if lower != name {
        findings
            .difference(at, format!("{name} ({}) has capital letters in its name, which become small", id.0));
    }
    Some(record.entry(lower))
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= NAME_MAX && !name.contains(char::is_control)
}
