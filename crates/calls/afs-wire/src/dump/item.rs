//! Assembly of one item of a dump from input pieces of any size.

use super::tags::Form;
use super::{Problem, SPANS_MAX};

/// Takes bytes from `input` until `item` is complete; false when `input` is used up before.
pub(super) fn gather(item: &mut Vec<u8>, form: Form, tag: u8, input: &mut &[u8]) -> Result<bool, Problem> {
    loop {
        let missing = needed(item, form, tag)?.saturating_sub(item.len());
        if missing == 0 {
            return Ok(true);
        }
        let Some((now, later)) =
            input.split_at_checked(missing.min(input.len())).filter(|(now, _)| !now.is_empty())
        else {
            return Ok(false);
        };
        item.extend_from_slice(now);
        *input = later;
    }
}

/// The item's length, as far as the bytes at hand determine it.
fn needed(item: &[u8], form: Form, tag: u8) -> Result<usize, Problem> {
    match form {
        Form::Fixed(len) => Ok(len),
        Form::Length32 => Ok(4),
        Form::Length64 | Form::Sparse => Ok(8),
        Form::Text => match item.last() {
            Some(0) => Ok(item.len()),
            _ if item.len() >= TEXT_MAX => Err(Problem::Text),
            _ => Ok(item.len() + 1),
        },
        Form::Array => match item.first_chunk().map(|count| u16::from_be_bytes(*count)) {
            None => Ok(2),
            Some(count) if usize::from(count) > 2 * SPANS_MAX => Err(Problem::Array(count)),
            Some(count) => Ok(2 + 4 * usize::from(count)),
        },
        Form::Length => match item.first() {
            Some(&first) if first >= 0x80 => match usize::from(first & 0x7f) {
                bytes @ 0..=8 => Ok(1 + bytes),
                _ => Err(Problem::Length(tag)),
            },
            _ => Ok(1),
        },
    }
}

/// The value of an item that is a length.
pub(super) fn length(item: &[u8], form: Form) -> u64 {
    let digits = match (form, item) {
        (Form::Length, [first, digits @ ..]) if *first >= 0x80 => digits,
        _ => item,
    };
    digits.iter().fold(0, |length, &byte| length << 8 | u64::from(byte))
}

/// The number of up to four bytes; of longer items it is undefined.
pub(super) fn number(item: &[u8]) -> u32 {
    item.iter().take(4).fold(0, |number, &byte| number << 8 | u32::from(byte))
}

/// The text of an item, truncated to `len_max` bytes.
pub(super) fn text(item: &[u8], len_max: usize) -> Vec<u8> {
    item.split(|&byte| byte == 0).next().unwrap_or_default().iter().copied().take(len_max).collect()
}

/// Longest text that is read, in bytes. Longer than any that a writer produces.
const TEXT_MAX: usize = 1024;
