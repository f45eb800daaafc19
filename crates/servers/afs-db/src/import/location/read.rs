//! Reader of `vldb.DB0`.

use std::collections::{BTreeMap, BTreeSet};

use afs_wire::ids::{PartitionId, UnixSeconds, VolumeId};

use super::chains::{self, Reached, Records};
use super::header::{self, Header};
use super::record::{self, Record, Slot};
use super::servers::{self, BLOCK_LEN, Table};
use crate::import::finding::Findings;
use crate::import::image::{Image, UbikVersion};
use crate::import::source::{ImportError, Source};
use crate::{Entry, Server, Site, check_name, site_flags};

/// The content of a `vldb.DB0`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadLocation {
    /// Version of the database.
    pub version: UbikVersion,
    /// Version of its format: 2, 3 or 4.
    pub format: u32,
    /// Its servers. Slots are one more than their numbers in the file.
    pub servers: Vec<Server>,
    /// Its entries, in the order of the file, which is that of lists. Sites refer to slots of `servers`.
    pub entries: Vec<Entry>,
    /// The next unused volume id.
    pub next_volume_id: VolumeId,
    /// Number of deleted entries that were still in the file; they are left out.
    pub deleted: u64,
    /// Irregularities.
    pub findings: Findings,
}

/// Reads a `vldb.DB0` and, if there is one, the redo log `vldb.DBSYS1` beside it.
///
/// # Errors
/// The file cannot be read, or is no such database. Anything less is a finding.
pub fn read(source: &dyn Source, log: Option<&dyn Source>) -> Result<ReadLocation, ImportError> {
    let mut findings = Findings::default();
    let image = Image::open(source, log, &mut findings)?;
    let header = Header::read(&image, &mut findings)?;
    let table = servers::read(&image, &header, &mut findings)?;
    let mut scan = Scan { image: &image, header: &header, records: Records::new(), deleted: 0 };
    scan.run(&table.blocks, &mut findings)?;
    let (mut records, deleted) = (scan.records, scan.deleted);
    let reached = chains::walk(&image, &header, &mut records, &mut findings)?;
    let entries = entries(records, &reached, &table, &mut findings);
    let next_volume_id = VolumeId(header.next_volume_id);
    let servers = table.servers.into_values().collect();
    let (version, format) = (image.version, header.version);
    Ok(ReadLocation { version, format, servers, entries, next_volume_id, deleted, findings })
}

/// The sequential scan.
struct Scan<'a, 'b> {
    image: &'a Image<'b>,
    header: &'a Header,
    records: Records,
    deleted: u64,
}

impl Scan<'_, '_> {
    fn run(&mut self, blocks: &BTreeSet<u32>, findings: &mut Findings) -> Result<(), ImportError> {
        let end = self.header.end;
        let mut at = header::LEN;
        while end - at >= record::LEN {
            if let Some(block) = blocks.range(at + 1..at + record::LEN).next() {
                findings.damage(
                    at,
                    format!("the extension block at address {block} begins in the middle of an entry"),
                );
                at = *block;
            }
            let is_block = blocks.contains(&at) || self.is_lost_block(at, findings)?;
            if !is_block {
                self.slot(at)?;
            }
            let step = if is_block { BLOCK_LEN } else { record::LEN };
            at = at.saturating_add(step).min(end);
        }
        if at != end {
            findings.damage(at, format!("there are {} bytes behind the last entry", end - at));
        }
        Ok(())
    }

    fn slot(&mut self, at: u32) -> Result<(), ImportError> {
        match Slot::decode(self.header.version, &self.image.bytes(at)?) {
            Slot::Entry(record) => {
                self.records.insert(at, record);
            }
            Slot::Deleted => self.deleted += 1,
            Slot::Free => {}
        }
        Ok(())
    }

    /// Whether there is an extension block here that no pointer leads to.
    fn is_lost_block(&self, at: u32, findings: &mut Findings) -> Result<bool, ImportError> {
        let lost = self.header.end - at >= BLOCK_LEN && self.image.word(at + 12)? == record::BLOCK;
        if lost {
            findings.damage(at, "nothing leads to this extension block");
        }
        Ok(lost)
    }
}

/// Converts records to entries. If two claim the same name or id, the one reachable by a chain of names
/// stays.
fn entries(records: Records, reached: &Reached, table: &Table, findings: &mut Findings) -> Vec<Entry> {
    let rank = |at: &u32| match (reached.by_name.contains(at), reached.by_id.contains(at)) {
        (true, true) => 0,
        (true, false) => 1,
        (false, true) => 2,
        (false, false) => 3,
    };
    let mut order: Vec<(u8, u32)> = records.keys().map(|at| (rank(at), *at)).collect();
    order.sort_unstable();
    let mut claimed = Claimed::default();
    let mut kept = BTreeMap::new();
    for (rank, at) in order {
        let Some(entry) = records.get(&at).and_then(|record| entry(record, at, table, findings)) else {
            continue;
        };
        if let Some(other) = claimed.by_another(&entry) {
            findings
                .damage(at, format!("entry {} claims what is of entry {other}, and is left out", entry.name));
            continue;
        }
        if rank > 0 {
            findings.difference(at, format!("not every hash chain leads to entry {}", entry.name));
        }
        claimed.claim(&entry);
        kept.insert(at, entry);
    }
    kept.into_values().collect()
}

/// Names and ids of the entries so far.
#[derive(Default)]
struct Claimed {
    names: BTreeSet<String>,
    ids: BTreeMap<VolumeId, String>,
}

impl Claimed {
    fn by_another(&self, entry: &Entry) -> Option<String> {
        let name = self.names.get(&entry.name);
        entry.ids.iter().find_map(|id| self.ids.get(id)).or(name).cloned()
    }

    fn claim(&mut self, entry: &Entry) {
        self.names.insert(entry.name.clone());
        for id in entry.ids.iter().filter(|id| id.0 != 0) {
            self.ids.insert(*id, entry.name.clone());
        }
    }
}

/// Converts a record to an entry, if it is valid.
fn entry(record: &Record, at: u32, table: &Table, findings: &mut Findings) -> Option<Entry> {
    let name = String::from_utf8_lossy(&record.name).into_owned();
    if check_name(&name).is_err() {
        findings.damage(at, format!("{name:?} is no name of a volume; what is here is left out"));
        return None;
    }
    let mut ids: Vec<u32> = record.ids.iter().copied().filter(|id| *id != 0).collect();
    ids.sort_unstable();
    if ids.is_empty() || ids.windows(2).any(|pair| pair[0] == pair[1]) {
        findings.damage(at, format!("the ids of entry {name} cannot be, and it is left out"));
        return None;
    }
    let sites: Vec<Site> =
        record.sites.iter().filter_map(|site| place(*site, at, &name, table, findings)).collect();
    if sites.is_empty() {
        findings.damage(at, format!("entry {name} has no site, and is left out"));
        return None;
    }
    Some(Entry {
        name,
        ids: record.ids.map(VolumeId),
        clone: VolumeId(record.clone),
        flags: record.flags,
        locked: UnixSeconds(record.locked),
        sites,
    })
}

fn place(
    [number, partition, flags]: [u8; 3],
    at: u32,
    name: &str,
    table: &Table,
    findings: &mut Findings,
) -> Option<Site> {
    let Some(server) = table.servers.get(&number) else {
        findings
            .damage(at, format!("a site of entry {name} is at server number {number}, which is not there"));
        return None;
    };
    // The flag for a registered server is set in replies only.
    Some(Site { server: server.slot, partition: PartitionId(partition), flags: flags & !site_flags::UUID })
}
