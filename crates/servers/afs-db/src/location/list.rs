//! Listing of location entries by attributes, page by page.

use std::net::Ipv4Addr;

use afs_wire::ids::{PartitionId, VolumeId};

use super::entry::{entry_flags, site_flags};
use super::pattern::Pattern;
use super::{entries, servers};
use crate::rows::{ENTRY, SITE, number};
use crate::{Entry, Located, LocationError, Rows, ServerSlot, Site};

/// Most entries that one page examines. A page may thus have fewer matches than requested, even none, and
/// still not be the last.
const LOOKED_AT_MAX: usize = 4096;

/// A filter for entries; `None` matches all. `volume` overrides the other fields.
#[derive(Clone, Default, Debug)]
pub struct Filter {
    /// Entries with a site at the server with this address.
    pub server: Option<Ipv4Addr>,
    /// Entries with a site on this partition (of that server, if both are given).
    pub partition: Option<PartitionId>,
    /// The one entry with this id, of whatever kind.
    pub volume: Option<VolumeId>,
    /// Entries with one of these flags.
    pub flags: Option<u32>,
    /// Entries with a volume whose full name matches.
    pub name: Option<Pattern>,
}

/// A listed entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listed {
    /// The entry.
    pub located: Located,
    /// The match: site flag of the kind in the high half, site number in the low one (docs/protocol vldb.md
    /// "4. Semantics", ListAttributesN2).
    pub match_index: u32,
}

/// A page of matching entries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Page {
    /// The matches.
    pub entries: Vec<Listed>,
    /// Row to continue from; `None` after the last page.
    pub next: Option<u32>,
}

/// The first entry after a row, as the old list calls iterate.
pub(crate) fn after(rows: &(impl Rows + ?Sized), row: u32) -> Result<Option<Located>, LocationError> {
    let from = row.saturating_add(1).to_be_bytes();
    let Some((key, value)) = rows.range(ENTRY, &from, &LAST, 1)?.pop() else { return Ok(None) };
    entries::locate(rows, (number(&key)?, Entry::decode(&value)?)).map(Some)
}

/// One page of at most `limit` matches, from row `start` on.
pub(crate) fn page(
    rows: &(impl Rows + ?Sized),
    filter: &Filter,
    start: u32,
    limit: usize,
) -> Result<Page, LocationError> {
    if let Some(volume) = filter.volume {
        let located = entries::locate(rows, entries::by_id(rows, volume, None)?)?;
        return Ok(Page { entries: vec![Listed { located, match_index: 0 }], next: None });
    }
    let server = match filter.server {
        None => None,
        Some(address) => match servers::slot_of(rows, address)? {
            Some(slot) => Some(slot),
            None => return Ok(Page { entries: Vec::new(), next: None }),
        },
    };
    let candidates = candidates(rows, server, start)?;
    let mut page = Page { entries: Vec::new(), next: None };
    for (row, entry) in &candidates {
        if page.entries.len() == limit {
            page.next = Some(*row);
            return Ok(page);
        }
        if let Some(match_index) = matching(entry, filter, server) {
            let located = entries::locate(rows, (*row, entry.clone()))?;
            page.entries.push(Listed { located, match_index });
        }
    }
    if candidates.len() == LOOKED_AT_MAX {
        page.next = candidates.last().map(|(row, _)| row + 1);
    }
    Ok(page)
}

/// The next entries from `start` on, of one server or of all.
fn candidates(
    rows: &(impl Rows + ?Sized),
    server: Option<ServerSlot>,
    start: u32,
) -> Result<Vec<entries::Found>, LocationError> {
    let from = start.to_be_bytes();
    let Some(ServerSlot(slot)) = server else {
        let found = rows.range(ENTRY, &from, &LAST, LOOKED_AT_MAX)?;
        return found.iter().map(|(key, value)| Ok((number(key)?, Entry::decode(value)?))).collect();
    };
    let key = |row: [u8; 4]| [slot, row[0], row[1], row[2], row[3]];
    let mut found = Vec::new();
    for (site, _) in rows.range(SITE, &key(from), &key(LAST), LOOKED_AT_MAX)? {
        let row = number(&site[1..])?;
        found.push((row, entries::at(rows, row)?.ok_or(crate::Refusal::Damaged)?));
    }
    Ok(found)
}

/// The first site that makes an entry match, as match index.
fn matching(entry: &Entry, filter: &Filter, server: Option<ServerSlot>) -> Option<u32> {
    if filter.flags.is_some_and(|flags| entry.flags & flags == 0) {
        return None;
    }
    let at = |site: &Site| {
        server.is_none_or(|slot| site.server == slot)
            && filter.partition.is_none_or(|partition| site.partition == partition)
    };
    entry.sites.iter().enumerate().filter(|(_, site)| at(site)).find_map(|(place, site)| {
        let kind = kind_at(entry, site, filter.name.as_ref())?;
        Some(u32::from(kind) << 16 | place as u32)
    })
}

/// The volume at a site with a matching name, as site flag; without a pattern the first at the site.
fn kind_at(entry: &Entry, site: &Site, pattern: Option<&Pattern>) -> Option<u8> {
    let kinds: &[(u8, u32, &str)] = if site.flags & site_flags::READ_ONLY != 0 {
        &[(site_flags::READ_ONLY, entry_flags::RO_EXISTS, ".readonly")]
    } else {
        &[
            (site_flags::READ_WRITE, entry_flags::RW_EXISTS, ""),
            (site_flags::BACKUP, entry_flags::BACKUP_EXISTS, ".backup"),
        ]
    };
    let Some(pattern) = pattern else {
        return kinds
            .iter()
            .find(|(_, exists, _)| entry.flags & exists != 0)
            .or(kinds.first())
            .map(|kind| kind.0);
    };
    kinds
        .iter()
        .filter(|(_, exists, _)| entry.flags & exists != 0)
        .find(|(_, _, suffix)| pattern.matches(format!("{}{suffix}", entry.name).as_bytes()))
        .map(|kind| kind.0)
}

/// Above every row number.
const LAST: [u8; 4] = [0xff; 4];
