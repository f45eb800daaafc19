//! Entry point of the fuzz target: any bytes must be decoded without a panic. `fuzz/` calls it with bytes from libFuzzer,
//! the tests here with damaged packs.

use bytes::Bytes;

use crate::names::{PackId, RunId};
use crate::pack::{Builder, HEADER_LEN, Salt, decode, len_of, records};
use crate::tickets::{decode_owner, encode_owner};

/// Decodes an object as a pack, as a part of one, as an owner's object, and as a key. What is accepted is encoded again.
pub fn objects(bytes: &[u8]) {
    let object = Bytes::copy_from_slice(bytes);
    if let Some((id, chunks)) = decode(&object) {
        let salt: [u8; 8] =
            object.get(16..HEADER_LEN).and_then(|salt| salt.try_into().ok()).unwrap_or_default();
        let mut builder = Builder::new(id, Salt(salt));
        let found = records(id, HEADER_LEN as u32, &object.slice(HEADER_LEN..));
        for (chunk, data) in found.into_iter().take(chunks.len()) {
            assert_eq!(builder.push(data, chunk.crc), chunk);
        }
        assert_eq!(len_of(&chunks), Some(object.len() as u64));
        assert_eq!(builder.seal().body.concat(), object);
    }
    for offset in [0, HEADER_LEN as u32, u32::MAX - 7] {
        let found = records(PackId(u64::MAX), offset, &object);
        assert!(found.iter().map(|(_, data)| data.len()).sum::<usize>() <= object.len());
    }
    if let Some(owner) = decode_owner(bytes) {
        assert_eq!(encode_owner(owner), object);
    }
    let key = String::from_utf8_lossy(bytes);
    assert!(PackId::of_key(&key).is_none_or(|pack| pack.key() == key));
    assert!(RunId::of_key(&key).is_none_or(|run| run.key() == key));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packs_with_any_byte_changed_are_read_without_a_panic() {
        let mut builder = Builder::new(PackId(1 << 32), Salt([9; 8]));
        for data in [&b"a"[..], b"twelve bytes", b"eight..."] {
            builder.push(Bytes::from_static(data), crc32c::crc32c(data));
        }
        let whole = builder.seal().body.concat();
        assert!(decode(&whole.clone().into()).is_some());
        objects(&whole);
        for at in 0..whole.len() {
            for byte in [0, 1, 8, 0x7f, 0xff] {
                let mut damaged = whole.clone();
                damaged[at] = byte;
                objects(&damaged);
                objects(&damaged[..at]);
            }
        }
        objects(b"packs/0000000100000000");
    }
}
