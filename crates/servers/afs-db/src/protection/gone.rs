//! Names that users have given up: tokens and tickets of before do not count for the next holder.

use afs_rpc::{TokenGeneration, UnixTime};

use super::rows::META;
use super::{Entry, ProtectionError, Refusal};
use crate::{Rows, RowsMut};

const PREFIX: &[u8] = b"gone";
/// Rows for all names there ever were. Two names with one row cost the new holder of one of them a second login, if the
/// first was before the other name was given up.
const ROWS: u16 = 4096;

/// Notes that an entry gives up its name at this time. Names of other cells stay those of their holders, whatever is
/// registered here.
pub(super) fn note(
    rows: &mut (impl RowsMut + ?Sized),
    entry: &Entry,
    now: UnixTime,
) -> Result<(), ProtectionError> {
    if entry.id.is_group() || entry.is_foreign() {
        return Ok(());
    }
    let last = first_tokens(rows, entry)?.max(entry.tokens.after(now));
    Ok(rows.put(META, &key(&entry.name), &last.0.to_be_bytes())?)
}

/// The generation of tokens with which an entry begins that is given its name now.
pub(super) fn first_tokens(
    rows: &(impl Rows + ?Sized),
    entry: &Entry,
) -> Result<TokenGeneration, ProtectionError> {
    let row = match entry.id.is_group() || entry.is_foreign() {
        true => None,
        false => rows.get(META, &key(&entry.name))?,
    };
    let Some(row) = row else { return Ok(TokenGeneration::default()) };
    Ok(TokenGeneration(u64::from_be_bytes(row.try_into().map_err(|_| Refusal::Damaged)?)))
}

fn key(name: &str) -> Vec<u8> {
    let hash = name.bytes().fold(0u32, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into()));
    [PREFIX, &(hash as u16 % ROWS).to_be_bytes()].concat()
}
