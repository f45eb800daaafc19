//! Hash chains of `prdb.DB0`, and the entries they lead to.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::header::{BY_ID_AT, BY_NAME_AT, Header};
use super::slot::{NEXT_BY_ID_AT, Record, id_bucket, name_bucket};
use crate::import::finding::Findings;

/// Entries by address.
pub(super) type Records = BTreeMap<u32, Record>;

/// Addresses of entries that chains lead to.
pub(super) struct Reached {
    pub(super) by_name: BTreeSet<u32>,
    pub(super) by_id: BTreeSet<u32>,
}

/// One hash table.
#[derive(Clone, Copy)]
enum Table {
    Name,
    Id,
}

/// Follows every chain. Slots all have one length, so the sequential scan has met every entry.
pub(super) fn walk(header: &Header, records: &Records, findings: &mut Findings) -> Reached {
    let mut follow = |table: Table, heads: &[u32]| {
        let mut seen = BTreeSet::new();
        for (bucket, head) in heads.iter().enumerate().filter(|(_, head)| **head != 0) {
            chain(records, table, bucket, *head, &mut seen, findings);
        }
        seen
    };
    Reached { by_name: follow(Table::Name, &header.by_name), by_id: follow(Table::Id, &header.by_id) }
}

fn chain(
    records: &Records,
    table: Table,
    bucket: usize,
    head: u32,
    seen: &mut BTreeSet<u32>,
    findings: &mut Findings,
) {
    let (mut from, mut at) = (table.address(bucket), head);
    while at != 0 {
        let Some(record) = records.get(&at) else {
            findings.damage(from, format!("a hash chain {table} leads to address {at}, where no entry is"));
            return;
        };
        if !seen.insert(at) {
            findings.damage(from, format!("a hash chain {table} comes to address {at} for the second time"));
            return;
        }
        if table.bucket(record) != bucket {
            findings.difference(at, format!("the entry is in the wrong hash chain {table}"));
        }
        from = at + NEXT_BY_ID_AT;
        at = table.next(record);
    }
}

impl Table {
    fn next(self, record: &Record) -> u32 {
        match self {
            Table::Name => record.next_by_name,
            Table::Id => record.next_by_id,
        }
    }

    fn bucket(self, record: &Record) -> usize {
        match self {
            Table::Name => name_bucket(&record.name),
            Table::Id => id_bucket(record.id),
        }
    }

    fn address(self, bucket: usize) -> u32 {
        let table = match self {
            Table::Name => BY_NAME_AT,
            Table::Id => BY_ID_AT,
        };
        table + 4 * bucket as u32
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Table::Name => "of names",
            Table::Id => "of ids",
        })
    }
}
