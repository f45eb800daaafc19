//! Hash chains of `vldb.DB0`, and the entries they lead to.

use std::collections::{BTreeMap, BTreeSet};

use super::header::Header;
use super::record::{self, Record, Slot, id_buckets, name_bucket};
use crate::check_name;
use crate::import::finding::Findings;
use crate::import::image::Image;
use crate::import::source::ImportError;

/// Entries by address.
pub(super) type Records = BTreeMap<u32, Record>;

/// Addresses of entries that chains lead to.
#[derive(Default)]
pub(super) struct Reached {
    pub(super) by_name: BTreeSet<u32>,
    pub(super) by_id: BTreeSet<u32>,
}

/// One hash table.
#[derive(Clone, Copy)]
enum Table {
    Name,
    Id(usize),
}

/// Follows every chain. Entries reachable only by a chain are added to `records`.
pub(super) fn walk(
    image: &Image<'_>,
    header: &Header,
    records: &mut Records,
    findings: &mut Findings,
) -> Result<Reached, ImportError> {
    let mut walker = Walker { image, header, records, findings, seen: BTreeSet::new() };
    walker.table(Table::Name, &header.by_name)?;
    let by_name = std::mem::take(&mut walker.seen);
    let mut by_id = BTreeSet::new();
    for (kind, heads) in header.by_id.iter().enumerate() {
        walker.table(Table::Id(kind), heads)?;
        by_id.append(&mut walker.seen);
    }
    Ok(Reached { by_name, by_id })
}

struct Walker<'a, 'b> {
    image: &'a Image<'b>,
    header: &'a Header,
    records: &'a mut Records,
    findings: &'a mut Findings,
    /// Entries reached by this table.
    seen: BTreeSet<u32>,
}

impl Walker<'_, '_> {
    fn table(&mut self, table: Table, heads: &[u32]) -> Result<(), ImportError> {
        for (bucket, head) in heads.iter().enumerate().filter(|(_, head)| **head != 0) {
            self.chain(table, bucket, *head)?;
        }
        Ok(())
    }

    fn chain(&mut self, table: Table, bucket: usize, head: u32) -> Result<(), ImportError> {
        // Reported as the position of the pointer; for the first one that of the table.
        let mut from = table.address(bucket);
        let mut at = head;
        while at != 0 {
            if self.seen.contains(&at) {
                let text = format!("a hash chain {table} comes to address {at} for the second time");
                self.findings.damage(from, text);
                return Ok(());
            }
            let Some(record) = self.find(table, bucket, at)? else {
                let text = format!("a hash chain {table} leads to address {at}, where no entry is");
                self.findings.damage(from, text);
                return Ok(());
            };
            if !table.fits(&record, bucket) {
                self.findings.difference(at, format!("the entry is in the wrong hash chain {table}"));
            }
            self.seen.insert(at);
            (from, at) = (at, table.next(&record));
        }
        Ok(())
    }

    /// The entry at an address, which the sequential scan may have missed.
    fn find(&mut self, table: Table, bucket: usize, at: u32) -> Result<Option<Record>, ImportError> {
        if let Some(record) = self.records.get(&at) {
            return Ok(Some(record.clone()));
        }
        let end = at.checked_add(record::LEN);
        if at < super::header::LEN || end.is_none_or(|end| end > self.header.end) {
            return Ok(None);
        }
        let Slot::Entry(found) = Slot::decode(self.header.version, &self.image.bytes(at)?) else {
            return Ok(None);
        };
        let named = std::str::from_utf8(&found.name).is_ok_and(|name| check_name(name).is_ok());
        if !named || !table.fits(&found, bucket) {
            return Ok(None);
        }
        self.findings.difference(at, "only a hash chain leads to this entry");
        self.records.insert(at, found.clone());
        Ok(Some(found))
    }
}

impl Table {
    fn next(self, record: &Record) -> u32 {
        match self {
            Table::Name => record.next_by_name,
            Table::Id(kind) => record.next_by_id[kind],
        }
    }

    fn fits(self, record: &Record, bucket: usize) -> bool {
        match self {
            Table::Name => name_bucket(&record.name) == bucket,
            Table::Id(kind) => id_buckets(record.ids[kind]).contains(&bucket),
        }
    }

    fn address(self, bucket: usize) -> u32 {
        let table = match self {
            Table::Name => super::header::BY_NAME_AT,
            Table::Id(kind) => super::header::id_table_at(kind),
        };
        table + 4 * bucket as u32
    }
}

impl std::fmt::Display for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Table::Name => "of names",
            Table::Id(0) => "of read-write ids",
            Table::Id(1) => "of read-only ids",
            Table::Id(_) => "of backup ids",
        })
    }
}
