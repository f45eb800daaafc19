//! File contents that tell which store they come from.

use bytes::Bytes;

use crate::model::register::Content;

/// The whole content of that number: its length and every byte follow from the number. Content 0 is empty.
#[must_use]
pub fn bytes(content: Content) -> Bytes {
    if content == 0 {
        return Bytes::new();
    }
    let mut state = content.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut out = Vec::with_capacity(length(content) + 8);
    out.extend_from_slice(&content.to_be_bytes());
    while out.len() < length(content) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        out.extend_from_slice(&state.to_le_bytes());
    }
    out.truncate(length(content));
    Bytes::from(out)
}

/// Which content this is.
///
/// # Errors
/// It is none: bytes of several, or too few, or too many.
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

/// Mostly small, as files are; some longer than one datagram, some longer than a chunk of the cache's fetches.
fn length(content: Content) -> usize {
    let draw = content.wrapping_mul(0xd134_2543_de82_ef95) >> 32;
    let most = match draw % 10 {
        0..6 => 2_000,
        6..9 => 40_000,
        _ => 200_000,
    };
    8 + usize::try_from((draw >> 8) % most).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_is_known_by_its_bytes_and_a_mixture_is_not() {
        for content in 0..200 {
            assert_eq!(identify(&bytes(content)), Ok(content));
        }
        let (one, two) = (bytes(1), bytes(2));
        let half = one.len() / 2;
        let torn = [&one[..half], &two[half.min(two.len())..]].concat();
        assert!(identify(&torn).is_err());
    }
}
