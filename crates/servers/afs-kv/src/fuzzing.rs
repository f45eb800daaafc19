//! Entry points of the fuzz targets: any bytes must be read without a panic.

use xxhash_rust::xxh3::xxh3_128;

use crate::examine::check;
use crate::log_turn::{Salt, Turn};
use crate::medium::Medium;
use crate::memory_medium::MemoryMedium;
use crate::memtable::Memtable;
use crate::page::{Node, Shape};
use crate::page_header;
use crate::pages::{Link, PAGE_LEN};
use crate::record::{self, HEAD_LEN};
use crate::recovery::{LogFormat, replay};

/// A log of two files. The first of each ten bytes selects what follows: a record with a valid checksum, with any
/// sequence number, count and rows, or plain bytes.
pub fn log(bytes: &[u8]) {
    let Some((&first, rest)) = bytes.split_first() else { return };
    let medium = MemoryMedium::new();
    medium.set_capacity(16 << 20);
    let (one, two) = rest.split_at(rest.len() / 2);
    let format = if first & 1 == 0 { LogFormat::Two } else { LogFormat::One };
    let names = if first & 1 == 0 { ["log.a", "log.b"] } else { ["log.0", "log.1"] };
    for (name, part) in names.into_iter().zip([one, two]) {
        if write(&medium, name, &file(part, first & 2 == 0)).is_err() {
            return;
        }
    }
    let applied = u64::from(first >> 4);
    if let Ok(last) = replay(&medium, format, None, applied, &Memtable::default()) {
        assert!(last >= applied, "what was applied is not forgotten");
    }
}

/// An index with a valid header, whose tree begins with a page of these bytes, with the right checksum; the first byte selects where the page is said to be.
pub fn index(bytes: &[u8]) {
    let Some((&place, page)) = bytes.split_first() else { return };
    let mut page = page.to_vec();
    page.resize(PAGE_LEN as usize, 0);
    let page = bytes::Bytes::from(page);
    let covered = Node::decode(&page, Shape::default()).map_or(0, |(_, end)| end);
    let number = if place < 0xf0 { 0 } else { u64::from(place) << 56 | u64::from(place) };
    let link = Link { number, sum: xxh3_128(&page[..covered]) };
    let medium = MemoryMedium::new();
    let file = [page_header::encode(link), page.to_vec()].concat();
    if write(&medium, "index", &file).is_ok() {
        let report = check(&medium, &mut ());
        assert!(report.is_err() || report.is_ok_and(|report| report.rows <= PAGE_LEN));
    }
}

fn write(medium: &dyn Medium, name: &str, bytes: &[u8]) -> std::io::Result<()> {
    medium.open(name)?.write_at(0, bytes)
}

fn file(bytes: &[u8], has_turn: bool) -> Vec<u8> {
    let turn = Turn { salt: Salt([7; 16]), first: bytes.first().map_or(1, |first| sequence(*first)) };
    let mut out = if has_turn { turn.encode() } else { Vec::new() };
    for piece in bytes.chunks(10) {
        match piece.split_first() {
            Some((&kind, payload)) if kind & 1 == 0 => {
                out.extend(sealed(turn.salt, sequence(kind >> 1), kind, payload));
            }
            _ => out.extend_from_slice(piece),
        }
    }
    out
}

/// Small consecutive numbers, and the largest.
fn sequence(byte: u8) -> u64 {
    if byte >= 0x7c { u64::MAX - u64::from(byte & 3) } else { u64::from(byte & 0x0f) }
}

fn sealed(salt: Salt, sequence: u64, rows: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = record::encode(salt, sequence, &Default::default());
    out.truncate(HEAD_LEN);
    out.extend_from_slice(payload);
    out[32..36].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    out[36..40].copy_from_slice(&u32::from(rows >> 6).to_le_bytes());
    let sum = crc32c::crc32c(&out[8..]);
    out[4..8].copy_from_slice(&sum.to_le_bytes());
    out.resize(out.len().next_multiple_of(record::ALIGNMENT), 0);
    out
}
