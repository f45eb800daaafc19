//! File contents from which the store that wrote them can be identified.

use bytes::Bytes;

use crate::model::register::Content;

/// Form of contents.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ContentForm {
    /// Random bytes.
    Plain,
    /// Records of the store's log: docs/format.md "Log record". Some have the expected next number, some the highest
    /// possible.
    LogRecords,
}

impl ContentForm {
    /// First number of contents of this form.
    #[must_use]
    pub fn base(self) -> Content {
        match self {
            ContentForm::Plain => 0,
            ContentForm::LogRecords => LOG_RECORDS,
        }
    }
}

/// The contents with that number: its length and every byte follow from the number. Contents 0 are empty.
#[must_use]
pub fn bytes(content: Content) -> Bytes {
    if content == 0 {
        return Bytes::new();
    }
    let mut out = Vec::with_capacity(length(content) + 32);
    out.extend_from_slice(&content.to_be_bytes());
    out.extend_from_slice(MARK);
    match content {
        LOG_RECORDS.. => records(content, &mut out),
        _ => noise(content, &mut out),
    }
    out.truncate(length(content));
    Bytes::from(out)
}

/// Whether these bytes contain the beginning of any contents.
#[must_use]
pub fn is_in(data: &[u8]) -> bool {
    data.windows(MARK.len()).any(|window| window == MARK)
}

fn noise(content: Content, out: &mut Vec<u8>) {
    let mut state = content.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    while out.len() < length(content) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        out.extend_from_slice(&state.to_le_bytes());
    }
}

/// Empty records of the log, 25 bytes apart, so that they begin at every alignment.
fn records(content: Content, out: &mut Vec<u8>) {
    let mut guess = content % 512;
    while out.len() < length(content) {
        guess += 1;
        let sequence = if guess.is_multiple_of(2) { u64::MAX - 15 } else { guess };
        let body = [&sequence.to_le_bytes()[..], &[0; 8]].concat();
        out.extend_from_slice(b"AKL1");
        out.extend_from_slice(&crc32c::crc32c(&body).to_le_bytes());
        out.extend_from_slice(&body);
        out.push(b' ');
    }
}

/// Identifies contents.
///
/// # Errors
/// The bytes are a mixture of several contents, or too few, or too many.
pub fn identify(data: &[u8]) -> Result<Content, String> {
    if data.is_empty() {
        return Ok(0);
    }
    let Some(head) = data.first_chunk::<8>() else { return Err(format!("{} bytes of nothing", data.len())) };
    let content = Content::from_be_bytes(*head);
    let whole = bytes(content);
    if data == whole {
        return Ok(content);
    }
    let differs = data.iter().zip(&whole).position(|(have, want)| have != want);
    Err(format!(
        "{} bytes where content {content} has {}, different from byte {differs:?}",
        data.len(),
        whole.len()
    ))
}

/// Mostly short, as files are; some longer than one datagram, some longer than a chunk of the cache.
fn length(content: Content) -> usize {
    if content >= LOG_RECORDS {
        // So short that the store keeps them as rows, which are written to its log.
        return 400 + usize::try_from(content % 4000).unwrap_or(0);
    }
    let draw = content.wrapping_mul(0xd134_2543_de82_ef95) >> 32;
    let most = match draw % 10 {
        0..6 => 2_000,
        6..9 => 40_000,
        _ => 200_000,
    };
    8 + usize::try_from((draw >> 8) % most).unwrap_or(0)
}

/// Part of all contents of some length.
const MARK: &[u8; MARK_LEN] = b"kept by the cell";
/// Its length.
pub(super) const MARK_LEN: usize = 16;
/// Numbers from here on are of contents in the form of the store's log.
const LOG_RECORDS: Content = 1 << 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_is_known_by_its_bytes_and_a_mixture_is_not() {
        for content in (0..200).chain(LOG_RECORDS..LOG_RECORDS + 200) {
            assert_eq!(identify(&bytes(content)), Ok(content));
        }
        let (one, two) = (bytes(1), bytes(2));
        let half = one.len() / 2;
        let torn = [&one[..half], &two[half.min(two.len())..]].concat();
        assert!(identify(&torn).is_err());
    }
}
