//! Server table of `vldb.DB0`, with its extension blocks.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use afs_wire::ids::Uuid;

use super::header::Header;
use super::record::BLOCK;
use crate::import::finding::Findings;
use crate::import::image::{Image, UBIK_HEADER_LEN};
use crate::import::source::ImportError;
use crate::{ADDRESSES_MAX, SERVERS_MAX, Server, ServerSlot};

/// Length of an extension block.
pub(super) const BLOCK_LEN: u32 = 8192;
/// Length of a record in it; the first one identifies the block.
const RECORD_LEN: u32 = 128;
const RECORDS: u32 = BLOCK_LEN / RECORD_LEN;
const BLOCKS_MAX: usize = 4;
/// Position of the server table in the header.
const TABLE_AT: u32 = 40;

/// The servers by their number in entries, and the addresses of the extension blocks.
pub(super) struct Table {
    pub(super) servers: BTreeMap<u8, Server>,
    pub(super) blocks: BTreeSet<u32>,
}

/// Reads the table.
pub(super) fn read(
    image: &Image<'_>,
    header: &Header,
    findings: &mut Findings,
) -> Result<Table, ImportError> {
    let blocks = blocks(image, header, findings)?;
    let mut servers = BTreeMap::new();
    let mut taken = BTreeSet::new();
    for (number, word) in header.servers.iter().enumerate().filter(|(_, word)| **word != 0) {
        let at = TABLE_AT + 4 * number as u32;
        let found = match word >> 24 {
            0xff => registered(image, &blocks, *word)?,
            _ => Some(Server {
                slot: ServerSlot(0),
                uuid: None,
                uniquifier: 0,
                addresses: vec![(*word).into()],
            }),
        };
        let Some(mut server) = found else {
            findings.damage(at, format!("server number {number} is in an extension block that is not there"));
            continue;
        };
        server.addresses = addresses_of_its_own(&server, &mut taken, at, findings);
        if server.addresses.is_empty() {
            findings.damage(at, format!("server number {number} has no address of its own"));
            continue;
        }
        servers.insert(number as u8, server);
    }
    number(&mut servers)?;
    Ok(Table { servers, blocks: blocks.into_iter().flatten().collect() })
}

/// Addresses of the extension blocks.
fn blocks(
    image: &Image<'_>,
    header: &Header,
    findings: &mut Findings,
) -> Result<[Option<u32>; BLOCKS_MAX], ImportError> {
    let mut blocks = [None; BLOCKS_MAX];
    let first = header.extension;
    if header.version < 4 || first == 0 {
        return Ok(blocks);
    }
    if !is_block(image, header, first)? {
        findings.damage(super::header::LEN - 4, "there is no extension block where the header says");
        return Ok(blocks);
    }
    let others = image.words(first + 16, BLOCKS_MAX)?;
    blocks[0] = Some(first);
    for (number, block) in others.into_iter().enumerate().skip(1).filter(|(_, block)| *block != 0) {
        if is_block(image, header, block)? {
            blocks[number] = Some(block);
        } else {
            findings.damage(first + 16 + 4 * number as u32, format!("extension block {number} is not there"));
        }
    }
    Ok(blocks)
}

fn is_block(image: &Image<'_>, header: &Header, at: u32) -> Result<bool, ImportError> {
    let inside = at >= super::header::LEN && at.checked_add(BLOCK_LEN).is_some_and(|end| end <= header.end);
    Ok(inside && image.word(at + 12)? & BLOCK != 0)
}

/// The server in an extension block.
fn registered(
    image: &Image<'_>,
    blocks: &[Option<u32>; BLOCKS_MAX],
    word: u32,
) -> Result<Option<Server>, ImportError> {
    let (block, index) = ((word >> 16 & 0xff) as usize, word & 0xffff);
    let block = blocks.get(block).copied().flatten().filter(|_| (1..RECORDS).contains(&index));
    let Some(at) = block.map(|block| block + index * RECORD_LEN) else { return Ok(None) };
    let uuid = Uuid(image.bytes(at)?);
    let mut addresses = Vec::new();
    for address in image.words(at + 20, ADDRESSES_MAX)? {
        let address = Ipv4Addr::from(address);
        if !address.is_unspecified() && !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    let uuid = Some(uuid).filter(|uuid| !uuid.is_nil());
    Ok(Some(Server { slot: ServerSlot(0), uuid, uniquifier: image.word(at + 16)?, addresses }))
}

/// Assigns each address to one server: the first that has it.
fn addresses_of_its_own(
    server: &Server,
    taken: &mut BTreeSet<Ipv4Addr>,
    at: u32,
    findings: &mut Findings,
) -> Vec<Ipv4Addr> {
    let (own, others): (Vec<_>, Vec<_>) =
        server.addresses.iter().copied().partition(|address| taken.insert(*address));
    for address in others {
        findings.difference(at, format!("address {address} belongs to a server before this one already"));
    }
    own
}

/// Numbers start at 0 in the file, slots at 1, as in `GetAddrsU`. A number without a slot takes a free one.
fn number(servers: &mut BTreeMap<u8, Server>) -> Result<(), ImportError> {
    let mut free: BTreeSet<u8> = (1..=SERVERS_MAX).collect();
    for (number, server) in servers.iter_mut().filter(|(number, _)| **number < SERVERS_MAX) {
        server.slot = ServerSlot(number + 1);
        free.remove(&(number + 1));
    }
    for server in servers.values_mut().filter(|server| server.slot.0 == 0) {
        let slot = free.pop_first().ok_or_else(|| {
            let what = format!(
                "there are more than {SERVERS_MAX} servers; remove one with `vos changeaddr -remove`"
            );
            ImportError::not_one(UBIK_HEADER_LEN + u64::from(TABLE_AT), what)
        })?;
        server.slot = ServerSlot(slot);
    }
    Ok(())
}
